//! A program's own code panics inside the engine: nobody waits for ever, and
//! what was acknowledged is still there.

use lodestore::{Comparator, Db, Error, KeyOrder, MemFs, MergeOperator, Options};
use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Panics whenever it is asked to merge.
struct Touchy;

impl MergeOperator for Touchy {
    fn name(&self) -> &str {
        "Touchy"
    }
    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]]) -> Option<Vec<u8>> {
        panic!("this operator never merges");
    }
}

/// Bytewise, but cannot stand the key `bad`.
struct Fastidious;

impl Comparator for Fastidious {
    fn name(&self) -> &str {
        "Fastidious"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        assert!(a != b"bad" && b != b"bad", "this key is bad");
        a.cmp(b)
    }
}

fn options(disk: &MemFs) -> Options {
    Options { create_if_missing: true, fs: Arc::new(disk.clone()), ..Options::default() }
}

/// A merge operator that panics in a flush makes the database read-only, as
/// any failure there does; the flush is told, and closing does not hang.
#[test]
fn a_panicking_merge_operator_is_told_to_whoever_flushes() -> Result<(), Error> {
    let mut options = options(&MemFs::new());
    options.family.merge_operator = Some(Arc::new(Touchy));
    let db = Db::open("panics", options)?;
    db.put(b"other", b"1")?;
    db.put(b"k", b"base")?;
    db.merge(b"k", b"operand")?;
    assert!(matches!(db.flush(), Err(Error::ReadOnly { .. })));
    assert!(matches!(db.put(b"x", b"y"), Err(Error::ReadOnly { .. })));
    assert_eq!(db.get(b"other")?.as_deref(), Some(&b"1"[..]));
    Ok(())
}

/// A comparator that panics in one writer leaves no other writer waiting, and
/// a reopened database has what was acknowledged.
#[test]
fn a_panicking_comparator_leaves_nobody_waiting() -> Result<(), Error> {
    let disk = MemFs::new();
    let mut options = options(&disk);
    options.family.order = KeyOrder::Custom(Arc::new(Fastidious));
    let db = Db::open("panics", options.clone())?;
    db.put(b"a", b"1")?;
    assert!(catch_unwind(AssertUnwindSafe(|| db.put(b"bad", b"2"))).is_err());
    // The memtable may be half changed: nothing is written to it any more.
    let next = std::thread::spawn(move || db.put(b"b", b"3"));
    assert!(!matches!(next.join(), Ok(Ok(()))), "the next writer is not acknowledged");
    let survivor = disk.kill();
    let log = lodestore::Fs::list(&survivor, "panics".as_ref()).expect("the directory is there");
    assert!(log.iter().any(|name| name.ends_with(".wal")), "the log is still there: {log:?}");
    Ok(())
}
