//! LevelDB's formats for the C++ of the drop-in library: what `leveldb/format.h`
//! declares. Part of the static library only if it is built with the feature
//! `leveldb-files`, so that liblodestore.so does not export it.

use std::ffi::c_void;

use engine::leveldb_files::{
    Block, Checked, Extent, FOOTER_BYTES, FileKind, Keys, Layout, LogDamage, LogRecords,
    TableImage, edit_text, escaped, extent, file_kind, footer, parse_key,
};

use crate::failure::{Failure, Outcome, guarded, guarded_or, released};
use crate::pass::{Bytes, Out, Text, given, truth};
use crate::value::Held;

/// Does `check`; what is wrong with the bytes is a `Corruption`.
fn checked(check: impl FnOnce() -> Checked<()>) -> Outcome {
    let mut outcome = Ok(());
    let panicked = guarded(|| {
        outcome = check();
        Ok(())
    });
    panicked.or_else(|| outcome.err().map(|what| Box::new(Failure::corruption(what))))
}

// ---- Tables that are written

/// `lodestore_leveldb_keys`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct GivenKeys {
    context: *mut c_void,
    separator:
        unsafe extern "C" fn(*mut c_void, last: Bytes<'_>, next: Bytes<'_>) -> Bytes<'static>,
    successor: unsafe extern "C" fn(*mut c_void, last: Bytes<'_>) -> Bytes<'static>,
    filter:
        unsafe extern "C" fn(*mut c_void, keys: *const Bytes<'_>, count: usize) -> Bytes<'static>,
}

/// The caller's keys.
struct TheirKeys {
    given: GivenKeys,
    filter_name: Option<Vec<u8>>,
    /// Keys for the next filter, one behind the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// Makes `key` what a function of the caller's gave.
fn replace(key: &mut Vec<u8>, by: Bytes<'static>) {
    if let Ok(bytes) = by.get() {
        key.clear();
        key.extend_from_slice(bytes);
    }
}

impl Keys for TheirKeys {
    fn separate(&mut self, last: &mut Vec<u8>, next: &[u8]) {
        // SAFETY: function and context were given for each other, and what they give
        // lasts until they are asked again.
        let shorter =
            unsafe { (self.given.separator)(self.given.context, Bytes::of(last), Bytes::of(next)) };
        replace(last, shorter);
    }

    fn shorten(&mut self, last: &mut Vec<u8>) {
        // SAFETY: as above.
        let shorter = unsafe { (self.given.successor)(self.given.context, Bytes::of(last)) };
        replace(last, shorter);
    }

    fn filter_name(&self) -> Option<&[u8]> {
        self.filter_name.as_deref()
    }

    fn add_to_filter(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    fn make_filter(&mut self, out: &mut Vec<u8>) {
        let mut start = 0;
        let keys: Vec<Bytes<'_>> = self
            .ends
            .iter()
            .map(|&end| Bytes::of(&self.bytes[std::mem::replace(&mut start, end)..end]))
            .collect();
        // SAFETY: as above.
        let filter = unsafe { (self.given.filter)(self.given.context, keys.as_ptr(), keys.len()) };
        out.extend_from_slice(filter.get().unwrap_or_default());
        self.bytes.clear();
        self.ends.clear();
    }
}

/// `lodestore_leveldb_layout`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct GivenLayout {
    block_bytes: usize,
    restart_interval: usize,
    snappy: u8,
}

impl From<GivenLayout> for Layout {
    fn from(given: GivenLayout) -> Layout {
        let GivenLayout { block_bytes, restart_interval, snappy } = given;
        Layout { block_bytes, restart_interval: restart_interval.max(1), snappy: snappy != 0 }
    }
}

/// `lodestore_leveldb_table`.
pub struct Table {
    image: TableImage<TheirKeys>,
    /// What was asked for last.
    taken: Vec<u8>,
}

fn written(table: Option<&mut Table>, write: impl FnOnce(&mut TableImage<TheirKeys>)) -> Outcome {
    guarded(|| {
        write(&mut given(table, "the table")?.image);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_leveldb_table_create(
    keys: GivenKeys,
    filter_name: Bytes<'_>,
    layout: GivenLayout,
) -> Option<Box<Table>> {
    guarded_or(None, || {
        let filter_name = filter_name.if_any().ok()?.map(<[u8]>::to_vec);
        let keys = TheirKeys { given: keys, filter_name, bytes: Vec::new(), ends: Vec::new() };
        let image = TableImage::new(keys, layout.into());
        Some(Box::new(Table { image, taken: Vec::new() }))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_leveldb_table_set_layout(
    table: Option<&mut Table>,
    layout: GivenLayout,
) -> Outcome {
    written(table, |image| image.set_layout(layout.into()))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_leveldb_table_add(
    table: Option<&mut Table>,
    key: Bytes<'_>,
    value: Bytes<'_>,
) -> Outcome {
    guarded(|| {
        given(table, "the table")?.image.add(key.get()?, value.get()?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_leveldb_table_end_block(table: Option<&mut Table>) -> Outcome {
    written(table, TableImage::end_block)
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_leveldb_table_finish(table: Option<&mut Table>) -> Outcome {
    written(table, TableImage::finish)
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_leveldb_table_take(table: Option<&mut Table>) -> Bytes<'_> {
    let Some(table) = table else { return Bytes::NONE };
    guarded_or((), || table.taken = table.image.take());
    Bytes::of(&table.taken)
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_leveldb_table_free(table: Option<Box<Table>>) {
    released(table);
}

// ---- Tables that are read

/// `lodestore_leveldb_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Place {
    offset: u64,
    bytes: u64,
}

impl From<Extent> for Place {
    fn from(extent: Extent) -> Place {
        Place { offset: extent.offset, bytes: extent.bytes }
    }
}

const NO_PLACE: &str = "no place for a result";

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_leveldb_footer(
    last: Bytes<'_>,
    file_bytes: u64,
    meta_index: Out<'_, Place>,
    index: Out<'_, Place>,
) -> Outcome {
    checked(|| {
        let last = last.get().ok().and_then(|last| <&[u8; FOOTER_BYTES]>::try_from(last).ok());
        let (found_meta_index, found_index) = footer(last.ok_or("no footer")?, file_bytes)?;
        meta_index.ok_or(NO_PLACE)?.write(found_meta_index.into());
        index.ok_or(NO_PLACE)?.write(found_index.into());
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_leveldb_extent(
    value: Bytes<'_>,
    file_bytes: u64,
    place: Out<'_, Place>,
) -> Outcome {
    checked(|| {
        let found = extent(value.get().map_err(|_| "no bytes")?, file_bytes)?;
        place.ok_or(NO_PLACE)?.write(found.into());
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_leveldb_block_open(
    stored: Bytes<'_>,
    verify: u8,
    block: Out<'_, Option<Box<Block>>>,
) -> Outcome {
    checked(|| {
        let place = block.ok_or(NO_PLACE)?.write(None);
        let opened = Block::open(stored.get().map_err(|_| "no bytes")?, verify != 0)?;
        *place = Some(Box::new(opened));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_leveldb_block_free(block: Option<Box<Block>>) {
    released(block);
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_leveldb_block_count(block: Option<&Block>) -> usize {
    block.map_or(0, Block::count)
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_leveldb_block_memory(block: Option<&Block>) -> usize {
    block.map_or(0, Block::memory_bytes)
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_leveldb_block_key(block: Option<&Block>, index: usize) -> Bytes<'_> {
    let entry = block.and_then(|block| block.entry(index));
    entry.map_or(Bytes::NONE, |(key, _)| Bytes::of(key))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_leveldb_block_value(block: Option<&Block>, index: usize) -> Bytes<'_> {
    let entry = block.and_then(|block| block.entry(index));
    entry.map_or(Bytes::NONE, |(_, value)| Bytes::of(value))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_leveldb_block_damage(block: Option<&Block>) -> Outcome {
    checked(|| block.and_then(Block::damage).map_or(Ok(()), Err))
}

// ---- What a dump prints

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_leveldb_file_kind(name: Text<'_>) -> u8 {
    match name.get("the name").map(file_kind) {
        Ok(FileKind::Foreign) | Err(_) => 0,
        Ok(FileKind::Other) => 1,
        Ok(FileKind::Log) => 2,
        Ok(FileKind::Manifest) => 3,
        Ok(FileKind::Table) => 4,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_leveldb_log_open(file: Bytes<'_>) -> Option<Box<LogRecords<'_>>> {
    guarded_or(None, || Some(Box::new(LogRecords::new(file.get().ok()?))))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_leveldb_log_free(log: Option<Box<LogRecords<'_>>>) {
    released(log);
}

/// `lodestore_leveldb_record`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct GivenRecord<'a> {
    bytes: Bytes<'a>,
    offset: u64,
    flaw: u8,
    fragment: u8,
    dropped: usize,
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_leveldb_log_next<'a>(
    log: Option<&'a mut LogRecords<'_>>,
    record: Out<'_, GivenRecord<'a>>,
) -> u8 {
    let (Some(log), Some(record)) = (log, record) else { return 0 };
    let nothing = GivenRecord { bytes: Bytes::NONE, offset: 0, flaw: 0, fragment: 0, dropped: 0 };
    let next = guarded_or(Ok(None), || log.next());
    let found = match next {
        Ok(None) => None,
        Ok(Some((bytes, offset))) => {
            Some(GivenRecord { bytes: Bytes::of(bytes), offset, ..nothing })
        }
        Err(LogDamage { flaw, fragment, dropped }) => {
            Some(GivenRecord { flaw, fragment, dropped, ..nothing })
        }
    };
    record.write(found.unwrap_or(nothing));
    truth(found.is_some())
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_leveldb_edit_text(
    record: Bytes<'_>,
    text: Out<'_, Option<Box<Held>>>,
) -> Outcome {
    checked(|| {
        let place = text.ok_or(NO_PLACE)?.write(None);
        *place = Some(Held::text(edit_text(record.get().map_err(|_| "no bytes")?)?));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_leveldb_escaped(bytes: Bytes<'_>) -> Option<Box<Held>> {
    guarded_or(None, || Some(Held::text(escaped(bytes.get().ok()?))))
}

/// `lodestore_leveldb_key`.
#[repr(C)]
pub struct GivenKey<'a> {
    user_key: Bytes<'a>,
    sequence: u64,
    is_put: u8,
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_leveldb_key_parse<'a>(
    stored: Bytes<'a>,
    key: Out<'_, GivenKey<'a>>,
) -> u8 {
    let (Ok(stored), Some(place)) = (stored.get(), key) else { return 0 };
    let Some((user_key, sequence, is_put)) = parse_key(stored) else { return 0 };
    place.write(GivenKey { user_key: Bytes::of(user_key), sequence, is_put: truth(is_put) });
    1
}
