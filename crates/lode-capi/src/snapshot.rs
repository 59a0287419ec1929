//! A state of the database that stays readable.

use engine::{Db, Snapshot};

use crate::failure::{guarded_or, released};

/// `lodestore_snapshot`.
pub struct Kept(pub(crate) Snapshot);

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_snapshot_create(db: Option<&Db>) -> Option<Box<Kept>> {
    guarded_or(None, || db.map(|db| Box::new(Kept(db.snapshot()))))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_snapshot_sequence(snapshot: Option<&Kept>) -> u64 {
    guarded_or(0, || snapshot.map_or(0, |kept| kept.0.sequence()))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_snapshot_free(snapshot: Option<Box<Kept>>) {
    released(snapshot);
}
