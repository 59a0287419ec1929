//! Changes that are written together, or not at all.

use std::ffi::c_void;

use engine::{Db, Family, FamilyId, Kind, Record, WriteBatch};

use crate::failure::{Outcome, guarded, guarded_or, released};
use crate::options::{GivenWrite, write_options};
use crate::pass::{Bytes, Out, given};

/// `lodestore_batch`.
pub struct Changes(pub(crate) WriteBatch);

/// A family that is not given is the default one.
fn id_of(family: Option<&Family>) -> FamilyId {
    family.map_or(FamilyId::DEFAULT, Family::id)
}

fn changed(
    batch: Option<&mut Changes>,
    change: impl FnOnce(&mut WriteBatch) -> engine::Result<()>,
) -> Outcome {
    guarded(|| change(&mut given(batch, "the batch")?.0))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_batch_create() -> Option<Box<Changes>> {
    guarded_or(None, || Some(Box::new(Changes(WriteBatch::new()))))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_batch_free(batch: Option<Box<Changes>>) {
    released(batch);
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_batch_put(
    batch: Option<&mut Changes>,
    family: Option<&Family>,
    key: Bytes<'_>,
    value: Bytes<'_>,
) -> Outcome {
    changed(batch, |batch| {
        batch.put_in(id_of(family), key.get()?, value.get()?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_batch_delete(
    batch: Option<&mut Changes>,
    family: Option<&Family>,
    key: Bytes<'_>,
) -> Outcome {
    changed(batch, |batch| {
        batch.delete_in(id_of(family), key.get()?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_batch_single_delete(
    batch: Option<&mut Changes>,
    family: Option<&Family>,
    key: Bytes<'_>,
) -> Outcome {
    changed(batch, |batch| {
        batch.single_delete_in(id_of(family), key.get()?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_batch_delete_range(
    batch: Option<&mut Changes>,
    family: Option<&Family>,
    begin: Bytes<'_>,
    end: Bytes<'_>,
) -> Outcome {
    changed(batch, |batch| {
        batch.delete_range_in(id_of(family), begin.get()?, end.get()?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_batch_merge(
    batch: Option<&mut Changes>,
    family: Option<&Family>,
    key: Bytes<'_>,
    operand: Bytes<'_>,
) -> Outcome {
    changed(batch, |batch| {
        batch.merge_in(id_of(family), key.get()?, operand.get()?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_batch_log_only(
    batch: Option<&mut Changes>,
    bytes: Bytes<'_>,
) -> Outcome {
    changed(batch, |batch| {
        batch.opaque(bytes.get()?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_batch_append(
    batch: Option<&mut Changes>,
    other: Option<&Changes>,
) -> Outcome {
    changed(batch, |batch| {
        batch.append(&given(other, "the other batch")?.0);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_batch_clear(batch: Option<&mut Changes>) {
    guarded_or((), || {
        if let Some(batch) = batch {
            batch.0.clear();
        }
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_batch_count(batch: Option<&Changes>) -> usize {
    guarded_or(0, || batch.map_or(0, |batch| batch.0.len()))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_batch_size(batch: Option<&Changes>) -> usize {
    guarded_or(0, || batch.map_or(0, |batch| batch.0.bytes()))
}

/// `lodestore_record`.
#[repr(C)]
pub struct Visited<'a> {
    kind: u32,
    family: u32,
    key: Bytes<'a>,
    value: Bytes<'a>,
}

/// A record as the header names it; `None` for hints of later builds.
fn visited<'a>(record: &Record<'a>) -> Option<Visited<'a>> {
    let (kind, family, key, value) = match *record {
        Record::Entry { family, kind, key, value } => {
            let kind = match kind {
                Kind::Put => 1,
                Kind::Delete => 2,
                Kind::SingleDelete => 3,
                Kind::RangeDelete => 4,
                Kind::Merge => 5,
                _ => return None,
            };
            (kind, family.0, Bytes::of(key), Bytes::of(value))
        }
        Record::Opaque(bytes) => (6, 0, Bytes::NONE, Bytes::of(bytes)),
        _ => return None,
    };
    Some(Visited { kind, family, key, value })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_batch_iterate(
    batch: Option<&Changes>,
    context: *mut c_void,
    visit: Option<unsafe extern "C" fn(*mut c_void, &Visited<'_>)>,
) -> Outcome {
    guarded(|| {
        let visit = given(visit, "the function")?;
        for record in given(batch, "the batch")?.0.iter() {
            if let Some(record) = visited(&record?) {
                // SAFETY: the caller gave function and context for each other.
                unsafe { visit(context, &record) };
            }
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_write(
    db: Option<&Db>,
    options: Option<&GivenWrite>,
    batch: Option<&mut Changes>,
    sequence: Out<'_, u64>,
) -> Outcome {
    guarded(|| {
        let batch = &mut given(batch, "the batch")?.0;
        let written = given(db, "the database")?.write_with(&write_options(options), batch)?;
        if let Some(sequence) = sequence {
            sequence.write(written);
        }
        Ok(())
    })
}
