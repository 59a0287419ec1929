//! Write batches: what is decoded can be written again, and is the same then.

use lodestore::internals::bytes::{batch_of, batch_records};

pub fn run(bytes: &[u8]) {
    let Ok((sequence, records)) = batch_records(bytes) else { return };
    // Tags that are not written now have no way back.
    let Some(again) = batch_of(sequence, &records) else { return };
    let (found, same) = batch_records(&again).expect("what was written is a batch");
    assert_eq!((found, &same), (sequence, &records));
}
