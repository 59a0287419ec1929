//! A synced write makes durable whatever was acknowledged before it, also where it
//! has nothing of its own and comes while others write.

use lodestore::{
    Comparator, Counter, Db, Error, KeyOrder, MemFs, Options, WriteBatch, WriteOptions,
};
use std::cmp::Ordering;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::time::Duration;

/// Bytewise. Who first compares the key `slow` waits, in the middle of a commit, until
/// others have had time to queue.
struct Slow {
    met: AtomicBool,
    begun: Barrier,
}

impl Comparator for Slow {
    fn name(&self) -> &str {
        "Slow"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let is_slow = a == b"slow" || b == b"slow";
        if is_slow && !self.met.swap(true, Relaxed) {
            self.begun.wait();
            std::thread::sleep(Duration::from_millis(100));
        }
        a.cmp(b)
    }
}

#[test]
fn an_empty_synced_write_that_waits_in_the_queue_syncs_the_log() -> Result<(), Error> {
    let slow = Arc::new(Slow { met: AtomicBool::new(false), begun: Barrier::new(2) });
    let mut options =
        Options { create_if_missing: true, fs: Arc::new(MemFs::new()), ..Options::default() };
    options.family.order = KeyOrder::Custom(slow.clone());
    let db = Db::open("barrier", options)?;
    db.put(b"acknowledged", b"1")?;
    let before = db.statistics().get(Counter::LogSyncs);
    std::thread::scope(|scope| {
        scope.spawn(|| db.put(b"slow", b"2").expect("the file system is sound"));
        slow.begun.wait();
        db.write_with(&WriteOptions::SYNCED, &mut WriteBatch::new())
    })?;
    assert!(db.statistics().get(Counter::LogSyncs) > before, "nothing was synced");
    Ok(())
}
