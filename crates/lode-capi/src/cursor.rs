//! Walks over the keys of a family.

use engine::{DbCursor, Error, Family};

use crate::failure::{Outcome, guarded, guarded_or, released};
use crate::options::{GivenRead, read_options};
use crate::pass::{Bytes, Out, given, truth};

/// `lodestore_cursor`.
pub struct Walk {
    cursor: DbCursor,
    /// Why the cursor is nowhere: the key that it was last asked for is none.
    refused: Option<Error>,
}

impl Walk {
    fn valid(&self) -> bool {
        self.refused.is_none() && self.cursor.valid()
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_create(
    family: Option<&Family>,
    options: Option<&GivenRead>,
    cursor: Out<'_, Option<Box<Walk>>>,
) -> Outcome {
    guarded(|| {
        let place = given(cursor, "the place for the cursor")?.write(None);
        let family = given(family, "the family")?;
        let cursor = family.cursor_with(read_options(options).into_owned());
        *place = Some(Box::new(Walk { cursor, refused: None }));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_free(cursor: Option<Box<Walk>>) {
    released(cursor);
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_valid(cursor: Option<&Walk>) -> u8 {
    guarded_or(0, || truth(cursor.is_some_and(Walk::valid)))
}

/// Moves a cursor; whether it is at a key then.
fn moved(walk: Option<&mut Walk>, step: impl FnOnce(&mut DbCursor)) -> u8 {
    guarded_or(0, || {
        let Some(walk) = walk else { return 0 };
        walk.refused = None;
        step(&mut walk.cursor);
        truth(walk.valid())
    })
}

/// [`moved`] to `key`, or nowhere if that is none.
fn sought(walk: Option<&mut Walk>, key: Bytes<'_>, step: impl FnOnce(&mut DbCursor, &[u8])) -> u8 {
    match (key.get(), walk) {
        (Ok(key), walk) => moved(walk, |cursor| step(cursor, key)),
        (Err(error), Some(walk)) => {
            walk.refused = Some(error);
            0
        }
        (Err(_), None) => 0,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_first(cursor: Option<&mut Walk>) -> u8 {
    moved(cursor, DbCursor::first)
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_last(cursor: Option<&mut Walk>) -> u8 {
    moved(cursor, DbCursor::last)
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_seek(cursor: Option<&mut Walk>, key: Bytes<'_>) -> u8 {
    sought(cursor, key, DbCursor::seek)
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_seek_for_prev(cursor: Option<&mut Walk>, key: Bytes<'_>) -> u8 {
    sought(cursor, key, DbCursor::seek_for_prev)
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_next(cursor: Option<&mut Walk>) -> u8 {
    moved(cursor.filter(|cursor| cursor.valid()), DbCursor::next)
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_prev(cursor: Option<&mut Walk>) -> u8 {
    moved(cursor.filter(|cursor| cursor.valid()), DbCursor::prev)
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_key(cursor: Option<&Walk>) -> Bytes<'_> {
    let cursor = cursor.filter(|cursor| cursor.valid());
    guarded_or(Bytes::NONE, || cursor.map_or(Bytes::NONE, |cursor| Bytes::of(cursor.cursor.key())))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_value(cursor: Option<&Walk>) -> Bytes<'_> {
    let cursor = cursor.filter(|cursor| cursor.valid());
    guarded_or(Bytes::NONE, || {
        cursor.map_or(Bytes::NONE, |cursor| Bytes::of(cursor.cursor.value()))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_status(cursor: Option<&Walk>) -> Outcome {
    guarded(|| {
        let walk = given(cursor, "the cursor")?;
        walk.refused.clone().map_or_else(|| walk.cursor.status(), Err)
    })
}
