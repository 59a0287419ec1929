//! The log as a source: for replicas and change feeds.

use engine::{Db, LogPin, Updates};

use crate::batch::Changes;
use crate::failure::{Outcome, guarded, guarded_or, released};
use crate::pass::{Out, given};

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_updates_since(
    db: Option<&Db>,
    sequence: u64,
    updates: Out<'_, Option<Box<Updates>>>,
) -> Outcome {
    guarded(|| {
        let place = given(updates, "the place for the updates")?.write(None);
        *place = Some(Box::new(given(db, "the database")?.updates_since(sequence)?));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_updates_next(
    updates: Option<&mut Updates>,
    first: Out<'_, u64>,
    batch: Out<'_, Option<Box<Changes>>>,
) -> Outcome {
    guarded(|| {
        let batch = given(batch, "the place for the batch")?.write(None);
        let first = given(first, "the place for the sequence number")?.write(0);
        if let Some((sequence, changes)) = given(updates, "the updates")?.next().transpose()? {
            (*first, *batch) = (sequence, Some(Box::new(Changes(changes))));
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_updates_free(updates: Option<Box<Updates>>) {
    released(updates);
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_apply_at(
    db: Option<&Db>,
    first: u64,
    batch: Option<&mut Changes>,
) -> Outcome {
    guarded(|| given(db, "the database")?.apply_at(first, &mut given(batch, "the batch")?.0))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_log_pin_create(db: Option<&Db>, sequence: u64) -> Option<Box<LogPin>> {
    guarded_or(None, || db.map(|db| Box::new(db.pin_log(sequence))))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_log_pin_free(pin: Option<Box<LogPin>>) {
    released(pin);
}
