//! One opener at a time, between real processes: this library's and LevelDB's.

use lodestore::{Db, Error, Options};
use std::path::Path;
use std::process;
use testkit::faults::openers::{Opener, Started};
use testkit::temp_dir::TempDir;

fn start(opener: Opener, directory: &Path) -> Started {
    Started::new(Path::new(env!("CARGO_BIN_EXE_fault_test")), opener, directory)
}

fn create(directory: &Path) -> Db {
    let options = Options { create_if_missing: true, ..Options::default() };
    Db::open(directory, options).expect("it opens")
}

#[track_caller]
fn is_busy(directory: &Path, holder: u32) {
    match Db::open(directory, Options::default()) {
        Err(Error::Busy { holder_pid, .. }) => assert_eq!(holder_pid, Some(holder)),
        other => panic!("expected that process {holder} keeps it busy, got {other:?}"),
    }
}

/// Whoever comes second is refused and told who has it, in this process and in
/// others; a refused opener takes nothing from the first one, whose lock a third
/// still meets.
#[test]
fn a_second_opener_is_refused_and_harms_nothing() {
    let directory = TempDir::new("openers");
    let db = create(directory.path());
    let busy = format!("busy {}", process::id());
    for _ in 0..2 {
        is_busy(directory.path(), process::id());
        assert_eq!(start(Opener::Lodestore, directory.path()).said, busy);
        // fcntl(2) drops a process's locks when it closes any descriptor of the
        // file: had the refused open done that, a LevelDB would get the lock.
        assert_eq!(start(Opener::LevelDb, directory.path()).said, "busy 0");
    }
    db.put(b"key", b"value").expect("the first one still writes");
    drop(db);
    let other = start(Opener::Lodestore, directory.path());
    assert_eq!(other.said, "held");
    is_busy(directory.path(), other.pid());
    is_busy(directory.path(), other.pid());
    assert_eq!(start(Opener::Lodestore, directory.path()).said, format!("busy {}", other.pid()));
    other.kill();
    let db = create(directory.path());
    assert_eq!(db.get(b"key").expect("read").as_deref(), Some(&b"value"[..]));
}

/// A LevelDB has the directory: we are refused, and told its process; it keeps
/// its lock; when it is gone, we open.
#[test]
fn a_leveldb_that_has_the_lock_is_named() {
    let directory = TempDir::new("openers");
    drop(create(directory.path()));
    let leveldb = start(Opener::LevelDb, directory.path());
    assert_eq!(leveldb.said, "held");
    for _ in 0..2 {
        is_busy(directory.path(), leveldb.pid());
        assert_eq!(start(Opener::LevelDb, directory.path()).said, "busy 0");
    }
    leveldb.kill();
    drop(create(directory.path()));
    let leveldb = start(Opener::LevelDb, directory.path());
    assert_eq!(leveldb.said, "held", "we have let go of all locks");
}
