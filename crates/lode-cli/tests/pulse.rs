//! `lode pulse` as scripts and people meet it.

mod lode;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lode::{Place, Ran, lode, text};

/// A place with a small stream of `shape`, and its database.
struct Pulse {
    place: Place,
    stream: PathBuf,
    db: PathBuf,
}

impl Pulse {
    fn new(shape: &str) -> Pulse {
        let place = Place::new();
        let (stream, db) = (place.path("stream"), place.path("db"));
        let counts = ["--num", "20000", "--reads", "300", "--adds", "700", "--deletes", "300"];
        let out = ["pulse", "gen", "--shape", shape, "--out", text(&stream)];
        lode(&[&out[..], &counts[..]].concat()).expect(0);
        Pulse { place, stream, db }
    }

    fn loaded(shape: &str) -> Pulse {
        let pulse = Pulse::new(shape);
        pulse.load(&[]).expect(0);
        pulse
    }

    fn load(&self, flags: &[&str]) -> Ran {
        let load = ["pulse", "load", "--stream", text(&self.stream), "--db", text(&self.db)];
        lode(&[&load[..], flags].concat())
    }

    fn run(&self, flags: &[&str]) -> Ran {
        let run = ["pulse", "run", "--interval", "0", "--db", text(&self.db)];
        lode(&[&run[..], flags].concat())
    }
}

/// Every shape in every mode: all reads find what must be there, the rounds go
/// on where the run before ended, and the database is what the stream says.
#[test]
fn rounds_go_on_in_every_shape_and_mode() {
    for shape in ["classic", "utxo", "sequential"] {
        let pulse = Pulse::loaded(shape);
        let modes: [&[&str]; 4] = [
            &["--mode", "sort"],
            &["--mode", "mread", "--threads", "5"],
            &["--mode", "batch", "--batch-keys", "7", "--threads", "2"],
            &["--mode", "sort", "--sync"],
        ];
        for (at, mode) in modes.into_iter().enumerate() {
            let ran = pulse.run(&[mode, &["--rounds", "3", "--json"]].concat()).expect(0);
            let document = ran.json();
            assert_eq!(document["rounds_before"], 3 * at, "{shape}");
            let rounds = document["rounds"].as_array().expect("rounds");
            for (round, number) in rounds.iter().zip(3 * at + 1..) {
                assert_eq!(round["round"], number);
                assert_eq!(round["reads"], 300);
                let writes = &round["writes"];
                assert_eq!((&writes["adds"], &writes["deletes"]), (&700.into(), &300.into()));
            }
            let line = "read:300 elapsed:";
            assert_eq!(ran.err.lines().filter(|l| l.starts_with(line)).count(), 3, "{}", ran.err);
        }
        let scan = pulse.place.db(&["scan", "--keys-only"]).expect(0);
        assert_eq!(scan.text().lines().count(), 20_000 + 12 * (700 - 300), "{shape}");
        pulse.place.db(&["verify"]).expect(0);
    }
}

/// What a mode or a part has no use for is refused.
#[test]
fn flags_without_a_use_are_refused() {
    let pulse = Pulse::loaded("classic");
    assert!(pulse.run(&["--batch-keys", "7"]).expect(2).err.contains("--batch-keys"));
    assert!(pulse.run(&["--threads", "2"]).expect(2).err.contains("--mode sort"));
    let export = ["pulse", "export", "--stream", text(&pulse.stream), "--part", "load"];
    assert!(lode(&[&export[..], &["--round", "2"]].concat()).expect(2).err.contains("--round"));
}

/// Reading only changes nothing, also with many threads, and says so.
#[test]
fn read_only_changes_nothing() {
    let pulse = Pulse::loaded("utxo");
    pulse.run(&["--rounds", "4"]).expect(0);
    let contents = || pulse.place.db(&["scan", "--hex"]).expect(0).out;
    let before = contents();
    let flags: [&[&str]; 3] = [&[], &["--mode=mread", "--threads=64"], &["--mode=batch"]];
    for mode in flags {
        let ran = pulse.run(&[mode, &["--read-only", "--rounds", "2", "--drop-caches"]].concat());
        let ran = ran.expect(0);
        assert!(ran.text().contains("All 600 reads found the value"), "{}", ran.text());
        assert!(!ran.text().contains("add:"), "{}", ran.text());
    }
    let options = pulse.place.path("options");
    fs::write(&options, "[database]\nstatus_interval = 1s\n").expect("it can be written");
    pulse.run(&["--read-only", "--rounds", "1", "--options", text(&options)]).expect(0);
    assert!(contents() == before);
    let again = pulse.run(&["--rounds", "1", "--json"]).expect(0).json();
    assert_eq!(again["rounds"][0]["round"], 5);
}

/// A wrong or missing value ends the run with the code for damage, and the
/// message names the key.
#[test]
fn wrong_values_are_found() {
    let pulse = Pulse::loaded("classic");
    let reads = pulse.place.path("reads");
    let export = ["pulse", "export", "--part", "reads", "--out", text(&reads), "--stream"];
    lode(&[&export[..], &[text(&pulse.stream)]].concat()).expect(0);
    let record = fs::read(reads).expect("it was written");
    let key: String = record[4..44].iter().map(|byte| format!("{byte:02x}")).collect();
    let run = |flags: &[&str]| pulse.run(&[&["--rounds", "1"], flags].concat());
    run(&["--read-only"]).expect(0);
    pulse.place.db(&["--hex", "put", &key, "00"]).expect(0);
    let ran = run(&["--read-only", "--mode", "batch"]).expect(4);
    assert!(ran.err.contains(&format!("{key}, has another value")), "{}", ran.err);
    pulse.place.db(&["--hex", "delete", &key]).expect(0);
    let ran = run(&[]).expect(4);
    assert!(ran.err.contains("1 of 300 keys are wrong"), "{}", ran.err);
    assert!(ran.err.contains(&format!("{key}, is not there")), "{}", ran.err);
}

/// A load that is stopped goes on where it was, and Ctrl-C leaves a database
/// that says so.
#[test]
fn stopped_load_goes_on() {
    let place = Place::new();
    let (stream, db) = (place.path("stream"), place.path("db"));
    lode(&["pulse", "gen", "--num", "300K", "--out", text(&stream)]).expect(0);
    let load = ["pulse", "load", "--stream", text(&stream), "--db", text(&db)];
    let mut child = Command::new(env!("CARGO_BIN_EXE_lode"))
        .args(load)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("lode starts");
    let start = Instant::now();
    while !db.join("CURRENT").exists() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupt.expect("kill runs").success());
    let code = child.wait().expect("it ends").code();
    let partly = lode(&["pulse", "run", "--db", text(&db), "--rounds", "1"]);
    // A machine that is fast enough may have loaded everything before.
    if code == Some(130) {
        assert!(partly.expect(2).err.contains("loaded in part only"));
        lode(&load).expect(0);
    }
    let again = lode(&load).expect(2);
    assert!(again.err.contains("is loaded already"), "{}", again.err);
    let count = place.db(&["property", "lodestore.estimate-num-keys"]).expect(0);
    assert_eq!(count.text().trim(), "300000");
}

/// The exported records are those that a load stores.
#[test]
fn exported_records_are_those_of_the_load() {
    let pulse = Pulse::loaded("utxo");
    let export = |part: &str, round: &[&str]| {
        let out = pulse.place.path(part);
        let stream = text(&pulse.stream);
        let flags = ["pulse", "export", "--stream", stream, "--part", part];
        lode(&[&flags[..], round, &["--out", text(&out)]].concat()).expect(0);
        out
    };
    let compare = |file: &PathBuf| {
        pulse.place.db(&["compare", "--lookups", "--format", "length-prefixed", text(file)])
    };
    compare(&export("load", &[])).expect(0);
    pulse.run(&["--rounds", "1"]).expect(0);
    let deleted = fs::metadata(export("deletes", &["--round", "1"])).expect("a file").len();
    assert_eq!(deleted, 300 * (4 + 40 + 4));
    let adds = fs::metadata(export("adds", &[])).expect("a file").len();
    assert!((700 * (48 + 30)..=700 * (48 + 101)).contains(&adds), "{adds}");
    compare(&pulse.place.path("load")).expect(1);
    lode(&["pulse", "export", "--stream", text(&pulse.stream), "--part", "adds", "--round", "0"])
        .expect(2);
}

/// The page, the document and the histogram are of the same run.
#[test]
fn run_is_told_in_every_form() {
    let pulse = Pulse::loaded("utxo");
    let page = pulse.place.path("pulse.html");
    let ran = pulse.run(&["--rounds", "2", "--histogram", "--html", text(&page)]).expect(0);
    for part in
        ["Stream:", "Summary of 2 rounds", "peak memory", "Microseconds per read:\nCount: 600 "]
    {
        assert!(ran.text().contains(part), "{part} is not in {}", ran.text());
    }
    let page = fs::read_to_string(page).expect("it was written");
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    let quiet = pulse.run(&["--rounds", "2", "--quiet"]).expect(0);
    assert_eq!(quiet.text().lines().count(), 2, "{}", quiet.text());
    assert_eq!(quiet.err, "");
    let wrong = pulse.run(&["--rounds", "2", "--html", text(&pulse.place.path("no/page"))]);
    assert!(wrong.expect(3).err.contains("no/page"));
}

/// A memory limit is obeyed or refused with advice; it is never passed over.
#[test]
fn memory_limit_is_obeyed_or_refused() {
    let pulse = Pulse::loaded("utxo");
    let ran = pulse.run(&["--rounds", "1", "--memory-limit", "256M", "--json"]);
    match ran.code {
        0 => {
            let document = ran.json();
            assert_eq!(document["choices"]["memory_limit_bytes"], 256 << 20);
            let peak = document["group_peak_bytes"].as_u64();
            assert!(peak.is_none_or(|peak| peak <= 256 << 20), "{peak:?}");
        }
        code => {
            assert_eq!(code, 3, "{ran:?}");
            assert!(ran.err.contains("systemd-run"), "{}", ran.err);
        }
    }
    assert!(pulse.run(&["--memory-limit", "1M"]).expect(2).err.contains("at least 64M"));
}

/// What cannot work is found before anything is done, with advice.
#[test]
fn mistakes_are_found_before_the_run() {
    let pulse = Pulse::new("utxo");
    for (flags, advice) in [
        (&["--mode", "sort", "--threads", "8"][..], "--mode mread or batch takes --threads 8"),
        (&["--threads", "65"], "1..=64"),
        (&["--rounds", "0"], "at least 1"),
        (&["--roundz", "1"], "--rounds"),
        (&["--mode", "sorted"], "sort"),
        (&["--read-only", "--sync"], "--sync"),
        (&[], "lode pulse load makes one"),
    ] {
        let ran = pulse.run(flags).expect(2);
        assert!(ran.err.contains(advice), "{flags:?}: {}", ran.err);
    }
    assert!(!pulse.db.exists());
    let gen_ = |flags: &[&str]| {
        let out = pulse.place.path("other");
        lode(&[&["pulse", "gen", "--out", text(&out)], flags].concat())
    };
    assert!(gen_(&["--num", "1000"]).expect(2).err.contains("--num"));
    assert!(gen_(&["--shape", "utxo", "--deletes", "5"]).expect(2).err.contains("--deletes"));
    assert!(gen_(&["--num", "1M", "--size", "1G"]).expect(2).err.contains("--size"));
    let stream = text(&pulse.stream);
    assert!(lode(&["pulse", "gen", "--out", stream]).expect(2).err.contains("exists"));

    let mut damaged = fs::read(&pulse.stream).expect("it was made");
    damaged[40] ^= 1;
    fs::write(&pulse.stream, damaged).expect("it can be written");
    assert!(pulse.load(&[]).expect(4).err.contains("damaged"));
    assert!(!pulse.db.exists());
}

/// Directories with other things in them are left alone.
#[test]
fn foreign_directories_are_left_alone() {
    let pulse = Pulse::new("utxo");
    pulse.place.db(&["put", "--create", "precious", "data"]).expect(0);
    assert!(pulse.load(&[]).expect(2).err.contains("did not make"));
    assert!(pulse.run(&[]).expect(2).err.contains("did not make"));
    assert_eq!(pulse.place.db(&["get", "precious"]).expect(0).text(), "data\n");
    fs::create_dir(pulse.place.path("papers")).expect("a directory");
    fs::write(pulse.place.path("papers/thesis"), "years of work").expect("a file");
    let papers = pulse.place.path("papers");
    lode(&["pulse", "load", "--stream", text(&pulse.stream), "--db", text(&papers)]).expect(2);
    assert_eq!(fs::read_dir(&papers).expect("it is there").count(), 1);
}

/// A stopped demo leaves nothing behind.
#[test]
fn stopped_demo_leaves_nothing() {
    let place = Place::new();
    let directory = place.path("demo");
    fs::create_dir(&directory).expect("a directory");
    let child = Command::new(env!("CARGO_BIN_EXE_lode"))
        .args(["pulse", "--demo", "--dir", text(&directory)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("lode starts");
    let start = Instant::now();
    let entries = || fs::read_dir(&directory).expect("it is there").count();
    while entries() == 0 && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupt.expect("kill runs").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(entries(), 0);
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(said.contains("removed at the end"), "{said}");
}
