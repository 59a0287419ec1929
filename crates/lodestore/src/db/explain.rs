//! `explain`: a lookup that tells what it did.
//!
//! It drives the same machine as `get`, with an observer that writes down each
//! step, so that what it says cannot differ from what `get` does.

use std::fmt;
use std::time::Duration;

use crate::cache::BlockKind;
use crate::error::{Error, Result};
use crate::key::{Kind, SequenceNumber, Trailer, kind_of, sequence_of};
use crate::table::{Block, BlockRef, ReadContext, Table};
use crate::tables::TableFile;

use super::family::FamilyCore;
use super::lookup::{Lookup, Observer, Step};
use super::read::ReadOptions;

/// What one lookup did, and what came of it. It was a real one: blocks that it
/// read are in the cache now, and tables that it opened are open.
///
/// `Display` gives it as text of several lines, without the key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// The key that was looked up.
    pub key: Vec<u8>,
    /// The name of its family.
    pub family: String,
    /// Records with higher numbers were not looked at.
    pub sequence: SequenceNumber,
    /// Where it was looked for, newest place first.
    pub places: Vec<Searched>,
    /// Tables of level 0 whose first and last keys left the key out. In deeper
    /// levels at most one table can have it, and no other is considered.
    pub passed_over: usize,
    /// What came of it.
    pub outcome: Outcome,
    /// How long it took, the writing down included.
    pub elapsed: Duration,
}

/// One place where a key was looked for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Searched {
    /// Which it is.
    pub place: Place,
    /// True if the table's file was not open yet, and was opened now.
    pub opened: bool,
    /// True if what the table has of the key was in the row cache.
    pub from_row_cache: bool,
    /// What the table's filter said.
    pub filter: FilterAnswer,
    /// Blocks that were needed, in this order.
    pub blocks: Vec<BlockUse>,
    /// The number of the newest range delete here that covers the key. It hides
    /// whatever is older, here and in all later places.
    pub range_delete: Option<SequenceNumber>,
    /// The versions of the key that were met, newest first. The last one that
    /// is not hidden ends the lookup, unless it is a merge operand.
    pub versions: Vec<VersionMet>,
}

/// A home of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// The memtable that takes new entries.
    ActiveMemtable,
    /// A memtable that waits for its flush; 0 is the newest of these.
    SealedMemtable(usize),
    /// A table.
    Table {
        /// Its level.
        level: usize,
        /// Its number, as in the file's name.
        number: u64,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::ActiveMemtable => write!(f, "active memtable"),
            Place::SealedMemtable(index) => write!(f, "sealed memtable {index}"),
            Place::Table { level, number } => write!(f, "level {level}, table {number}"),
        }
    }
}

/// What a filter said of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterAnswer {
    /// There is no filter, or it was not needed.
    NotAsked,
    /// The key may be there: the table is looked into.
    MayContain,
    /// The key is certainly not there.
    Denied,
}

/// Where a block came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockSource {
    /// The block cache.
    Cache,
    /// The file: the device, or what the operating system has kept of it.
    File,
}

/// A block that a lookup needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockUse {
    /// Entries, or a part of an index or a filter. Those of small tables are
    /// resident and need no block.
    pub kind: BlockKind,
    /// Where it begins in the file, in bytes.
    pub offset: u64,
    /// How many bytes it has in the file.
    pub stored_bytes: usize,
    /// Where it was found.
    pub source: BlockSource,
}

/// A version of a key that a lookup met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VersionMet {
    /// Its sequence number; 0 once no snapshot can tell it from older ones.
    pub sequence: SequenceNumber,
    /// What it says; `None` for a kind that this build does not know.
    pub kind: Option<Kind>,
    /// Bytes of its value.
    pub value_bytes: usize,
    /// True if a range delete hides it.
    pub hidden: bool,
}

/// What came of a lookup.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The key has a value.
    Found {
        /// Its length.
        value_bytes: usize,
        /// The number of the newest record that it follows from.
        sequence: SequenceNumber,
        /// Merge operands that it was made of; 0: it is as it was put.
        operands: usize,
    },
    /// The key is deleted.
    Deleted {
        /// The number of the record that says so.
        sequence: SequenceNumber,
        /// Its kind: a delete, a single delete or a range delete.
        by: Kind,
    },
    /// There is no trace of the key.
    Absent,
    /// The lookup failed; what came before is told.
    Failed(Error),
}

impl FamilyCore {
    /// Looks `key` up as [`FamilyCore::get`] does, and tells how.
    pub(crate) fn explain(&self, options: &ReadOptions, key: &[u8]) -> Result<Explanation> {
        let begin = self.shared.scheduler.now();
        let view = self.views.load();
        let sequence = self.read_sequence(options)?;
        let context = self.context(options.fill_cache);
        let notes = Notes::default();
        let mut lookup = Lookup::start_observed(&view, self.order(), context, key, sequence, notes);
        let stopped = drive(&mut lookup, context).err();
        let notes = std::mem::take(lookup.observer());
        let result = match stopped {
            Some(error) => Err(error),
            None => lookup.finish(&self.merge_operator),
        };
        let result = result.map(|value| value.map(|value| value.len()));
        Ok(Explanation {
            key: key.to_vec(),
            family: self.name.clone(),
            sequence,
            outcome: outcome(&notes.places, result),
            places: notes.places,
            passed_over: notes.passed_over,
            elapsed: self.shared.scheduler.now().saturating_sub(begin),
        })
    }
}

/// Takes a lookup to its end and notes where its blocks come from.
fn drive(lookup: &mut Lookup<'_, '_, Notes>, context: &ReadContext) -> Result<()> {
    loop {
        match lookup.advance() {
            Step::Done => return Ok(()),
            Step::Table(file) => {
                file.table()?;
                lookup.observer().opened = true;
            }
            Step::Block(table, wanted) => {
                let (block, source) = fetch(table, wanted, context);
                lookup.observer().block(wanted, source);
                lookup.supply(block?);
            }
        }
    }
}

fn fetch(table: &Table, wanted: BlockRef, context: &ReadContext) -> (Result<Block>, BlockSource) {
    match table.cached_block(wanted, context) {
        Some(block) => (Ok(block), BlockSource::Cache),
        None => (table.load_block(wanted, context), BlockSource::File),
    }
}

/// What was written down so far.
#[derive(Default)]
struct Notes {
    places: Vec<Searched>,
    passed_over: usize,
    /// The next table had to be opened.
    opened: bool,
}

impl Notes {
    fn begin(&mut self, place: Place) {
        self.places.push(Searched {
            place,
            opened: std::mem::take(&mut self.opened),
            from_row_cache: false,
            filter: FilterAnswer::NotAsked,
            blocks: Vec::new(),
            range_delete: None,
            versions: Vec::new(),
        });
    }

    fn here(&mut self) -> &mut Searched {
        self.places.last_mut().expect("a place is named before what is there")
    }

    fn block(&mut self, wanted: BlockRef, source: BlockSource) {
        let BlockRef { kind, place, .. } = wanted;
        let (offset, stored_bytes) = (place.offset, place.stored_bytes);
        self.here().blocks.push(BlockUse { kind, offset, stored_bytes, source });
    }
}

impl Observer for Notes {
    fn memtable(&mut self) {
        let place = match self.places.len().checked_sub(1) {
            None => Place::ActiveMemtable,
            Some(sealed) => Place::SealedMemtable(sealed),
        };
        self.begin(place);
    }

    fn passed_over(&mut self) {
        self.passed_over += 1;
    }

    fn table(&mut self, level: usize, file: &TableFile) {
        self.begin(Place::Table { level, number: file.meta.number });
    }

    fn filter(&mut self, may_contain: bool) {
        self.here().filter =
            if may_contain { FilterAnswer::MayContain } else { FilterAnswer::Denied };
    }

    fn range_delete(&mut self, sequence: SequenceNumber) {
        self.here().range_delete = (sequence > 0).then_some(sequence);
    }

    fn row(&mut self) {
        self.here().from_row_cache = true;
    }

    fn version(&mut self, trailer: Trailer, value: &[u8], hidden: bool) {
        let (sequence, kind) = (sequence_of(trailer), kind_of(trailer));
        let met = VersionMet { sequence, kind, value_bytes: value.len(), hidden };
        self.here().versions.push(met);
    }
}

/// Why the lookup ended as it did.
fn outcome(places: &[Searched], result: Result<Option<usize>>) -> Outcome {
    let value_bytes = match result {
        Ok(value_bytes) => value_bytes,
        Err(error) => return Outcome::Failed(error),
    };
    let versions = places.iter().flat_map(|place| &place.versions);
    let seen = || versions.clone().filter(|version| !version.hidden);
    let newest = seen().next();
    match (value_bytes, newest) {
        (Some(value_bytes), Some(newest)) => {
            let operands = seen().filter(|version| version.kind == Some(Kind::Merge)).count();
            Outcome::Found { value_bytes, sequence: newest.sequence, operands }
        }
        (Some(_), None) => unreachable!("a value follows from a version"),
        (None, Some(newest)) => {
            let by = newest.kind.expect("an unknown kind is an error");
            Outcome::Deleted { sequence: newest.sequence, by }
        }
        (None, None) => match places.iter().find_map(|place| place.range_delete) {
            Some(sequence) => Outcome::Deleted { sequence, by: Kind::RangeDelete },
            None => Outcome::Absent,
        },
    }
}

impl Explanation {
    /// Tables that were searched, by their filter or further.
    pub fn tables(&self) -> usize {
        self.places.iter().filter(|p| matches!(p.place, Place::Table { .. })).count()
    }

    /// Versions, operands and deletes that were met and did not count, because
    /// a range delete hides them.
    pub fn hidden(&self) -> usize {
        self.places.iter().flat_map(|place| &place.versions).filter(|met| met.hidden).count()
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explanation { family, sequence, .. } = self;
        writeln!(f, "in family {family}, up to sequence number {sequence}:")?;
        for place in &self.places {
            write!(f, "  {place}")?;
        }
        writeln!(f, "{}", self.outcome)?;
        let (tables, over) = (self.tables(), self.passed_over);
        writeln!(f, "{tables} tables searched, {over} of level 0 passed over, {:?}", self.elapsed)
    }
}

impl fmt::Display for Searched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let opened = if self.opened { "opened, " } else { "" };
        let row = if self.from_row_cache { "from the row cache, " } else { "" };
        let versions = match self.versions.len() {
            0 => "no version".to_string(),
            1 => "1 version".to_string(),
            many => format!("{many} versions"),
        };
        let said = match self.filter {
            FilterAnswer::NotAsked => versions,
            FilterAnswer::MayContain => format!("the filter lets it pass, {versions}"),
            FilterAnswer::Denied => "the filter denies it".to_string(),
        };
        writeln!(f, "{}: {opened}{row}{said}", self.place)?;
        for block in &self.blocks {
            writeln!(f, "    {block}")?;
        }
        if let Some(sequence) = self.range_delete {
            writeln!(f, "    a range delete @{sequence} hides what is older")?;
        }
        for version in &self.versions {
            writeln!(f, "    {version}")?;
        }
        Ok(())
    }
}

impl fmt::Display for BlockUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BlockUse { offset, stored_bytes, .. } = self;
        let kind = match self.kind {
            BlockKind::Data => "block of entries",
            BlockKind::Index => "part of the index",
            BlockKind::Filter => "part of the filter",
        };
        let source = match self.source {
            BlockSource::Cache => "the cache",
            BlockSource::File => "the file",
        };
        write!(f, "{kind} at offset {offset}, {stored_bytes} bytes, from {source}")
    }
}

impl fmt::Display for VersionMet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let VersionMet { sequence, value_bytes, .. } = self;
        match self.kind {
            Some(kind) => write!(f, "{} @{sequence}", kind.name())?,
            None => write!(f, "unknown kind @{sequence}")?,
        }
        if matches!(self.kind, Some(Kind::Put | Kind::Merge)) {
            write!(f, ", {value_bytes} bytes")?;
        }
        if self.hidden { write!(f, ", hidden") } else { Ok(()) }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Found { value_bytes, sequence, operands: 0 } => {
                write!(f, "found: {value_bytes} bytes, put @{sequence}")
            }
            Outcome::Found { value_bytes, sequence, operands } => {
                write!(f, "found: {value_bytes} bytes, merged of {operands} operands, ")?;
                write!(f, "the newest @{sequence}")
            }
            Outcome::Deleted { sequence, by } => write!(f, "deleted: {} @{sequence}", by.name()),
            Outcome::Absent => write!(f, "absent: no trace of the key"),
            Outcome::Failed(error) => write!(f, "failed: {error}"),
        }
    }
}
