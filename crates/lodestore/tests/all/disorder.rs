//! Tables that are in another order than the one they are read in.

use lodestore::{Comparator, Db, Error, KeyOrder, MemFs, Options};
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicI8, Ordering::Relaxed};

/// Bytewise; but with 1 what begins with `k5` is after everything else, with -1 before it.
#[derive(Default)]
struct Turned(AtomicI8);

impl Comparator for Turned {
    fn name(&self) -> &str {
        "Turned"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let place = |key: &[u8]| if key.starts_with(b"k5") { self.0.load(Relaxed) } else { 0 };
        place(a).cmp(&place(b)).then_with(|| a.cmp(b))
    }
}

/// A seek over a deleted range leads to keys that are out of order, and what follows
/// them leads there again: the walk ends all the same, and says why.
#[test]
fn a_walk_over_a_deleted_range_ends_in_a_table_out_of_order() -> Result<(), Error> {
    let order = Arc::new(Turned::default());
    let mut options =
        Options { create_if_missing: true, fs: Arc::new(MemFs::new()), ..Options::default() };
    options.family.order = KeyOrder::Custom(order.clone());
    options.family.block_bytes = 256;
    let db = Db::open("disorder", options)?;
    (0..1000).try_for_each(|key| db.put(format!("k{key:03}").as_bytes(), &[7; 20]))?;
    db.flush()?;
    db.delete_range(b"k000", b"k999")?;
    for (turn, is_reverse) in [(1, false), (-1, true)] {
        order.0.store(turn, Relaxed);
        let failed = match is_reverse {
            false => db.range(..).take(10_000).find_map(Result::err),
            true => db.range(..).rev().take(10_000).find_map(Result::err),
        };
        assert!(matches!(failed, Some(Error::InvalidArgument { .. })), "{turn}: {failed:?}");
    }
    Ok(())
}
