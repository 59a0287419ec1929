//! `lode bench` as scripts and people meet it.

mod lode;

use lode::{Place, lode, text};

/// Benchmarks with a line, but those that take a while whatever `--num` says.
const ALL: &str = "fillseq,fillbatch,fillsync,fill100K,fillrandom,overwrite,readseq,readreverse,\
    readrandom,readmissing,readhot,readrandomsmall,seekrandom,seekordered,readwhilewriting,\
    deleteseq,deleterandom,compact,open,updaterandom,readrandomwriterandom,multireadrandom,\
    multireadwhilewriting,seekrandomwhilewriting,readwhilescanning,mixgraph,flush,\
    waitforcompaction,verifychecksum,filluniquerandom,timeseries";

/// Every benchmark runs and leaves its line; a summary comes last.
#[test]
fn every_benchmark_prints_its_line() {
    let flags = ["bench", "--num=2000", "--threads", "2", "--key_id_range=10", "--benchmarks", ALL];
    let ran = lode(&flags).expect(0);
    let text = ran.text();
    for name in ALL.split(',') {
        let start = format!("{name:<12} : ");
        let line = text.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| {
            panic!("there is no line of {name} in\n{text}");
        });
        let rest = &line[start.len()..];
        let (micros, rest) = rest.split_once(" micros/op; ").expect("LevelDB's format");
        micros.trim().parse::<f64>().expect("a number");
        let (rate, _) = rest.split_once(" ops/s;").expect("ops/s on every line");
        let rate: u64 = rate.parse().expect("a number");
        // Its readers may have found no entry yet when the writer is done.
        assert!(rate > 0 || name == "timeseries", "{line}");
    }
    let summary = text.split_once("\nSummary\n").expect("a summary").1;
    for figure in ["peak memory", "size on disk", "writers held back", "Fastest was "] {
        assert!(summary.contains(figure), "{summary}");
    }
}

/// Checksum and codecs run without a database, for as long as was asked for.
#[test]
fn codecs_tell_how_far_they_compress() {
    let benchmarks = "--benchmarks=crc32c,snappycomp,snappyuncomp,zstdcomp,zstduncomp";
    let ran = lode(&["bench", "--duration=0.05", "--quiet", benchmarks]).expect(0);
    let lines: Vec<&str> = ran.text().lines().collect();
    assert_eq!(lines.len(), 5);
    assert!(lines[0].contains(" MB/s (4K per op)"), "{}", lines[0]);
    for line in [lines[1], lines[3]] {
        let percent = line.split_once("(output: ").and_then(|(_, rest)| rest.split_once("%)"));
        let percent: f64 = percent.expect("as in LevelDB").0.parse().expect("a number");
        // Values can be compressed to half, as --compression_ratio says, and
        // somewhat further because they are made of printable characters.
        assert!((40.0..65.0).contains(&percent), "{line}");
    }
    assert!(ran.text().matches("failure").count() == 0, "{}", ran.text());
}

/// Properties of the database are printed on request.
#[test]
fn properties_are_printed() {
    let benchmarks = "--benchmarks=fillseq,flush,stats,sstables,levelstats";
    let ran = lode(&["bench", "--num=500", benchmarks]).expect(0);
    for part in ["write amplification", "level 0 table ", "level     files"] {
        assert!(ran.text().contains(part), "{part} is not in {}", ran.text());
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
    assert!(lines[1]["ops_beside"].is_null() && lines[2]["ops_beside"].is_u64());
    assert_eq!(lines[2]["beside"], "writer");
}

/// With --json, standard output is one document; the lines are still to be seen.
#[test]
fn json_is_one_document() {
    let ran = lode(&["bench", "--num=500", "--benchmarks=fillrandom", "--json", "--histogram"]);
    let ran = ran.expect(0);
    let document = ran.json();
    assert_eq!(document["document_version"], 3);
    let samples = document["lines"][0]["samples"].as_array().expect("samples");
    assert_eq!(samples[samples.len() - 1]["ops"], 500);
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

/// A flag that no benchmark of the run looks at is told of; a file of rates that
/// nobody would write is refused.
#[test]
fn flags_of_other_benchmarks_are_told_of() {
    let start = ["bench", "--num=100", "--benchmarks=fillseq,readrandom"];
    let flags = ["--seek_nexts=9", "--mix_put_ratio=0.5", "--time_range=3"];
    let ran = lode(&[&start[..], &flags[..]].concat()).expect(0);
    for flag in ["--seek_nexts changes nothing", "--mix_put_ratio changes", "--time_range changes"]
    {
        assert!(ran.text().contains(flag), "{}", ran.text());
    }
    let ran = lode(&[&start[..], &["--report_file=rates.csv"]].concat()).expect(2);
    assert!(ran.err.contains("--report_interval_seconds"), "{}", ran.err);
}

/// Memory and the row cache are in the header and in the document, as they are.
#[test]
fn memory_is_told_as_it_is() {
    let benchmarks = "--benchmarks=fillrandom,compact,readrandom,readrandom";
    let flags = ["bench", "--num=5000", benchmarks, "--memory_budget=64M"];
    let ran = lode(&flags).expect(0);
    assert!(ran.text().contains("all memory within 64.0 MiB"), "{}", ran.text());
    let flags = [&flags[..], &["--row_cache_size=4M", "--read_random_exp_range=9", "--json"]];
    let ran = lode(&flags.concat()).expect(0);
    let document = ran.json();
    let settings = &document["settings"];
    assert!(settings["cache_bytes"].is_null(), "{settings}");
    assert_eq!(
        (&settings["memory_bytes_max"], &settings["row_cache_bytes"]),
        (&(64 << 20).into(), &(4 << 20).into())
    );
    assert_eq!(settings["shapes"]["read_exp_range"], 9.0);
    let rate = document["summary"]["row_cache_hit_rate"].as_f64().expect("there were lookups");
    assert!((0.3..1.0).contains(&rate), "{rate}");
    assert!(ran.err.contains("row cache 4.0 MiB") && ran.err.contains("row cache hit rate"));
}

/// A run with options of a file says so: its figures are not those of the
/// defaults.
#[test]
fn a_file_of_options_is_told() {
    let place = Place::new();
    let path = place.path("tuned");
    std::fs::write(&path, "[family]\nblock_bytes = 8KiB\n").expect("it can be written");
    let flags = ["bench", "--num=100", "--benchmarks=fillseq", "--json", "--options_file"];
    let ran = lode(&[&flags[..], &[text(&path)]].concat()).expect(0);
    let settings = &ran.json()["settings"];
    assert_eq!(
        (&settings["block_bytes"], &settings["options_file"]),
        (&8192.into(), &text(&path).into())
    );
    assert!(ran.err.contains(&format!("Options:    {}", text(&path))), "{}", ran.err);
}

/// filluniquerandom writes every key, in one thread, and in random order.
#[test]
fn unique_fill_writes_every_key() {
    let place = Place::new();
    let path = place.path("db");
    let db = format!("--db={}", text(&path));
    let benchmarks = "--benchmarks=filluniquerandom,readrandom,readseq";
    let flags = ["bench", "--num=3000", "--threads=2", "--json", "--statistics", &db, benchmarks];
    let ran = lode(&flags).expect(0);
    let document = ran.json();
    let lines = document["lines"].as_array().expect("lines");
    assert_eq!((&lines[0]["ops"], &lines[0]["remark"]), (&3000.into(), &"(1 thread)".into()));
    assert_eq!(lines[1]["lookups"]["found"], 6000);
    // Each of two threads found each entry once: none was written twice.
    assert_eq!(lines[2]["ops"], 6000);
    assert_eq!(document["counters"]["write.records"], 3000);
}

/// Mixtures do what their flags say, and tell it as RocksDB does.
#[test]
fn mixtures_follow_their_flags() {
    let start = ["bench", "--num=2000", "--quiet", "--benchmarks"];
    let run = |list: &str, flags: &[&str]| {
        lode(&[&start[..], &[list], flags].concat()).expect(0).text().to_string()
    };
    let text = run("fillseq,readrandomwriterandom", &["--readwritepercent=75"]);
    assert!(text.contains("( reads:1500 writes:500 total:2000 found:1500)"), "{text}");
    let text = run("fillseq,updaterandom", &["--reads=10", "--writes=30"]);
    assert!(text.contains("( updates:30 found:"), "{text}");
    let text = run("mergerandom,readrandom", &["--merge_operator=uint64add", "--value_size=8"]);
    assert!(text.contains("( updates:2000)"), "{text}");
    let ratios = ["--mix_get_ratio=0.5", "--mix_put_ratio=0.25", "--mix_seek_ratio=0.25"];
    let ran = lode(&[&start[..2], &["--json", "--benchmarks=fillseq,mixgraph"], &ratios].concat());
    let document = ran.expect(0).json();
    let parts = |name: &str| document["lines"][1]["parts"][name].as_u64().expect(name);
    assert_eq!(parts("reads") + parts("writes") + parts("seeks"), 2000);
    assert!((900..1100).contains(&parts("reads")), "{}", parts("reads"));
    assert!((400..600).contains(&parts("seeks")), "{}", parts("seeks"));
    // 25.45 / (1 - 0.2615) is the mean of the default sizes.
    let mean = parts("value_bytes") as f64 / parts("writes") as f64;
    assert!((25.0..50.0).contains(&mean), "values have {mean} bytes");
}

/// A seek reads on, forwards or backwards; a batch of lookups finds all.
#[test]
fn seeks_read_on_and_batches_find_all() {
    let start = ["bench", "--num=1000", "--reads=1000", "--json", "--benchmarks"];
    let run = |list: &str, flags: &[&str]| {
        lode(&[&start[..], &[list], flags].concat()).expect(0).json()["lines"][1].clone()
    };
    for reverse in ["--reverse_iterator=0", "--reverse_iterator=1"] {
        let line = run("fillseq,seekrandom", &["--seek_nexts=10", reverse]);
        let entries = line["bytes"].as_u64().expect("a number") / 116;
        // Near the first or the last entry there are fewer.
        assert!((9_500..10_000).contains(&entries), "{reverse}: {entries}");
    }
    for stride in ["--multiread_stride=0", "--multiread_stride=7"] {
        let line = run("fillseq,multireadrandom", &["--batch_size=32", stride]);
        assert_eq!((&line["ops"], &line["lookups"]["found"]), (&1000.into(), &1000.into()));
        assert_eq!(line["bytes"], 116_000);
    }
}

/// Old entries of timeseries are deleted where that is asked for.
#[test]
fn old_entries_of_a_time_series_are_deleted() {
    let place = Place::new();
    let path = place.path("db");
    let db = format!("--db={}", text(&path));
    let start = ["bench", "--num=20000", "--json", "--benchmarks=timeseries", &db];
    let series = ["--key_id_range=10", "--time_range=100"];
    let line = lode(&[&start[..], &series].concat()).expect(0).json()["lines"][0].clone();
    assert_eq!((&line["beside"], &line["ops_beside"]), (&"writer".into(), &20_000.into()));
    assert!(line["lookups"]["found"].as_u64().expect("a number") > 0, "{line}");
    assert_eq!(place.db(&["scan", "--keys-only"]).expect(0).text().lines().count(), 20_000);
    lode(&[&start[..], &series, &["--expire_style=delete"]].concat()).expect(0);
    let left = place.db(&["scan", "--keys-only"]).expect(0).text().lines().count();
    assert!((100..20_000).contains(&left), "{left} entries are left");
}

/// NAME[X3-W1] prints RocksDB's lines of mean and median.
#[test]
fn repeats_are_averaged() {
    let list = "--benchmarks=fillseq,readrandom[X3-W1]";
    let ran = lode(&["bench", "--num=500", list, "--json"]).expect(0);
    for part in [
        "readrandom [AVG 2 runs] : ",
        "\nreadrandom [AVG    3 runs] : ",
        "\nreadrandom [MEDIAN 3 runs] : ",
        "(warm-up)\n",
    ] {
        assert!(ran.err.contains(part), "{part} is not in {}", ran.err);
    }
    let document = ran.json();
    assert_eq!(document["lines"].as_array().expect("lines").len(), 4);
    assert_eq!(document["averages"][0]["runs"], 3);
    let ran = lode(&["bench", "--num=500", list, "--confidence_interval_only"]).expect(0);
    assert!(ran.text().contains("readrandom [CI95 3 runs] : ("), "{}", ran.text());
}

/// --report_file has a row for each second of the run; rates are told meanwhile.
#[test]
fn rates_are_told_while_it_runs() {
    let place = Place::new();
    let path = place.path("rates.csv");
    let file = format!("--report_file={}", text(&path));
    let start = ["bench", "--num=1000", "--duration=1.3", "--benchmarks=fillseq,readrandom"];
    let flags = ["--report_interval_seconds=1", "--stats_interval_seconds=1", &file];
    let ran = lode(&[&start[..], &flags].concat()).expect(0);
    let rows = std::fs::read_to_string(&path).expect("it was written");
    let rows: Vec<&str> = rows.lines().collect();
    assert_eq!(rows[0], "secs_elapsed,interval_qps");
    assert!(rows.len() >= 3 && rows[1].starts_with("1,"), "{rows:?}");
    for row in &rows[1..] {
        let (_, ops) = row.split_once(',').expect("two columns");
        assert!(ops.parse::<u64>().expect("a number") > 0, "{rows:?}");
    }
    assert!(ran.err.contains("readrandom ... ("), "{}", ran.err);
}

/// --benchmark_write_rate_limit holds writers back to the rate.
#[test]
fn write_rate_is_limited() {
    // 1,000 entries of 116 bytes at 400,000 a second take 0.29 seconds, of
    // which a tenth may be ahead.
    let start = ["bench", "--num=1000", "--json", "--benchmarks=fillrandom"];
    let ran = lode(&[&start[..], &["--benchmark_write_rate_limit=400000"]].concat()).expect(0);
    let seconds = ran.json()["lines"][0]["seconds"].as_f64().expect("a number");
    assert!(seconds > 0.15, "{seconds}");
}

/// --report writes a page that stands alone.
#[test]
fn report_is_one_page() {
    let place = Place::new();
    let path = place.path("page.html");
    let benchmarks = "--benchmarks=fillrandom,readrandom,compact";
    let ran = lode(&["bench", "--num=2000", benchmarks, "--report", text(&path)]).expect(0);
    assert!(ran.text().contains("--report times every operation"), "{}", ran.text());
    assert!(!ran.text().contains("Microseconds per op"), "the picture was not asked for");
    let page = std::fs::read_to_string(&path).expect("it was written");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    for part in ["What stands out", "fillrandom", "Latency", "Write amplification", "Settings"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("http") && !page.contains("<script"), "it needs nothing else");
}

/// A flag or benchmark that only RocksDB has is refused with the reason.
#[test]
fn foreign_flags_are_refused_with_the_reason() {
    let ran = lode(&["bench", "--compaction_style=1"]).expect(2);
    assert!(ran.err.contains("compacts by levels only"), "{}", ran.err);
    let ran = lode(&["bench", "--benchmarks=randomtransaction"]).expect(2);
    assert!(ran.err.contains("no transactions"), "{}", ran.err);
    assert!(lode(&["bench", "--benchmarks=mergerandom"]).expect(2).err.contains("uint64add"));
}
