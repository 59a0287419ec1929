//! One call to the file system fails, each in turn: the failure is reported,
//! nothing acknowledged is lost, `resume` makes the database whole again, and
//! a read that failed never looks like a short one.

use lodestore::fs::{Fault, FaultFs, Operation};
use lodestore::{Db, Error, MemFs, Options};
use std::io::ErrorKind;
use std::sync::Arc;
use testkit::command::{Command, Output, Read};
use testkit::files::{pause, stray_tables};
use testkit::history::{self, Crash};
use testkit::load::contents;
use testkit::model::Model;
use testkit::parse::command;
use testkit::rust_api::RustApi;
use testkit::surface::Surface;

const ROOT: &str = "/faults";

fn line(text: &str) -> Command {
    command(text).expect("the command is sound")
}

#[track_caller]
fn run_line(surface: &mut RustApi, text: &str, context: &str) -> Output {
    let output = surface.run(&line(text));
    if let Output::Failed(kind) = &output {
        panic!("{context}: {text} gave {kind}: {:?}", surface.last_error);
    }
    output
}

/// Plays a history with one failing call. False if no call was left to fail.
fn play(seed: u64, call: Operation, nth: u64) -> bool {
    let history = history::history(seed, 40);
    let context = format!("history {seed}, {call:?} number {nth} fails");
    let disk = MemFs::new();
    let failing = FaultFs::new(Arc::new(disk.clone()));
    failing.inject(Fault::new(call, nth, ErrorKind::Other).after_bytes(7));
    let mut surface = RustApi::new(Arc::new(failing.clone()), ROOT);
    let done = history::run(&history, &mut surface);
    let struck = failing.struck() > 0;
    failing.heal();
    if done < history.len() {
        let reported = surface.last_error.clone().unwrap_or_default();
        assert!(struck, "{context}: {reported} without a cause");
        if surface.db().is_none() {
            run_line(&mut surface, &history::open().to_string(), &context);
        }
    }
    let open = surface.db().is_some();
    assert!(open, "{context}: the database is open");
    let db = surface.db().expect("it is open");
    let found = contents(db).unwrap_or_else(|error| panic!("{context}: reading: {error}"));
    judge(&history, done, found, &context);
    // What failed in the background may be noticed only now.
    let _ = surface.run(&line("wait"));
    // Resuming may be needed and is never wrong.
    run_line(&mut surface, "resume", &context);
    run_line(&mut surface, "put ~after 1", &context);
    run_line(&mut surface, "flush-all", &context);
    run_line(&mut surface, "wait", &context);
    run_line(&mut surface, "verify", &context);
    drop(surface);
    check_disk(&history, done, disk, &context);
    struck
}

#[track_caller]
fn judge(history: &[Command], done: usize, found: testkit::load::Contents, context: &str) {
    if let Err(what) = history::judge(history, done, Crash::Kill, &found) {
        panic!("{context}: after {done} commands: {what}");
    }
}

/// What is on disk after closing, without the failing file system.
fn check_disk(history: &[Command], done: usize, disk: MemFs, context: &str) {
    let fs = disk.clone();
    let mut surface = RustApi::new(Arc::new(disk), ROOT);
    run_line(&mut surface, &history::open().to_string(), context);
    let db = surface.db().expect("it is open");
    assert_eq!(
        stray_tables(db, &fs, pause),
        Ok(0),
        "{context}: table files that belong to nothing"
    );
    let mut found = contents(db).unwrap_or_else(|error| panic!("{context}: reopened: {error}"));
    let default = found.get_mut("default").expect("it is always there");
    assert_eq!(default.remove(&b"~after"[..]), Some(b"1".to_vec()), "{context}");
    judge(history, done, found, context);
}

fn fail_each(call: Operation) {
    for seed in 1..=2 {
        let mut nth = 1;
        while play(seed, call, nth) {
            nth += 1;
        }
        println!("history {seed}: {} calls of kind {call:?} failed once each", nth - 1);
    }
}

/// An append that fails half done: to the log, a table or the manifest.
#[test]
fn a_failed_append_loses_nothing_acknowledged() {
    fail_each(Operation::Append);
}

/// A sync that fails: nothing may be assumed of that file any more.
#[test]
fn a_failed_sync_loses_nothing_acknowledged() {
    fail_each(Operation::Sync);
}

/// A file that cannot be created.
#[test]
fn a_failed_create_loses_nothing_acknowledged() {
    fail_each(Operation::Create);
    fail_each(Operation::Overwrite);
}

/// A name that cannot be changed, removed or made durable.
#[test]
fn a_failed_change_of_names_loses_nothing_acknowledged() {
    fail_each(Operation::Rename);
    fail_each(Operation::Remove);
    fail_each(Operation::SyncDirectory);
}

/// A file that cannot be linked, opened or measured: what was to be ingested
/// is then copied, or is not there at all.
#[test]
fn a_failed_look_at_a_file_loses_nothing_acknowledged() {
    fail_each(Operation::HardLink);
    fail_each(Operation::Open);
    fail_each(Operation::Length);
    fail_each(Operation::Close);
}

/// A read that fails in a flush, a compaction or a recovery.
#[test]
fn a_failed_read_in_the_background_loses_nothing() {
    fail_each(Operation::Read);
}

/// A read that fails while a database is opened: it is told, or made good. What
/// cannot be read of the log is never taken for its torn end.
#[test]
fn a_failed_read_of_an_opening_loses_nothing() -> Result<(), Error> {
    let disk = MemFs::new();
    let options = |fs: Arc<dyn lodestore::fs::Fs>| Options {
        create_if_missing: true,
        fs,
        log_bytes_max: 64 << 10,
        ..Options::default()
    };
    let keys = || (0..300u32).map(u32::to_be_bytes);
    let db = Db::open(ROOT, options(Arc::new(disk.clone())))?;
    for (count, key) in keys().enumerate() {
        db.put(&key, &[7; 1000])?;
        if count == 100 {
            db.flush()?;
        }
    }
    let check = |db: &Db, context: &str| {
        let missing = keys().filter(|key| db.get(key).expect("it is read").is_none()).count();
        assert_eq!(missing, 0, "{context}: keys are missing");
    };
    let (mut nth, mut told) = (1, 0);
    loop {
        let copy = disk.kill();
        let failing = FaultFs::new(Arc::new(copy.clone()));
        failing.inject(Fault::new(Operation::Read, nth, ErrorKind::Other));
        let opened = Db::open(ROOT, options(Arc::new(failing.clone())));
        if failing.struck() == 0 {
            break;
        }
        failing.heal();
        let context = format!("read {nth} of an opening fails");
        match opened {
            Ok(db) => check(&db, &context),
            Err(Error::Io { .. }) => told += 1,
            Err(error) => panic!("{context}: {error}"),
        }
        check(&Db::open(ROOT, options(Arc::new(copy)))?, &context);
        nth += 1;
    }
    assert!(told > 5, "only {told} of {} reads were told to have failed", nth - 1);
    Ok(())
}

/// What the caller reads: the right answer or an error, and the right answer
/// the next time.
#[test]
fn a_failed_read_is_never_a_short_answer() {
    let mut script: Vec<Command> = vec![line(
        "open db create=yes memtable=4096 table=2048 block=128 level0=2 level1=4096 \
         multiplier=2 cache=0 default:merge=append",
    )];
    for round in 0..4 {
        for key in 0..30 {
            let length = 60 + key % 7;
            script.push(line(&format!("put {key:02} #{length}:{round}")));
            if key % 4 == round {
                script.push(line(&format!("delete {:02}", key / 2)));
            }
            if key % 5 == round {
                script.push(line(&format!("merge {key:02} more")));
            }
        }
        script.push(line("flush"));
    }
    script.push(line("wait"));
    let mut questions = vec![line("scan"), line("scan-back"), line("range fbfbfbffffbbbb")];
    questions.push(line("cursor : seek 11 next next prev prev seek-for-prev 20 prev last prev"));
    questions.push(line("multi-get 00 01 05 07 11 13 17 19 23 29 nowhere"));
    questions.extend((0..30).map(|key| line(&format!("get {key:02}"))));
    let mut model = Model::default();
    script.iter().for_each(|command| drop(model.run(command)));
    let mut errors = 0;
    for question in &questions {
        let right = model.run(question);
        errors += ask_with_failures(&script, question, &right);
    }
    assert!(errors > 100, "only {errors} reads were made to fail");
}

/// Asks with each of its reads failing once; how many were made to fail.
fn ask_with_failures(script: &[Command], question: &Command, right: &Output) -> usize {
    let disk = MemFs::new();
    let mut surface = RustApi::new(Arc::new(disk.clone()), ROOT);
    script.iter().for_each(|command| drop(surface.run(command)));
    drop(surface);
    let reopen = line("open db cache=0 level0=20");
    let failing = FaultFs::new(Arc::new(disk));
    let mut surface = RustApi::new(Arc::new(failing.clone()), ROOT);
    surface.run(&reopen);
    surface.run(&line("wait"));
    let before = failing.calls(Operation::Read);
    assert_eq!(&surface.run(question), right, "{question}");
    let reads = failing.calls(Operation::Read) - before;
    for nth in 1..=reads {
        failing.inject(Fault::new(Operation::Read, nth, ErrorKind::Other));
        check_answer(question, &surface.run(question), right, nth);
        failing.heal();
        assert_eq!(&surface.run(question), right, "{question}: asked again");
    }
    reads as usize
}

#[track_caller]
fn check_answer(question: &Command, answer: &Output, right: &Output, nth: u64) {
    let context = format!("{question}, with read {nth} failing");
    match (answer, right) {
        (Output::Failed(kind), _) => assert_eq!(kind, "Io", "{context}"),
        (Output::Entries(found, Some(kind)), Output::Entries(all, None)) => {
            assert_eq!(kind, "Io", "{context}");
            assert!(all.starts_with(found), "{context}: wrong entries before the error");
        }
        (Output::Values(found), Output::Values(all)) => {
            for (found, right) in found.iter().zip(all) {
                let failed = matches!(found, Output::Failed(kind) if kind == "Io");
                assert!(failed || found == right, "{context}: {found:?}");
            }
        }
        (answer, right) => assert_eq!(answer, right, "{context}"),
    }
}

/// While the log cannot be written, reads go on, and no write is acknowledged.
#[test]
fn reads_go_on_while_writes_fail() {
    let failing = FaultFs::new(Arc::new(MemFs::new()));
    failing.inject(Fault::new(Operation::Append, 40, ErrorKind::StorageFull).forever());
    let mut surface = RustApi::new(Arc::new(failing.clone()), ROOT);
    let mut model = Model::default();
    let open = line("open db create=yes");
    surface.run(&open);
    model.run(&open);
    let mut refused = 0;
    for key in 0..80 {
        let put = line(&format!("put {key:02} value"));
        if surface.run(&put) == Output::Done {
            model.run(&put);
            assert_eq!(refused, 0, "a write was acknowledged after one had failed");
        } else {
            refused += 1;
        }
        let scan = Command::Scan { read: Read::of("default"), reverse: key % 2 == 0 };
        assert_eq!(surface.run(&scan), model.run(&scan), "after {refused} refusals");
    }
    assert!(refused > 0 && failing.struck() > 0);
}

/// What keeps a table from being opened is told as it is, and passes: only a
/// file that is not there is called missing.
#[test]
fn a_table_that_cannot_be_opened_now_is_not_called_missing() {
    for reason in [ErrorKind::PermissionDenied, ErrorKind::Other] {
        let failing = FaultFs::new(Arc::new(MemFs::new()));
        let fs = Arc::new(failing.clone());
        let options = Options { create_if_missing: true, fs, ..Options::default() };
        let db = Db::open(ROOT, options.clone()).expect("it opens");
        db.put(b"key", b"1").expect("written");
        db.flush().expect("flushed");
        drop(db);
        let db = Db::open(ROOT, options).expect("it opens again");
        failing.inject(Fault::new(Operation::Open, 1, reason).on(".table").forever());
        match db.get(b"key") {
            Err(Error::Io { source, .. }) => assert_eq!(source.kind(), reason),
            other => panic!("{reason:?}: {other:?}"),
        }
        db.put(b"key", b"2").expect("written");
        let error = db.compact_range(None, None).expect_err("it needs the table");
        assert!(matches!(error, Error::Io { .. }), "{error}");
        failing.heal();
        db.compact_range(None, None).expect("nothing stays of it");
        assert_eq!(db.get(b"key").expect("read").as_deref(), Some(&b"2"[..]));
    }
}
