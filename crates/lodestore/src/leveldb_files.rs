//! LevelDB's files, part by part, for the drop-in library that stands for LevelDB:
//! tables of any keys, and what a dump prints of logs and manifests. No promise is
//! made about it.
//!
//! There is no I/O here: who calls has the bytes, and takes them.

use crate::leveldb::block::Listed;
use crate::leveldb::edit::Edit;
use crate::leveldb::footer::{BLOCK_TRAILER_BYTES, Footer, Handle};
use crate::leveldb::log;
use crate::leveldb::names::{self, LevelDbFile};
use crate::leveldb::{stored, text};

pub use crate::leveldb::footer::FOOTER_BYTES;
pub use crate::leveldb::table::{Keys, Layout, TableImage};

/// What is wrong with bytes.
pub type Checked<T> = Result<T, &'static str>;

/// Where a stored block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where it begins.
    pub offset: u64,
    /// Its length, type and checksum behind it included.
    pub bytes: u64,
}

impl From<Handle> for Extent {
    fn from(handle: Handle) -> Extent {
        Extent { offset: handle.offset, bytes: handle.bytes + BLOCK_TRAILER_BYTES }
    }
}

/// Where meta index and index of a table are, by its last bytes.
///
/// # Errors
/// What is wrong with the footer.
pub fn footer(last: &[u8; FOOTER_BYTES], file_bytes: u64) -> Checked<(Extent, Extent)> {
    let footer = Footer::decode(last, file_bytes)?;
    Ok((footer.meta_index.into(), footer.index.into()))
}

/// The block that an index entry's value leads to, in a file of `file_bytes`.
///
/// # Errors
/// What is wrong with the value.
pub fn extent(value: &[u8], file_bytes: u64) -> Checked<Extent> {
    Handle::decode(value, file_bytes).map(Extent::from)
}

/// The entries of a block, to be searched.
#[derive(Debug)]
pub struct Block(Listed);

impl Block {
    /// Opens a block as it is stored, type and checksum behind it included; the
    /// checksum is compared if `verify` says so.
    ///
    /// # Errors
    /// What is wrong with it. A malformed entry is no error, and ends the block.
    pub fn open(stored_block: &[u8], verify: bool) -> Checked<Block> {
        let mut raw = Vec::new();
        let open = if verify { stored::open } else { stored::open_unchecked };
        open(stored_block, &mut raw)?;
        Listed::new(&raw).map(Block)
    }

    /// Number of entries.
    pub fn count(&self) -> usize {
        self.0.count()
    }

    /// Key and value of an entry; `None` behind the last.
    pub fn entry(&self, index: usize) -> Option<(&[u8], &[u8])> {
        self.0.entry(index)
    }

    /// What is wrong behind the last entry, if something is.
    pub fn damage(&self) -> Option<&'static str> {
        self.0.damage()
    }

    /// Memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Not a file of a database.
    Foreign,
    /// A file of a database that holds no data.
    Other,
    /// A log.
    Log,
    /// A manifest.
    Manifest,
    /// A table.
    Table,
}

/// What a file is by its name, without its directory.
pub fn file_kind(name: &str) -> FileKind {
    match names::parse(name) {
        None => FileKind::Foreign,
        Some(LevelDbFile::Log(_)) => FileKind::Log,
        Some(LevelDbFile::Manifest(_)) => FileKind::Manifest,
        Some(LevelDbFile::Table(_)) => FileKind::Table,
        Some(_) => FileKind::Other,
    }
}

/// Damage of a log or manifest, numbered as the C interface has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogDamage {
    /// 1 wrong checksum, 2 wrong length, 3 no end, 4 no beginning, 5 damage in the
    /// middle of a record, 6 unknown type.
    pub flaw: u8,
    /// Type of the fragment that shows it; 0 where that says nothing.
    pub fragment: u8,
    /// Bytes that are left out.
    pub dropped: usize,
}

/// Walks over the records of a log or manifest, over damage too.
#[derive(Debug)]
pub struct LogRecords<'f>(log::Records<'f>);

impl<'f> LogRecords<'f> {
    /// `file` is all of the file.
    pub fn new(file: &'f [u8]) -> LogRecords<'f> {
        LogRecords(log::Records::new(file))
    }

    /// The next record and where it begins; `None` at the end.
    ///
    /// # Errors
    /// Damage, behind which the next call goes on.
    #[allow(clippy::should_implement_trait, reason = "records are lent")]
    pub fn next(&mut self) -> Result<Option<(&[u8], u64)>, LogDamage> {
        self.0.next().map_err(|damage| {
            let (flaw, fragment) = match damage.what {
                log::Flaw::Checksum => (1, 0),
                log::Flaw::Length => (2, 0),
                log::Flaw::WithoutEnd(kind) => (3, kind),
                log::Flaw::WithoutBeginning(kind) => (4, kind),
                log::Flaw::InTheMiddle => (5, 0),
                log::Flaw::UnknownType(kind) => (6, kind),
            };
            LogDamage { flaw, fragment, dropped: damage.dropped }
        })
    }
}

/// What a record of a manifest says, in LevelDB's words.
///
/// # Errors
/// What is wrong with it.
pub fn edit_text(record: &[u8]) -> Checked<String> {
    Edit::decode(record).map(|edit| edit.to_string())
}

/// `bytes` with all but printable ASCII as `\xNN`.
pub fn escaped(bytes: &[u8]) -> String {
    text::escaped(bytes)
}

/// User key, sequence number, and whether it is a put, of a stored key; `None` if it
/// is none that LevelDB writes.
pub fn parse_key(stored_key: &[u8]) -> Option<(&[u8], u64, bool)> {
    text::parse_key(stored_key)
}
