//! Walks over the keys of a family.

use engine::{DbCursor, Family};

use crate::failure::{Outcome, guarded, guarded_or, released};
use crate::options::{GivenRead, read_options};
use crate::pass::{Bytes, Out, given, truth};

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_create(
    family: Option<&Family>,
    options: Option<&GivenRead>,
    cursor: Out<'_, Option<Box<DbCursor>>>,
) -> Outcome {
    guarded(|| {
        let place = given(cursor, "the place for the cursor")?.write(None);
        let family = given(family, "the family")?;
        *place = Some(Box::new(family.cursor_with(read_options(options).into_owned())));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_free(cursor: Option<Box<DbCursor>>) {
    released(cursor);
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_valid(cursor: Option<&DbCursor>) -> u8 {
    guarded_or(0, || truth(cursor.is_some_and(DbCursor::valid)))
}

/// Moves a cursor; whether it is at a key then.
fn moved(cursor: Option<&mut DbCursor>, step: impl FnOnce(&mut DbCursor)) -> u8 {
    guarded_or(0, || {
        let Some(cursor) = cursor else { return 0 };
        step(cursor);
        truth(cursor.valid())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_first(cursor: Option<&mut DbCursor>) -> u8 {
    moved(cursor, DbCursor::first)
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_last(cursor: Option<&mut DbCursor>) -> u8 {
    moved(cursor, DbCursor::last)
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_seek(cursor: Option<&mut DbCursor>, key: Bytes<'_>) -> u8 {
    let Ok(key) = key.get() else { return 0 };
    moved(cursor, |cursor| cursor.seek(key))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_seek_for_prev(
    cursor: Option<&mut DbCursor>,
    key: Bytes<'_>,
) -> u8 {
    let Ok(key) = key.get() else { return 0 };
    moved(cursor, |cursor| cursor.seek_for_prev(key))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_next(cursor: Option<&mut DbCursor>) -> u8 {
    moved(cursor.filter(|cursor| cursor.valid()), DbCursor::next)
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_prev(cursor: Option<&mut DbCursor>) -> u8 {
    moved(cursor.filter(|cursor| cursor.valid()), DbCursor::prev)
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_key(cursor: Option<&DbCursor>) -> Bytes<'_> {
    let cursor = cursor.filter(|cursor| cursor.valid());
    guarded_or(Bytes::NONE, || cursor.map_or(Bytes::NONE, |cursor| Bytes::of(cursor.key())))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_value(cursor: Option<&DbCursor>) -> Bytes<'_> {
    let cursor = cursor.filter(|cursor| cursor.valid());
    guarded_or(Bytes::NONE, || cursor.map_or(Bytes::NONE, |cursor| Bytes::of(cursor.value())))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cursor_status(cursor: Option<&DbCursor>) -> Outcome {
    guarded(|| given(cursor, "the cursor")?.status())
}
