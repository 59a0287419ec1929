//! The work of flushes and compactions: entries in, tables out.
//!
//! merged cursor -> `Retain` -> `TableBuilder` -> `TableMeta` for the manifest
//! Invariant: all versions of a user key go to one table, so that tables of a
//! level never share a user key, nor what stands for a long one in their
//! bounds. Range deletes are cut where the tables are: each table has what lies
//! before the first key of the next one.

use crate::cursor::Cursor;
use crate::error::Result;
use crate::key::{KeyOrder, Kind, Trailer, VALUE_BYTES_MAX, kind_of, sequence_of};
use crate::merge_operator::SharedMergeOperator;
use crate::range_deletes::Fragments;
use crate::sync::Arc;
use crate::table::TableBuilder;
use crate::table::meta::TableMeta;
use crate::tables::TableFile;

use super::retain::{Retain, Verdict};

/// How much is read from one question whether to go on to the next: what takes a
/// few milliseconds.
const BYTES_UNASKED_MAX: usize = 1 << 20;

/// Where output goes: opens a table when one is needed, closes it when it is
/// large enough.
pub(crate) struct Outputs<'a> {
    /// Creates the next table.
    pub(crate) begin: &'a dyn Fn() -> Result<NewTable>,
    /// Asked now and then: an error ends the work.
    go_on: &'a dyn Fn() -> Result<()>,
    bytes_unasked: usize,
    /// A table is closed at this size.
    pub(crate) table_bytes_max: u64,
    /// Tables of the level below the output: one output table should not
    /// overlap too many of them, or moving it on would be dear.
    pub(crate) grandparents: Grandparents,
    pub(crate) order: KeyOrder,
    part: Part,
    /// The range deletes to be written.
    range_deletes: Fragments,
    /// Where the table that is open, or the next one, begins; `None`: at the
    /// first key of all.
    begins: Option<Vec<u8>>,
    open: Option<NewTable>,
    finished: Vec<TableMeta>,
}

/// A range of user keys: from the first, included, to the last, excluded;
/// `None` is an open end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    pub(crate) from: Option<Vec<u8>>,
    pub(crate) to: Option<Vec<u8>>,
}

/// A table being written.
pub(crate) struct NewTable {
    pub(crate) number: u64,
    created_unix_seconds: u64,
    tombstones_unix_seconds: u64,
    pub(crate) builder: TableBuilder,
}

impl NewTable {
    /// A table that is begun at `unix_seconds`, and so are its tombstones.
    pub(crate) fn begin(number: u64, unix_seconds: u64, builder: TableBuilder) -> NewTable {
        let (created_unix_seconds, tombstones_unix_seconds) = (unix_seconds, unix_seconds);
        NewTable { number, created_unix_seconds, tombstones_unix_seconds, builder }
    }

    /// The same with tombstones that were there before.
    pub(crate) fn with_tombstones_from(self, unix_seconds: u64) -> NewTable {
        NewTable { tombstones_unix_seconds: unix_seconds, ..self }
    }

    /// Ends the table. Gives what the manifest records of it.
    pub(crate) fn finish(self) -> Result<TableMeta> {
        let meta = TableMeta { number: self.number, ..self.builder.finish()? };
        Ok(meta.dated(self.created_unix_seconds, self.tombstones_unix_seconds))
    }
}

/// How much of the level below the output an output table overlaps.
#[derive(Default)]
pub(crate) struct Grandparents {
    tables: Vec<Arc<TableFile>>,
    passed: usize,
    overlap_bytes: u64,
    overlap_bytes_max: u64,
}

impl Grandparents {
    /// `tables` are sorted; an output table is closed before it overlaps more
    /// than `overlap_bytes_max` of them.
    pub(crate) fn new(tables: Vec<Arc<TableFile>>, overlap_bytes_max: u64) -> Grandparents {
        Grandparents { tables, passed: 0, overlap_bytes: 0, overlap_bytes_max }
    }

    /// Goes on to `user_key`; true if the table so far overlaps too much.
    fn pass(&mut self, user_key: &[u8], order: &KeyOrder) -> bool {
        while let Some(table) = self.tables.get(self.passed) {
            if order.compare(user_key, &table.meta.largest.user_key).is_le() {
                break;
            }
            self.overlap_bytes += table.meta.bytes;
            self.passed += 1;
        }
        self.overlap_bytes > self.overlap_bytes_max
    }
}

impl<'a> Outputs<'a> {
    pub(crate) fn new(
        begin: &'a dyn Fn() -> Result<NewTable>,
        table_bytes_max: u64,
        grandparents: Grandparents,
        order: KeyOrder,
    ) -> Outputs<'a> {
        Outputs {
            begin,
            go_on: &|| Ok(()),
            bytes_unasked: 0,
            table_bytes_max,
            grandparents,
            order,
            part: Part::default(),
            range_deletes: Fragments::default(),
            begins: None,
            open: None,
            finished: Vec::new(),
        }
    }

    /// Ends with the error of `go_on` soon after that begins to give one.
    pub(crate) fn while_allowed(self, go_on: &'a dyn Fn() -> Result<()>) -> Outputs<'a> {
        Outputs { go_on, ..self }
    }

    /// Takes in the keys of `part` only.
    pub(crate) fn within(self, part: Part) -> Outputs<'a> {
        Outputs { begins: part.from.clone(), part, ..self }
    }

    /// Puts `cursor` where this output begins.
    fn seek_to_start(&self, cursor: &mut impl Cursor) {
        match &self.part.from {
            Some(from) => cursor.seek(from, Trailer::MAX),
            None => cursor.seek_to_first(),
        }
    }

    /// True if `user_key` is beyond this output's end.
    #[inline]
    fn ends_before(&self, user_key: &[u8]) -> bool {
        self.part.to.as_ref().is_some_and(|to| self.order.compare(user_key, to).is_ge())
    }

    /// Called before the first version of each user key: the only moment when
    /// a table may be closed.
    #[inline]
    fn start_key(&mut self, user_key: &[u8]) -> Result<()> {
        if self.bytes_unasked >= BYTES_UNASKED_MAX {
            self.bytes_unasked = 0;
            (self.go_on)()?;
        }
        let crowded = self.grandparents.pass(user_key, &self.order);
        let Some(open) = &self.open else { return Ok(()) };
        if (open.builder.estimated_bytes() >= self.table_bytes_max || crowded)
            && open.builder.may_end_before(user_key)
        {
            self.close(Some(user_key))?;
        }
        Ok(())
    }

    #[inline]
    fn add(&mut self, user_key: &[u8], trailer: Trailer, value: &[u8]) -> Result<()> {
        self.builder()?.add(user_key, trailer, value)
    }

    #[inline]
    fn builder(&mut self) -> Result<&mut TableBuilder> {
        if self.open.is_none() {
            self.grandparents.overlap_bytes = 0;
            self.open = Some((self.begin)()?);
        }
        Ok(&mut self.open.as_mut().expect("a table is open").builder)
    }

    /// Adds the entry of `cursor` with this trailer. A large value goes over in
    /// the block that it came in; its sequence number stays then, which costs
    /// nothing where no entry follows in the block.
    #[inline]
    fn keep(&mut self, cursor: &impl Cursor, trailer: Trailer) -> Result<()> {
        let (user_key, value) = (cursor.user_key(), cursor.value());
        let builder = self.builder()?;
        if value.len() >= builder.block_bytes()
            && let Some(stored) = cursor.stored()
            && builder.may_take_over(&stored)
            && kind_of(trailer) == kind_of(cursor.trailer())
        {
            return builder.take_over(user_key, cursor.trailer(), value.len(), stored);
        }
        builder.add(user_key, trailer, value)
    }

    /// Closes the table that is open, with the range deletes up to `next`, the
    /// key that the next table begins with, or the part's end. Without any
    /// entries, the range deletes may need a table all the same.
    fn close(&mut self, next: Option<&[u8]>) -> Result<()> {
        // Where the next table's bound is.
        let next = next.map(|key| self.order.floor(key));
        let deletes = self.range_deletes.clipped(self.begins.as_deref(), next);
        self.begins = next.map(<[u8]>::to_vec);
        if self.open.is_none() && !deletes.is_empty() {
            self.open = Some((self.begin)()?);
        }
        if let Some(mut table) = self.open.take() {
            table.builder.set_range_deletes(deletes);
            self.finished.push(table.finish()?);
        }
        Ok(())
    }
}

/// Writes what `retain` keeps of the entries of `cursor` to tables. Gives the
/// tables and the number of entries read.
pub(crate) fn write_tables(
    cursor: &mut impl Cursor,
    retain: &mut Retain,
    operator: Option<&SharedMergeOperator>,
    mut outputs: Outputs<'_>,
) -> Result<(Vec<TableMeta>, u64)> {
    let order = outputs.order.clone();
    outputs.range_deletes = retain.kept_range_deletes();
    let mut key: Vec<u8> = Vec::new();
    let mut is_first = true;
    let mut entries = 0;
    outputs.seek_to_start(cursor);
    while cursor.valid() {
        let user_key = cursor.user_key();
        let is_same_key = !is_first && order.compare(user_key, &key).is_eq();
        if !is_same_key {
            if outputs.ends_before(user_key) {
                break;
            }
            is_first = false;
            key.clear();
            key.extend_from_slice(user_key);
            outputs.start_key(user_key)?;
        }
        entries += 1;
        outputs.bytes_unasked += user_key.len() + cursor.value().len();
        match retain.judge(is_same_key, user_key, cursor.trailer()) {
            Verdict::Keep(trailer) => outputs.keep(cursor, trailer)?,
            Verdict::Drop => {}
            Verdict::Collect => {
                entries += collect_operands(cursor, retain, operator, &key, &mut outputs)?;
                continue;
            }
            Verdict::Single => {
                entries += settle_single_delete(cursor, retain, &key, &mut outputs)?;
                continue;
            }
        }
        cursor.next();
    }
    cursor.status()?;
    let end = outputs.part.to.clone();
    outputs.close(end.as_deref())?;
    Ok((outputs.finished, entries))
}

/// At a single delete: drops it with the put that it cancels, or keeps it if it
/// has to be kept. Leaves the cursor after what was settled; gives how many
/// entries that were beyond the first.
fn settle_single_delete(
    cursor: &mut impl Cursor,
    retain: &mut Retain,
    key: &[u8],
    outputs: &mut Outputs<'_>,
) -> Result<u64> {
    let single_delete = cursor.trailer();
    cursor.next();
    let is_same_key = cursor.valid() && outputs.order.compare(cursor.user_key(), key).is_eq();
    if is_same_key && retain.cancels(single_delete, cursor.trailer()) {
        cursor.next();
        return Ok(1);
    }
    if retain.keeps_single(key, single_delete) {
        outputs.add(key, single_delete, &[])?;
    }
    Ok(0)
}

/// Versions of one key in one stratum, newest first: operands, and what they
/// end in.
struct Chain {
    operands: Vec<(Trailer, Vec<u8>)>,
    base: Option<(Trailer, Vec<u8>)>,
    /// True if what follows is hidden by a range delete.
    is_cut: bool,
    /// True if the last version of the key was met.
    is_whole: bool,
}

/// At the newest operand of a stratum: takes in the versions that belong to it
/// and writes what they come to. Leaves the cursor after them; gives how many
/// there were beyond the first.
fn collect_operands(
    cursor: &mut impl Cursor,
    retain: &mut Retain,
    operator: Option<&SharedMergeOperator>,
    key: &[u8],
    outputs: &mut Outputs<'_>,
) -> Result<u64> {
    let newest = cursor.trailer();
    let stratum = retain.stratum(sequence_of(newest));
    let chain = collect_chain(cursor, retain, key, stratum, &outputs.order)?;
    let taken = chain.operands.len() + usize::from(chain.base.is_some());
    match merged(&chain, retain, operator, key, stratum) {
        Some(value) => outputs.add(key, retain.merged_trailer(newest, stratum), &value)?,
        None => {
            let operands = joined(chain.operands, operator, key);
            for (trailer, operand) in &operands {
                outputs.add(key, *trailer, operand)?;
            }
            match &chain.base {
                Some((trailer, _)) if retain.drops_base(key, *trailer) => {}
                Some((trailer, value)) => outputs.add(key, *trailer, value)?,
                // What is older in this stratum is still to be judged.
                None => retain.uncover(),
            }
        }
    }
    Ok(taken as u64 - 1)
}

fn collect_chain(
    cursor: &mut impl Cursor,
    retain: &mut Retain,
    key: &[u8],
    stratum: usize,
    order: &KeyOrder,
) -> Result<Chain> {
    let mut chain = Chain { operands: Vec::new(), base: None, is_cut: false, is_whole: false };
    loop {
        if !cursor.valid() || order.compare(cursor.user_key(), key).is_ne() {
            // The end of the input is the end of the key only without an error.
            cursor.status()?;
            chain.is_whole = true;
            return Ok(chain);
        }
        let trailer = cursor.trailer();
        if retain.stratum(sequence_of(trailer)) != stratum {
            return Ok(chain);
        }
        if retain.hides(key, trailer) {
            chain.is_cut = true;
            return Ok(chain);
        }
        match kind_of(trailer) {
            Some(Kind::Merge) => chain.operands.push((trailer, cursor.value().to_vec())),
            Some(Kind::Put | Kind::Delete | Kind::SingleDelete) => {
                chain.base = Some((trailer, cursor.value().to_vec()));
                cursor.next();
                return Ok(chain);
            }
            _ => return Ok(chain),
        }
        cursor.next();
    }
}

/// The value that a chain comes to, if it has a known beginning.
fn merged(
    chain: &Chain,
    retain: &mut Retain,
    operator: Option<&SharedMergeOperator>,
    key: &[u8],
    stratum: usize,
) -> Option<Vec<u8>> {
    let existing = match &chain.base {
        Some((trailer, value)) if kind_of(*trailer) == Some(Kind::Put) => Some(&value[..]),
        Some(_) => None,
        None if chain.is_cut || chain.is_whole && retain.is_oldest(key, stratum) => None,
        None => return None,
    };
    let operands: Vec<&[u8]> = chain.operands.iter().rev().map(|(_, o)| &o[..]).collect();
    operator?.full_merge(key, existing, &operands).filter(|value| fits(key, value))
}

/// True if an entry may be this long. What is merged may become longer than
/// what anyone may write: then its parts are kept.
fn fits(key: &[u8], value: &[u8]) -> bool {
    key.len().saturating_add(value.len()) <= VALUE_BYTES_MAX
}

/// Operands, newest first, of which neighbours were joined where the operator
/// can: the joined one stands where the newer one stood.
fn joined(
    operands: Vec<(Trailer, Vec<u8>)>,
    operator: Option<&SharedMergeOperator>,
    key: &[u8],
) -> Vec<(Trailer, Vec<u8>)> {
    let Some(operator) = operator else { return operands };
    let mut kept: Vec<(Trailer, Vec<u8>)> = Vec::with_capacity(operands.len());
    for (trailer, older) in operands {
        match kept.last_mut() {
            Some((_, newer)) => match operator.partial_merge(key, &older, newer) {
                Some(join) if fits(key, &join) => *newer = join,
                _ => kept.push((trailer, older)),
            },
            None => kept.push((trailer, older)),
        }
    }
    kept
}
