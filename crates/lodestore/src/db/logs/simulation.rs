//! Segments that are begun, retired, recycled and pinned at the same time.

use super::Logs;
use crate::filename::log_path;
use crate::fs::{Fs, MemFs};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, thread};
use crate::wal::Predecessor;
use std::path::PathBuf;
use testkit::explore::{Reached, explore};
use testkit::random::Random;

const SEGMENTS: u64 = 5;
/// Sequence numbers in a segment: segment `n` begins at `n * NUMBERS`.
const NUMBERS: u64 = 10;

struct Log {
    fs: Arc<dyn Fs>,
    logs: Logs,
    /// The segment being written.
    newest: AtomicU64,
    /// Segments below this are in tables.
    flushed: AtomicU64,
    recycled: Reached,
}

/// Begins segments as `rotate_log` does, over spare files where there are any.
fn write(log: &Log, _: Random) {
    for number in 1..=SEGMENTS {
        let path = log_path(&log.logs.directory, number);
        match log.logs.take_spare() {
            Some(spare) => {
                log.fs.rename(&spare, &path).expect("a spare file is there");
                log.recycled.note(true);
            }
            None => drop(log.fs.create(&path).expect("memory takes a file")),
        }
        let predecessor = Predecessor { number: number - 1, bytes: 1, ..Predecessor::default() };
        let predecessor = (number > 1).then_some(predecessor);
        log.logs.begin(number, number * NUMBERS, predecessor);
        log.newest.store(number, Ordering::SeqCst);
    }
}

/// Makes segments unneeded, in order.
fn flush(log: &Log, mut random: Random) {
    for _ in 0..4 {
        let newest = log.newest.load(Ordering::SeqCst) as usize;
        let flushed = log.flushed.load(Ordering::SeqCst) as usize;
        let next = random.between(flushed, newest.max(flushed)) as u64;
        log.flushed.store(next, Ordering::SeqCst);
        log.logs.retire(next);
    }
}

/// Pins the log, at a segment's start or within it, and finds its files there
/// for as long as the pin stays.
fn pin(log: &Log, mut random: Random) {
    for _ in 0..2 {
        let newest = log.newest.load(Ordering::SeqCst).max(1) as usize;
        let within = random.below(NUMBERS as usize) as u64;
        let sequence = random.between(1, newest) as u64 * NUMBERS + within;
        log.logs.add_pin(sequence);
        let (kept_from, segments) = log.logs.segments_since(sequence);
        // Before the first segment there is nothing to keep.
        if kept_from <= sequence && !segments.is_empty() {
            for segment in &segments {
                assert!(log.fs.open(&segment.path).is_ok(), "a pinned segment is gone");
            }
            let (still_from, later) = log.logs.segments_since(sequence);
            assert!(still_from <= sequence);
            let of = |segments: &[super::SegmentPlace]| segments.first().map(|s| s.number);
            assert_eq!(of(&segments), of(&later), "a pinned segment is given up");
        }
        log.logs.unpin(sequence);
        log.logs.retire(log.flushed.load(Ordering::SeqCst));
    }
}

/// No file of a segment that is needed, or pinned, is removed or written over;
/// in the end what nobody needs is given up.
#[test]
fn segments_that_matter_keep_their_files() {
    let recycled = Reached::default();
    let count = recycled.clone();
    explore("log segments", move |seed| {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let log = Arc::new(Log {
            logs: Logs::new(&fs, PathBuf::new()),
            fs,
            newest: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
            recycled: count.clone(),
        });
        log.logs.begin_after(NUMBERS - 1);
        let beside = |name: &str, work: fn(&Log, Random), number: u64| {
            let (log, random) = (Arc::clone(&log), Random::new(seed << 8 | number));
            thread::spawn(name, move || work(&log, random))
        };
        let threads = [
            beside("writer", write, 1),
            beside("flush", flush, 2),
            beside("pin", pin, 3),
            beside("pin", pin, 4),
        ];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let flushed = log.flushed.load(Ordering::SeqCst);
        let live: Vec<u64> = log.logs.live().iter().map(|segment| segment.number).collect();
        assert!(live.iter().copied().eq(flushed.max(1)..=SEGMENTS), "{live:?} from {flushed}");
        for number in live {
            let path = log_path(&log.logs.directory, number);
            assert!(log.fs.open(&path).is_ok(), "segment {number} is needed and gone");
        }
        log.logs.keep_spares(0);
        let files = log.fs.list(&PathBuf::new()).expect("memory can be listed").len() as u64;
        assert_eq!(files, SEGMENTS + 1 - flushed.max(1), "what nobody needs stays");
    });
    recycled.check("segments over the files of others");
}
