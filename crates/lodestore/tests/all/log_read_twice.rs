//! An open reads the log twice: to check it, and for what it holds. Nothing that changes
//! in between makes a part of it go unseen.

use lodestore::fs::{Fs, MemFs};
use lodestore::{Counter, Db, Error, Options};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use testkit::trace_fs::{OnRead, TraceFs};

const ROOT: &str = "/twice";

fn options(fs: Arc<dyn Fs>) -> Options {
    Options { create_if_missing: true, fs, ..Options::default() }
}

fn watching(disk: &MemFs, on_read: OnRead) -> Options {
    options(Arc::new(TraceFs::watching_reads(Arc::new(disk.clone()), on_read)))
}

fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "wal")
}

/// The writer goes on so far, between two reads of one log, that its file is another's.
#[test]
fn a_reader_sees_what_was_written_before_it_though_the_log_is_written_over() -> Result<(), Error> {
    // Header and records, when the log is checked and when it is read again.
    for moment in 1..=4 {
        let disk = MemFs::new();
        let writer = Db::open(ROOT, options(Arc::new(disk.clone())))?;
        writer.put(b"kept", b"1")?;
        let reads = AtomicUsize::new(0);
        let on_read = {
            let writer = writer.clone();
            move |path: &Path, _, _: &mut [u8]| {
                if is_log(path) && reads.fetch_add(1, Relaxed) + 1 == moment {
                    for _ in 0..3 {
                        writer.flush().expect("memory can be written");
                        writer.put(b"another", &[7; 9000]).expect("memory can be written");
                    }
                }
            }
        };
        let reader = Db::open_read_only(ROOT, watching(&disk, Arc::new(on_read)))?;
        let recycled = writer.statistics().get(Counter::LogSegmentsRecycled);
        assert!(recycled > 0, "nothing was written over at read {moment}");
        assert_eq!(reader.get(b"kept")?.as_deref(), Some(&b"1"[..]), "at read {moment}");
    }
    Ok(())
}

/// A log that reads as a shorter one the second time is not given up for what was read.
#[test]
fn a_log_that_reads_differently_the_second_time_is_kept() -> Result<(), Error> {
    let disk = MemFs::new();
    let writer = Db::open(ROOT, options(Arc::new(disk.clone())))?;
    (0..10u8).try_for_each(|key| writer.put(&[key], &[key; 1000]))?;
    // Closing would note how far the log is durable: nothing could be missing then.
    let disk = disk.kill();
    let headers = AtomicUsize::new(0);
    let damage = move |path: &Path, offset, bytes: &mut [u8]| {
        if !is_log(path) {
            return;
        }
        let again = headers.fetch_add(usize::from(offset == 0), Relaxed) >= 2 && offset > 0;
        if let (true, Some(last)) = (again, bytes.iter_mut().rfind(|byte| **byte == 9)) {
            *last = 8;
        }
    };
    match Db::open(ROOT, watching(&disk, Arc::new(damage))) {
        Err(Error::Corruption { what, .. }) => assert!(what.contains("twice"), "{what}"),
        opened => panic!("{opened:?}"),
    }
    let db = Db::open(ROOT, options(Arc::new(disk)))?;
    assert_eq!(db.range(..).count(), 10);
    Ok(())
}
