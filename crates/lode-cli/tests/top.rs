//! `lode top`.

#[allow(dead_code, reason = "other tests use more of it")]
mod lode;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lode::{Place, lode, text};
use lodestore::{Db, Options};
use serde_json::Value;

fn open(place: &Place, status: bool) -> Db {
    let status_interval = status.then_some(Duration::from_millis(100));
    let options = Options { create_if_missing: true, status_interval, ..Options::default() };
    Db::open(place.path("db"), options).expect("it opens")
}

/// A frame as JSON, once `is_wanted`. A benchmark that starts empties its
/// directory: for a moment there may be no database in it.
fn object_when(directory: &Path, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let mut last = None;
    for _ in 0..200 {
        let ran = lode(&["top", "--once", "--json", text(directory)]);
        if ran.code == 0 && is_wanted(&ran.json()) {
            return ran.json();
        }
        last = Some(ran);
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("lode top never showed what it should, at last {last:?}");
}

/// What the process tells is shown, in a frame that fits into 80 columns.
#[test]
fn a_process_that_tells_is_watched() {
    let place = Place::new();
    let db = open(&place, true);
    for i in 0..5_000u32 {
        db.put(&i.to_be_bytes(), &[7; 100]).expect("it is put");
    }
    db.flush().expect("it is flushed");
    for i in 0..5_000u32 {
        db.get(&i.to_be_bytes()).expect("it is read");
    }
    let directory = place.path("db");
    let object =
        object_when(&directory, |object| object["counters"]["read.gets"]["total"] == 5_000);
    assert_eq!(
        (&object["source"], &object["pid"]),
        (&"process".into(), &std::process::id().into())
    );
    assert_eq!(object["counters"]["write.records"]["total"], 5_000);
    let tables = object["levels"].as_array().map(|levels| {
        levels.iter().map(|level| level["tables"].as_u64().unwrap_or(0)).sum::<u64>()
    });
    assert_eq!(tables, Some(db.stats().files() as u64));

    let ran = lode(&["top", "--once", text(&directory)]).expect(0);
    for part in ["lode top", "process", "writes", "gets", "level", "memtables", "cache"] {
        assert!(ran.text().contains(part), "{part:?} is not in {}", ran.text());
    }
    assert!(ran.text().lines().all(|line| line.chars().count() <= 80), "{}", ran.text());
    assert!(!ran.text().contains('\x1b'), "no colours but on a terminal");
    lode(&["top", "--once", "--family", "none", text(&directory)]).expect(3);
    lode(&["top", "--once", "--family", "default", text(&directory)]).expect(0);
}

/// A snapshot that is kept is told, with what was written since; so are hits of
/// a row cache, and how large the tables of flushes are.
#[test]
fn kept_snapshots_and_small_flushes_are_told() {
    let place = Place::new();
    let options = Options {
        create_if_missing: true,
        status_interval: Some(Duration::from_millis(100)),
        row_cache_bytes: 1 << 20,
        ..Options::default()
    };
    let db = Db::open(place.path("db"), options).expect("it opens");
    db.put(b"a", b"1").expect("it is put");
    let snapshot = db.snapshot();
    for _ in 0..7 {
        db.put(b"a", b"2").expect("it is put");
        db.flush().expect("it is flushed");
        db.get(b"a").expect("it is read");
    }
    let directory = place.path("db");
    let object = object_when(&directory, |object| object["snapshot_lag"] == 7);
    assert_eq!(object["snapshots"], 1);
    let text_when = |part: &str| {
        let found = (0..200).find_map(|_| {
            let ran = lode(&["top", "--once", text(&directory)]).expect(0);
            db.get(b"a").expect("it is read");
            std::thread::sleep(Duration::from_millis(20));
            ran.text().contains(part).then(|| ran.text().to_string())
        });
        found.unwrap_or_else(|| panic!("lode top never showed {part:?}"))
    };
    let frame = text_when("row cache hits");
    assert!(frame.contains("snapshots 1, the oldest 7 writes old"), "{frame}");
    assert!(frame.contains(" B each"), "{frame}");
    assert!(frame.lines().all(|line| line.chars().count() <= 80), "{frame}");
    drop(snapshot);
    object_when(&directory, |object| object["snapshots"] == 0);
}

/// Without a process that tells, the files are shown, and it is said so.
#[test]
fn files_are_watched_where_nobody_tells() {
    let place = Place::new();
    let directory = place.path("db");
    assert!(lode(&["top", "--once", text(&directory)]).expect(3).err.contains("no database"));
    let db = open(&place, false);
    db.put(b"a", b"1").expect("it is put");
    db.flush().expect("it is flushed");
    let ran = lode(&["top", "--once", text(&directory)]).expect(0);
    assert!(ran.text().contains("from its files: no process tells"), "{}", ran.text());
    let object = lode(&["top", "--once", "--json", text(&directory)]).expect(0).json();
    assert_eq!((&object["source"], &object["levels"][0]["tables"]), (&"files".into(), &1.into()));
    lode(&["top", "--once", "--interval", "0", text(&directory)]).expect(2);
}

/// A status whose process is gone, or which is no status, does not count.
#[test]
fn a_stale_status_does_not_count() {
    let place = Place::new();
    let directory = place.path("db");
    drop(open(&place, true));
    let told = directory.join("STATUS");
    let show = || lode(&["top", "--once", "--json", text(&directory)]).expect(0).json();
    // No process has so high a number.
    std::fs::write(&told, "lodestore-status 1\nprocess 4194999 9999999999\n").expect("written");
    assert_eq!(show()["source"], "files");
    assert!(show()["reason"].as_str().is_some_and(|reason| reason.contains("is gone")));
    let own = format!("lodestore-status 1\nprocess {} 1700000000\n", std::process::id());
    std::fs::write(&told, own).expect("written");
    assert!(show()["reason"].as_str().is_some_and(|reason| reason.contains("told nothing for")));
    std::fs::write(&told, "something else").expect("written");
    assert!(show()["reason"].as_str().is_some_and(|reason| reason.contains("no status")));
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Frames follow each other while the database changes, and a signal ends it
/// in order.
#[cfg(unix)]
#[test]
fn frames_follow_each_other_until_the_user_ends_it() {
    let place = Place::new();
    let db = open(&place, false);
    db.put(b"a", b"1").expect("it is put");
    db.flush().expect("it is flushed");
    let mut top = Command::new(env!("CARGO_BIN_EXE_lode"))
        .args(["top", "--json", "--interval", "0.1", text(&place.path("db"))])
        .stdout(Stdio::piped())
        .spawn()
        .map(Running)
        .expect("lode starts");
    let mut lines = BufReader::new(top.0.stdout.take().expect("it was piped")).lines();
    let mut next = || {
        let line = lines.next().expect("there is another frame").expect("it is text");
        serde_json::from_str::<Value>(&line).expect("it is an object")
    };
    assert_eq!(next()["levels"][0]["tables"], 1);
    db.put(b"b", b"2").expect("it is put");
    db.flush().expect("it is flushed");
    let grown = (0..200).map(|_| next()).find(|object| object["levels"][0]["tables"] == 2);
    assert!(grown.is_some_and(|object| object["change"].is_object()));
    drop(db);
    Db::destroy(place.path("db"), &Options::default()).expect("it is destroyed");
    assert!((0..200).any(|_| next()["source"] == "none"), "a database that went is waited for");
    let pid = top.0.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
    assert_eq!(top.0.wait().expect("it ends").code(), Some(0));
}

/// A benchmark can be watched; its status goes with it.
#[test]
fn a_benchmark_can_be_watched() {
    let place = Place::new();
    let directory = place.path("run");
    let db = format!("--db={}", text(&directory));
    let bench = Command::new(env!("CARGO_BIN_EXE_lode"))
        .args(["bench", "--benchmarks=fillrandom", "--num=100G", "--duration=60", "--status", &db])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(Running)
        .expect("lode starts");
    for _ in 0..1_000 {
        if directory.join("STATUS").exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // Few of the calls are timed: a first window may have counts and no latency.
    let object = object_when(&directory, |object| {
        let records = &object["counters"]["write.records"]["in_window"];
        let p99_micros = &object["latencies"]["write"]["p99_micros"];
        records.as_u64().is_some_and(|n| n > 0) && p99_micros.as_f64().is_some_and(|p99| p99 > 0.0)
    });
    assert_eq!((&object["source"], &object["pid"]), (&"process".into(), &bench.0.id().into()));
    drop(bench);
    let object = lode(&["top", "--once", "--json", text(&directory)]).expect(0).json();
    assert_eq!(object["source"], "files", "the process was killed");
}
