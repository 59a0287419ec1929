//! Sealed segments, made durable by several threads while more are sealed.

use super::SealedSegments;
use crate::filename::log_path;
use crate::fs::{Fs, MemFs};
use crate::key::FileId;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, thread};
use crate::wal::{Predecessor, Room, SegmentHeader, SegmentReader, SegmentWriter};
use std::path::Path;
use testkit::explore::explore;

/// Sealed before anybody syncs, and all.
const BEFORE: u64 = 2;
const SEGMENTS: u64 = 4;

struct Log {
    fs: Arc<dyn Fs>,
    segments: SealedSegments,
    predecessor: Mutex<Option<Predecessor>>,
    /// Segments up to this one were sealed.
    sealed: AtomicU64,
    /// Those up to this one were said to be durable.
    promised: AtomicU64,
}

/// Writes the next segments up to `last`, with one record each.
fn write(log: &Log, last: u64) {
    for number in log.sealed.load(Ordering::SeqCst) + 1..=last {
        let predecessor = *log.predecessor.lock();
        let id = FileId(number.into());
        let header = SegmentHeader {
            number,
            id,
            predecessor,
            short_records: true,
            ..SegmentHeader::default()
        };
        let path = log_path(Path::new(""), number);
        let made = SegmentWriter::create(&log.fs, &path, &header, None, Room::AsNeeded);
        let Ok(mut segment) = made else { return }; // the power is gone
        if segment.append(&number.to_le_bytes()).is_err() {
            return;
        }
        let sealed = segment.seal();
        *log.predecessor.lock() = Some(sealed.as_predecessor());
        log.segments.push(sealed);
        log.sealed.store(number, Ordering::SeqCst);
    }
}

fn sync(log: &Log) {
    for _ in 0..2 {
        let sealed = log.sealed.load(Ordering::SeqCst);
        let Ok(durable) = log.segments.sync_below(sealed + 1) else { return };
        assert!(durable.number >= sealed, "{durable:?} of {sealed}");
        log.promised.fetch_max(sealed, Ordering::SeqCst);
    }
}

/// A segment that is durable has only durable ones before it.
fn look(log: &Log) {
    for _ in 0..3 {
        let entries = log.segments.list.lock().clone();
        let newest_first = entries.iter().rev();
        let durable = newest_first.map(|entry| entry.segment.lock().is_durable());
        assert!(durable.is_sorted(), "a segment is durable before an older one");
    }
}

/// What was said to be durable survives power loss, whoever synced it, and
/// segments become durable in their order.
#[test]
fn what_is_said_to_be_durable_is() {
    explore("sealed segments", |seed| {
        let disk = MemFs::new();
        let log = Arc::new(Log {
            fs: Arc::new(disk.clone()),
            segments: SealedSegments::default(),
            predecessor: Mutex::default(),
            sealed: AtomicU64::new(0),
            promised: AtomicU64::new(0),
        });
        write(&log, BEFORE);
        let beside = |name: &str, work: fn(&Log)| {
            let log = Arc::clone(&log);
            thread::spawn(name, move || work(&log))
        };
        let threads = [
            beside("writer", |log| write(log, SEGMENTS)),
            beside("sync", sync),
            beside("sync", sync),
            beside("look", look),
        ];
        (0..seed % 128).for_each(|_| thread::yield_now());
        let promised = log.promised.load(Ordering::SeqCst);
        let left = disk.crash(seed);
        for number in 1..=promised {
            let path = log_path(Path::new(""), number);
            let mut reader = SegmentReader::open(&left, &path, number).expect("it is there");
            let (_, payload) = reader.next().expect("it reads").expect("it has its record");
            assert_eq!(payload, number.to_le_bytes());
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
