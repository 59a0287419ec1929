//! What a later build may write into the golden database that this one does not know.

use lodestore::inspect::{LogFile, TableFile};
use lodestore::{KeyOrder, MemFs};
use std::path::Path;
use testkit::files::Files;
use testkit::golden::sealing::{self, Frame};

use crate::golden::kept::{DIRECTORY, disk};

/// The table with the highest number: opening looks at it.
pub const NEWEST_TABLE: &str = "000049.table";
/// One that opening does not look at, of the family `default`.
pub const OLD_TABLE: &str = "000011.table";
/// The newest segment of the log.
const LOG: &str = "000048.wal";

// Where features are: docs/format/basics.md, and the pages of the three files.
pub const MANIFEST_INCOMPATIBLE_AT: usize = 32;
const LOG_COMPATIBLE_AT: usize = 16;
const LOG_READ_COMPATIBLE_AT: usize = 24;
const LOG_INCOMPATIBLE_AT: usize = 32;
const LOG_ENCRYPTION_AT: usize = 160;
const FOOTER_COMPATIBLE_AT: usize = 16;
const FOOTER_READ_COMPATIBLE_AT: usize = 24;
const FOOTER_INCOMPATIBLE_AT: usize = 32;
const FOOTER_ENCRYPTION_AT: usize = 44;

const PAYLOAD: Frame = Frame { kind: 1, flags: 0 };
const SKIPPABLE: Frame = Frame { kind: 0x85, flags: 0 };
const MANDATORY: Frame = Frame { kind: 0x05, flags: 0 };
const FLAGGED: Frame = Frame { kind: 1, flags: 1 };

// Fields of an edit: field 99, which may and which may not be skipped; field 8 with a level
// that is too deep.
const HINT: &[u8] = &[0xc6, 0x01, 4, b'h', b'i', b'n', b't'];
const LAW: &[u8] = &[0xc7, 0x01, 3, b'l', b'a', b'w'];
const DELETED_AT_LEVEL_7: &[u8] = &[17, 3, 0, 7, 11];

/// A change, in words and done.
pub struct Change {
    pub what: &'static str,
    pub make: Box<dyn Fn(&mut Files)>,
}

fn change(what: &'static str, make: impl Fn(&mut Files) + 'static) -> Change {
    Change { what, make: Box::new(make) }
}

/// What this build may go past.
pub fn skipped() -> Vec<Change> {
    let mut changes = vec![
        change("a hint in an edit", |files| {
            sealing::append_to_manifest(manifest(files), PAYLOAD, HINT);
        }),
        change("a record of the manifest that may be skipped", |files| {
            sealing::append_to_manifest(manifest(files), SKIPPABLE, b"any");
        }),
        change("a record of the log that may be skipped", |files| {
            append_to_log(files, SKIPPABLE);
        }),
        change("a compatible feature of a segment", |files| {
            sealing::set_log_header_byte(bytes(files, LOG), LOG_COMPATIBLE_AT, 1);
        }),
    ];
    for table in [NEWEST_TABLE, OLD_TABLE] {
        changes.push(change("a compatible feature of a table", move |files| {
            sealing::set_footer_byte(bytes(files, table), FOOTER_COMPATIBLE_AT, 1);
        }));
        changes.push(change("a section that may be skipped", move |files| {
            sealing::change_section_tag(bytes(files, table), 2, 99, 0);
        }));
        changes.push(change("a property that may be skipped", move |files| {
            change_family_property(files, table, 50 << 1);
        }));
    }
    changes
}

/// What concerns the whole database.
pub fn refused() -> Vec<Change> {
    let edit = |fields: &'static [u8]| {
        move |files: &mut Files| sealing::append_to_manifest(manifest(files), PAYLOAD, fields)
    };
    let of_manifest = |frame: Frame| {
        move |files: &mut Files| sealing::append_to_manifest(manifest(files), frame, HINT)
    };
    let of_header =
        |at: usize| move |files: &mut Files| sealing::set_log_header_byte(bytes(files, LOG), at, 1);
    vec![
        change("a field of an edit", edit(LAW)),
        change("a level", edit(DELETED_AT_LEVEL_7)),
        change("a field of a family", |files| {
            sealing::change_manifest_field(manifest(files), b"\x0a\x07fixed:4", b"\x0b\x07fixed:4");
        }),
        // The count of entries becomes a second field 5.
        change("the format of a table", |files| {
            sealing::change_manifest_field(manifest(files), &[26, 1, 20], &[11, 1, 2]);
        }),
        change("a record of the manifest", of_manifest(MANDATORY)),
        change("a record of the manifest with a flag", of_manifest(FLAGGED)),
        change("a record of the log", |files| append_to_log(files, MANDATORY)),
        change("a record of the log with a flag", |files| append_to_log(files, FLAGGED)),
        change("a feature of a segment", of_header(LOG_INCOMPATIBLE_AT)),
        change("encryption of a segment", of_header(LOG_ENCRYPTION_AT)),
    ]
}

/// What concerns one table.
pub fn of_table(table: &'static str) -> Vec<Change> {
    vec![
        change("a feature of a table", move |files| {
            sealing::set_footer_byte(bytes(files, table), FOOTER_INCOMPATIBLE_AT, 1);
        }),
        change("encryption of a table", move |files| {
            sealing::set_footer_byte(bytes(files, table), FOOTER_ENCRYPTION_AT, 1);
        }),
        change("a section of a table", move |files| {
            sealing::change_section_tag(bytes(files, table), 2, 99, 1);
        }),
        change("a property of a table", move |files| {
            change_family_property(files, table, 50 << 1 | 1);
        }),
    ]
}

/// What concerns a block of a table that opening does not read.
pub fn of_block() -> Change {
    change("a codec of a block", |files| {
        let (fs, _) = disk(files);
        let blocks = blocks(&fs, OLD_TABLE);
        sealing::change_block_type(files, OLD_TABLE, &blocks, 9);
    })
}

/// A segment that only its readers understand.
pub fn read_compatible_log() -> Change {
    change("a read-compatible feature of a segment", |files| {
        sealing::set_log_header_byte(bytes(files, LOG), LOG_READ_COMPATIBLE_AT, 1);
    })
}

/// A table that only its readers understand.
pub fn read_compatible_table() -> Change {
    change("a read-compatible feature of a table", |files| {
        sealing::set_footer_byte(bytes(files, OLD_TABLE), FOOTER_READ_COMPATIBLE_AT, 1);
    })
}

/// The manifest's bytes.
pub fn manifest(files: &mut Files) -> &mut Vec<u8> {
    let mut manifests = files.iter_mut().filter(|(name, _)| name.starts_with("MANIFEST-"));
    manifests.next().expect("it is there").1
}

fn bytes<'f>(files: &'f mut Files, name: &str) -> &'f mut Vec<u8> {
    files.get_mut(name).expect("it is there")
}

fn append_to_log(files: &mut Files, frame: Frame) {
    let (fs, _) = disk(files);
    let log = LogFile::open(&fs, &Path::new(DIRECTORY).join(LOG)).expect("it is sound");
    let end = log.end().expect("it is sound").offset;
    sealing::append_to_log(bytes(files, LOG), end, frame, b"of a later build");
}

/// The property that names the family gets another tag.
fn change_family_property(files: &mut Files, table: &str, tag: u8) {
    let (fs, _) = disk(files);
    let blocks = blocks(&fs, table);
    let body: &[u8] = match table {
        NEWEST_TABLE => b"\x09\x04\0\0\0plain",
        _ => b"\x0b\0\0\0\0default",
    };
    let with = |tag: u8| [&[tag], body].concat();
    sealing::change_property(files, table, &blocks, &with(15 << 1), &with(tag));
}

/// Where the blocks of a table are.
fn blocks(fs: &MemFs, table: &str) -> Vec<(usize, usize)> {
    let path = Path::new(DIRECTORY).join(table);
    let table = TableFile::open(fs, &path, KeyOrder::Bytewise).expect("it is sound");
    let place = |block: lodestore::Result<lodestore::inspect::BlockSummary>| {
        let block = block.expect("it is sound");
        (block.offset as usize, (block.offset + block.stored_bytes) as usize)
    };
    table.blocks().map(place).collect()
}
