//! Makes the checksums of mutated files right, so that mutation gets past
//! them while production's check stays as it is.
//!
//! Any bytes may come: what cannot be found is left as it is.

mod leveldb;
mod records;
mod table;

pub use table::{Witness, sections_of, table};

use lodestore::FileId;
use lodestore::internals::bytes::crc32c;
use testkit::files::Files;

/// The manifest's header, then its records.
pub fn manifest(bytes: &mut [u8]) {
    const HEADER_BYTES: usize = 128;
    if let Some(id) = id_at(bytes, 40) {
        seal_at(bytes, 0..HEADER_BYTES - 4);
        records::seal(bytes, HEADER_BYTES, id);
    }
}

/// Both copies of a segment's header, then its records.
pub fn log(bytes: &mut [u8]) {
    const BLOCK_BYTES: usize = 4096;
    for copy in [0, BLOCK_BYTES / 2] {
        seal_at(bytes, copy..copy + 252);
    }
    if let Some(id) = id_at(bytes, 48) {
        records::seal(bytes, BLOCK_BYTES, id);
    }
}

/// A line with the right checksum as its third word, if it has three.
pub fn current(bytes: &[u8]) -> Vec<u8> {
    let mut words = bytes.splitn(3, |byte| *byte == b' ');
    let (Some(name), Some(id), Some(_)) = (words.next(), words.next(), words.next()) else {
        return bytes.to_vec();
    };
    let start = [name, b" ", id].concat();
    let checksum = format!(" {:08x}\n", crc32c(&start));
    [start, checksum.into_bytes()].concat()
}

/// The `CURRENT` that names a manifest.
pub fn current_of(manifest: &[u8]) -> Vec<u8> {
    let id = id_at(manifest, 40).unwrap_or_default();
    current(format!("{} {id} 0", manifest_name(manifest)).as_bytes())
}

/// The name of the file that a manifest says it is.
pub fn manifest_name(manifest: &[u8]) -> String {
    let number = manifest.get(88..).and_then(|rest| rest.first_chunk());
    format!("MANIFEST-{:06}", number.map_or(0, |number| u64::from_le_bytes(*number)))
}

/// Every file of a database.
pub fn directory(mut files: Files) -> Files {
    for (name, bytes) in &mut files {
        match name.as_str() {
            "CURRENT" => *bytes = current(bytes),
            name if name.starts_with("MANIFEST-") => manifest(bytes),
            name if name.ends_with(".wal") => log(bytes),
            // The manifest knows the witness of each table.
            name if name.ends_with(".table") => table(bytes, Witness::Kept),
            _ => {}
        }
    }
    files
}

/// Every file of a LevelDB database.
pub fn leveldb_directory(mut files: Files) -> Files {
    for (name, bytes) in &mut files {
        if name.starts_with("MANIFEST-") || name.ends_with(".log") {
            leveldb::log(bytes);
        } else if name.ends_with(".ldb") || name.ends_with(".sst") {
            leveldb::table(bytes);
        }
    }
    files
}

fn id_at(bytes: &[u8], at: usize) -> Option<FileId> {
    let id = bytes.get(at..)?.first_chunk()?;
    Some(FileId(u128::from_le_bytes(*id)))
}

/// Puts the checksum of a range behind it, if both are there.
fn seal_at(bytes: &mut [u8], range: std::ops::Range<usize>) {
    let end = range.end;
    let Some(checksum) = bytes.get(range).map(crc32c) else { return };
    put(bytes, end, checksum);
}

/// Puts a number at a place, if that is there.
fn put(bytes: &mut [u8], at: usize, number: u32) {
    if let Some(place) = at.checked_add(4).and_then(|end| bytes.get_mut(at..end)) {
        place.copy_from_slice(&number.to_le_bytes());
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|number| u32::from_le_bytes(*number))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|number| u64::from_le_bytes(*number))
}
