//! The program as users call it, on Lodestore and whatever else is built in.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

fn lode_peers(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lode-peers"));
    command.args(arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a comparison that must succeed, and returns its table and its document.
fn compare(directory: &TempDir, arguments: &[&str]) -> (String, Value) {
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (json, html, scratch) = (path("result.json"), path("result.html"), path("scratch"));
    let mut all = vec!["run", "--json", &json, "--html", &html, "--directory", &scratch];
    all.extend(arguments);
    let output = lode_peers(&all);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let left = std::fs::read_dir(&scratch).expect("it was made").count();
    assert_eq!(left, 0, "databases are removed");
    assert!(std::fs::read_to_string(&html).expect("a page").contains("</html>"));
    let document = std::fs::read_to_string(&json).expect("a document");
    (text(&output.stdout), serde_json::from_str(&document).expect("JSON"))
}

fn samples<'a>(document: &'a Value, workload: &str) -> Vec<&'a Value> {
    let all = document["samples"].as_array().expect("samples").iter();
    let measured = all.map(|sample| &sample["measured"]);
    measured.filter(|measured| measured["workload"] == workload).collect()
}

/// What Lodestore, in the first round, took for `workload`.
fn of_lodestore<'a>(document: &'a Value, workload: &str) -> &'a Value {
    let all = document["samples"].as_array().expect("samples");
    let is_it = |sample: &&Value| {
        sample["engine"] == "lodestore" && sample["measured"]["workload"] == workload
    };
    &all.iter().find(is_it).expect("it was measured")["measured"]
}

/// Compares one round of `workloads`, in which every engine must have done each.
fn compare_all(workloads: &str) -> (String, Value) {
    let directory = TempDir::new().expect("a temporary directory");
    let flags = ["--entries", "2000", "--rounds", "1", "--latencies", "--workloads", workloads];
    let (table, document) = compare(&directory, &flags);
    let engines = document["head"]["engines"].as_array().expect("engines").len();
    for workload in workloads.split(',') {
        assert_eq!(samples(&document, workload).len(), engines, "{workload}");
        assert!(table.contains(workload), "{workload} is not in {table}");
    }
    assert!(table.contains("lodestore-again"), "{table}");
    assert!(table.contains("fewer than 3 rounds"), "one round claims nothing: {table}");
    (table, document)
}

/// Fills run on every engine, and say how much they wrote, how long that took
/// until all was quiet, and what it left behind.
#[test]
fn fills_tell_what_they_took() {
    let (table, document) = compare_all("fillseq,deleteseq,scandeleted,fillsync,fill100k");
    assert!(table.contains("fillseq+quiet"), "{table}");
    for (workload, keys_and_values) in [("fillseq", 2_000 * 116), ("fill100k", 100 * 100_016)] {
        let fill = of_lodestore(&document, workload);
        assert_eq!(fill["user_bytes"], keys_and_values);
        assert!(fill["quiet"]["seconds"].as_f64() >= fill["seconds"].as_f64(), "{fill}");
        assert!(fill["directory_bytes"].as_u64() > Some(1_000), "{fill}");
        // All of it went to a log at least.
        let told = fill["engine_written_bytes"].as_u64();
        assert!(told >= Some(keys_and_values), "{fill}");
        assert!(fill["peak_rss_bytes"].as_u64() > Some(1 << 20), "{fill}");
        assert!(fill["latency"]["p99_9_micros"].as_f64() > Some(0.0), "{fill}");
    }
    // Of the 20 that are left, 20 scans find each.
    assert_eq!(of_lodestore(&document, "scandeleted")["found"], 400);
    assert_eq!(of_lodestore(&document, "fillsync")["operations"], 100);
}

/// Reads run on every engine, and find what was written: all of them the same.
#[test]
fn reads_find_what_was_written() {
    let (_, document) = compare_all(
        "fillrandom,readseq,readreverse,readrandom,readmissing,readzipf,multiget,seekrandom,\
         readwhilewriting2,readwhilewriting8,overwrite,deleterandom,pulseread,pulsewrite",
    );
    let found = |workload: &str| of_lodestore(&document, workload)["found"].as_u64();
    assert_eq!(found("readmissing"), Some(0));
    // Of 2,000 numbers drawn, 1 - 1/e are different: 1,264, give or take 60.
    let there = found("readseq").expect("a count");
    assert!((1_150..1_380).contains(&there), "{there}");
    assert_eq!(found("readreverse"), Some(there));
    let looked_up = of_lodestore(&document, "pulseread")["operations"].as_u64();
    assert_eq!((found("pulseread"), looked_up), (Some(180), Some(180)));
    assert!(of_lodestore(&document, "readwhilewriting2")["puts_beside"].as_u64() > Some(0));
}

/// Sizes, lanes, threads and rounds are what was asked for, and a workload
/// brings the load that it needs without telling of it.
#[test]
fn flags_do_what_they_say() {
    let directory = TempDir::new().expect("a temporary directory");
    let flags = "--entries 500 --rounds 2 --workloads readrandom --shapes 40-60,16-1k \
                 --lane defaults --engines lodestore --threads 3 --seed 9";
    let flags: Vec<&str> = flags.split_whitespace().collect();
    let (table, document) = compare(&directory, &flags);
    // Two engines, two sizes, two rounds, and nothing of fillrandom.
    assert_eq!(samples(&document, "readrandom").len(), 8);
    assert_eq!(document["samples"].as_array().map(Vec::len), Some(8));
    let walks = document["walks"].as_array().expect("what memory took");
    assert!(walks.iter().all(|walk| walk["nanos"].as_f64() > Some(0.0)), "{walks:?}");
    assert_eq!(walks.len(), 8, "one beside each child");
    assert!(samples(&document, "readrandom").iter().all(|read| read["operations"] == 500));
    assert!(table.contains("Lane:       defaults") && table.contains("40-60"), "{table}");
    assert!(!table.contains("memtable_bytes"), "nobody is told anything: {table}");
}

/// What makes no sense ends with exit code 2 before anything runs.
#[test]
fn wrong_command_lines_end_with_2() {
    for (arguments, part) in [
        (&["run", "--entries", "none"][..], "none"),
        (&["run", "--workloads", "fillsideways"], "fillsideways"),
        (&["run", "--engines", "oracle"], "oracle"),
        (&["run", "--rounds", "0"], "--rounds is 0"),
        (&["run", "--memory-limit", "1G", "--entries", "1000"], "--memory-limit"),
        (&["walk"], "walk"),
        (&["worker"], "no job"),
    ] {
        let output = lode_peers(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(part), "{}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
}

/// A place where no database can be is an error that names it.
#[test]
fn impossible_places_end_with_3() {
    let directory = TempDir::new().expect("a temporary directory");
    let file = directory.path().join("file");
    std::fs::write(&file, b"").expect("a file");
    let place = file.display().to_string();
    let output = lode_peers(&["run", "--entries", "10", "--directory", &place]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains(&place), "{}", text(&output.stderr));
}

/// What runs wrote becomes Markdown, a section for each; if one file is something
/// else, it is named and nothing is printed.
#[test]
fn documents_become_tables() {
    let directory = TempDir::new().expect("a temporary directory");
    compare(&directory, &["--entries", "500", "--rounds", "1", "--workloads", "fillseq"]);
    let path = |name: &str| directory.path().join(name).display().to_string();
    let json = path("result.json");
    let output = lode_peers(&["tables", &json, &json]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let markdown = text(&output.stdout);
    assert_eq!(markdown.matches("### Lane equal: 500 entries, sizes 16-100\n").count(), 2);
    assert_eq!(markdown.matches("\n| fillseq+quiet 16-100 | ").count(), 2, "{markdown}");
    for other in ["result.html", "nothing.json"] {
        let output = lode_peers(&["tables", &json, &path(other)]);
        assert_eq!(output.status.code(), Some(3));
        assert!(text(&output.stderr).contains(other), "{}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
}

/// Gives a child a job in `directory` and returns the lines that it answers.
fn worker(directory: &Path, changes: &[(&str, Value)]) -> Vec<Value> {
    let mut job = serde_json::json!({
        "engine": "lodestore", "lane": "equal", "group": "ordered",
        "workloads": ["fillseq"], "shape": "16-100", "entries": 10, "seed": 1, "threads": 1, "reads": 10,
        "latencies": false, "directory": directory, "memory_limit": null,
    });
    for (name, value) in changes {
        job[*name] = value.clone();
    }
    let mut child = Command::new(env!("CARGO_BIN_EXE_lode-peers"))
        .arg("worker")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("it was asked for");
    input.write_all(job.to_string().as_bytes()).expect("the child reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    let answers = text(&output.stdout);
    answers.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// A child tells what failed in its answer: the parent has to know the reason.
#[test]
fn children_tell_what_failed() {
    let directory = TempDir::new().expect("a temporary directory");
    let good = worker(directory.path(), &[]);
    assert_eq!(good[0]["measured"]["operations"], 10, "{good:?}");
    let file = directory.path().join("file");
    std::fs::write(&file, b"").expect("a file");
    let bad = worker(&file, &[]);
    let reason = bad[0]["failed"]["reason"].as_str().expect("a reason");
    assert!(reason.contains("lodestore"), "{reason}");
}

/// Under a limit a child keeps to it and finds everything after the database
/// was closed and its pages were dropped; where there are no control groups it
/// says so, and what helps.
#[test]
fn limits_on_memory_hold_or_are_refused() {
    const LIMIT: u64 = 64 << 20;
    let directory = TempDir::new().expect("a temporary directory");
    let limited = [
        ("memory_limit", Value::from(LIMIT)),
        ("group", "random".into()),
        ("workloads", serde_json::json!(["fillrandom", "readseq"])),
    ];
    let answers = worker(directory.path(), &limited);
    if let Some(reason) = answers[0]["failed"]["reason"].as_str() {
        assert!(reason.contains("--memory-limit is not possible"), "{reason}");
        eprintln!("not tested: {reason}");
        return;
    }
    let peak = answers[1]["measured"]["peak_group_bytes"].as_u64().expect("a peak");
    assert!((1..=LIMIT).contains(&peak), "{peak}");
    let unlimited = TempDir::new().expect("a temporary directory");
    let free = worker(unlimited.path(), &limited[1..]);
    assert_eq!(answers[1]["measured"]["digest"], free[1]["measured"]["digest"]);
    assert!(answers[1]["measured"]["found"].as_u64() > Some(0), "{answers:?}");
}

/// A killed run takes its child along; the next one removes what it left.
#[test]
fn killed_runs_leave_no_child() {
    let directory = TempDir::new().expect("a temporary directory");
    let place = directory.path().display().to_string();
    let mut run = Command::new(env!("CARGO_BIN_EXE_lode-peers"))
        .args(["run", "--entries", "1G", "--workloads", "fillseq", "--directory", &place])
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let id = run.id();
    let wait_for = |what: &str, is_there: &dyn Fn() -> bool| {
        let start = Instant::now();
        while !is_there() {
            assert!(start.elapsed() < Duration::from_secs(60), "no {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let children = || {
        let file = format!("/proc/{id}/task/{id}/children");
        std::fs::read_to_string(file).expect("Linux tells").trim().to_string()
    };
    let database = directory.path().join(format!("lode-peers-{id}"));
    let files = || -> usize {
        let databases = std::fs::read_dir(&database).into_iter().flatten().flatten();
        databases.map(|entry| std::fs::read_dir(entry.path()).map_or(0, |d| d.count())).sum()
    };
    wait_for("database", &|| files() > 0);
    let child = children();
    assert!(!child.is_empty());
    run.kill().expect("it is killed");
    run.wait().expect("it ends");
    wait_for("end of the child", &|| {
        // Gone, or dead and not yet collected by whoever inherited it.
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    });
    assert!(database.exists());
    let flags =
        ["run", "--entries", "10", "--rounds", "1", "--workloads", "fillseq", "--directory"];
    let next = lode_peers(&[&flags[..], &[&place]].concat());
    assert!(next.status.success(), "{}", text(&next.stderr));
    assert!(!database.exists());
}

/// The list names every engine, lane, workload and size.
#[test]
fn list_names_everything() {
    let output = lode_peers(&["list"]);
    assert!(output.status.success());
    let list = text(&output.stdout);
    for name in [
        "lodestore-again",
        "leveldb",
        "rocksdb",
        "fjall",
        "redb",
        "lmdb",
        "defaults",
        "equal",
        "tuned",
        "readwhilewriting8",
        "fill100k",
        "16-8k",
    ] {
        assert!(list.contains(name), "{name} is not in {list}");
    }
}
