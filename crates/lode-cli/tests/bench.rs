//! `lode bench` as scripts and people meet it.

mod lode;

use lode::{Place, lode, text};

const ALL: &str = "fillseq,fillbatch,fillsync,fill100K,fillrandom,overwrite,readseq,readreverse,\
    readrandom,readmissing,readhot,seekrandom,readwhilewriting,deleteseq,deleterandom,compact,stats";

/// Every benchmark runs and leaves its line; a summary comes last.
#[test]
fn every_benchmark_prints_its_line() {
    let ran = lode(&["bench", "--num=2000", "--threads", "2", "--benchmarks", ALL]).expect(0);
    let text = ran.text();
    for name in ALL.split(',').filter(|&name| name != "stats") {
        let start = format!("{name:<12} : ");
        let line = text.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| {
            panic!("there is no line of {name} in\n{text}");
        });
        let rest = &line[start.len()..];
        let (micros, rest) = rest.split_once(" micros/op; ").expect("LevelDB's format");
        micros.trim().parse::<f64>().expect("a number");
        let (rate, _) = rest.split_once(" ops/s;").expect("ops/s on every line");
        assert!(rate.parse::<u64>().expect("a number") > 0, "{line}");
    }
    let summary = text.split_once("\nSummary\n").expect("a summary").1;
    for figure in ["peak memory", "size on disk", "writers held back", "Fastest was "] {
        assert!(summary.contains(figure), "{summary}");
    }
}

/// The temporary directory is printed, and gone afterwards.
#[test]
fn temporary_directory_is_removed() {
    let ran = lode(&["bench", "--num", "100", "--benchmarks", "fillseq"]).expect(0);
    let line = ran.text().lines().find_map(|line| line.strip_prefix("Directory:"));
    let path = line.expect("it is printed").trim().trim_end_matches(" (removed at the end)");
    assert!(path.contains("lode-bench-") && !std::path::Path::new(path).exists(), "{path}");
}

/// What a sequential fill wrote is all found, missing keys are all missing.
#[test]
fn lookups_tell_what_they_found() {
    let benchmarks = "--benchmarks=fillseq,readrandom,readmissing,readhot,seekrandom,readseq";
    for format in ["leveldb", "rocksdb"] {
        let ran = lode(&["bench", "--num=3000", benchmarks, "--json", "--key_format", format]);
        let document = ran.expect(0).json();
        let lines = document["lines"].as_array().expect("lines").clone();
        let found = |at: usize| lines[at]["lookups"]["found"].as_u64().expect("a number");
        assert_eq!((found(1), found(2), found(3), found(4)), (3000, 0, 3000, 3000));
        assert_eq!(lines[5]["ops"], 3000);
        assert_eq!(lines[5]["bytes"], 3000 * 116);
        assert_eq!(document["settings"]["key_format"], format);
    }
}

/// Threads have seeds of their own, do their amount each, and start together;
/// the writer beside the readers is not among them.
#[test]
fn threads_add_up() {
    let flags = ["bench", "--num=3000", "--reads=2000", "--threads=2", "--json"];
    let benchmarks = "--benchmarks=fillseq,readrandom,readwhilewriting";
    let document = lode(&[&flags[..], &[benchmarks]].concat()).expect(0).json();
    let lines = document["lines"].as_array().expect("lines");
    assert_eq!((&lines[0]["ops"], &lines[0]["threads"]), (&6000.into(), &2.into()));
    for line in &lines[1..] {
        assert_eq!((&line["ops"], &line["lookups"]["found"]), (&4000.into(), &4000.into()));
    }
    assert!(lines[1]["writes_beside"].is_null() && lines[2]["writes_beside"].is_u64());
}

/// With --json, standard output is one document; the lines are still to be seen.
#[test]
fn json_is_one_document() {
    let ran = lode(&["bench", "--num=500", "--benchmarks=fillrandom", "--json", "--histogram"]);
    let ran = ran.expect(0);
    let document = ran.json();
    assert_eq!(document["document_version"], 1);
    assert_eq!(document["lines"][0]["name"], "fillrandom");
    assert_eq!(document["lines"][0]["latency"]["count"], 500);
    assert!(document["summary"]["disk_bytes"].as_u64().expect("a number") > 0);
    assert!(ran.err.contains("fillrandom   : "), "{}", ran.err);
}

/// --histogram prints percentiles and bars after each line; --quiet leaves the
/// lines alone.
#[test]
fn histogram_and_quiet_shape_the_output() {
    let ran = lode(&["bench", "--num=500", "--benchmarks=fillseq", "--histogram=1"]).expect(0);
    for part in ["Microseconds per op:\nCount: 500 ", "P99.99: ", "100.000%"] {
        assert!(ran.text().contains(part), "{}", ran.text());
    }
    let ran = lode(&["bench", "--num=500", "--benchmarks=fillseq,readseq", "--quiet"]).expect(0);
    assert_eq!(ran.text().lines().count(), 2, "{}", ran.text());
}

/// A database that is kept is read by a later run; benchmarks that need an
/// empty one are skipped, as in LevelDB.
#[test]
fn kept_database_is_read_again() {
    let place = Place::new();
    let path = place.path("db");
    let db = format!("--db={}", text(&path));
    lode(&["bench", "--num=1000", "--benchmarks=fillseq", &db]).expect(0);
    let again = ["bench", "--num=1000", "--benchmarks=fillseq,readseq", &db, "--use_existing_db=1"];
    let ran = lode(&again).expect(0);
    assert!(ran.text().contains("fillseq      : skipped (--use_existing_db is true)\n"));
    let json = lode(&["bench", "--benchmarks=readseq", &db, "--use_existing_db", "--json"]);
    assert_eq!(json.expect(0).json()["lines"][0]["ops"], 1000);
    assert_eq!(place.db(&["get", "0000000000000999"]).expect(0).out.len(), 101);
}

/// A directory with other things in it is left alone.
#[test]
fn foreign_directory_is_left_alone() {
    let place = Place::new();
    place.db(&["put", "--create", "precious", "data"]).expect(0);
    let path = place.path("db");
    let ran = lode(&["bench", "--num=10", "--db", text(&path)]).expect(2);
    assert!(ran.err.contains("--use_existing_db"), "{}", ran.err);
    assert_eq!(place.db(&["get", "precious"]).expect(0).text(), "data\n");
}

/// A mistyped benchmark or flag stops the run before it starts, with advice.
#[test]
fn mistakes_are_found_before_the_run() {
    let ran = lode(&["bench", "--benchmarks=fillseq,readrandmo"]).expect(2);
    assert_eq!(ran.text(), "");
    assert!(ran.err.contains("did you mean 'readrandom'?"), "{}", ran.err);
    assert!(lode(&["bench", "--nun=3"]).expect(2).err.contains("--num"));
    let help = lode(&["bench", "--help"]).expect(0);
    assert!(help.text().contains("--write_buffer_size") && help.text().contains("seekrandom"));
}

/// Time can end a benchmark instead of a number.
#[test]
fn duration_ends_a_benchmark() {
    let flags = ["bench", "--num=1000", "--duration=0.05", "--json"];
    let ran = lode(&[&flags[..], &["--benchmarks=fillseq,readseq,readrandom"]].concat()).expect(0);
    for line in ran.json()["lines"].as_array().expect("lines") {
        let seconds = line["seconds"].as_f64().expect("a number");
        assert!((0.05..5.0).contains(&seconds), "{line}");
    }
}

/// Flags without a meaning here are told of, counters are printed on request.
#[test]
fn flags_are_never_passed_over() {
    let flags = ["--reuse_logs=1", "--statistics", "--comparisons"];
    let start = ["bench", "--num=100", "--benchmarks=fillseq"];
    let ran = lode(&[&start[..], &flags[..]].concat()).expect(0);
    for part in ["--reuse_logs changes nothing", "write.user-bytes", "Comparisons: "] {
        assert!(ran.text().contains(part), "{}", ran.text());
    }
}
