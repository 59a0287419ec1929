//! The log of a damaged database: segment by segment, record by record.
//!
//! Behind a damaged record the next header is looked for, as recovery looks for
//! witnesses. Records behind the place where a successor says that a segment
//! was sealed are those of failed writes, and don't count.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::batch::{BatchRef, FamilyId, Record};
use crate::error::{Error, Result, Undecodable};
use crate::filename::{self, FileKind};
use crate::fs::{Fs, ReadableFile};
use crate::key::{Kind, SequenceNumber};
use crate::record::{End, Next, scan};
use crate::sync::Arc;
use crate::version::FamilyDescriptor;
use crate::wal::{self, BatchReader, HEADER_BLOCK_BYTES, SegmentHeader, nearest_record};

use super::guide::Guide;
use super::numbers::Numbers;
use super::report::Loss;
use super::tables::Tables;

/// The segments that count.
#[derive(Default)]
pub(super) struct Log {
    /// By number.
    segments: BTreeMap<u64, Segment>,
    /// The last edit of the manifest that a segment knows of.
    pub(super) manifest_edit: u64,
    /// Entries that no table holds yet.
    pub(super) entries: u64,
    /// Families of these entries.
    pub(super) families: Vec<FamilyId>,
    pub(super) last_sequence: SequenceNumber,
    pub(super) losses: Vec<Loss>,
    /// Which entries are needed, by family: from this segment on, and above
    /// this number.
    needs: BTreeMap<u32, Need>,
}

#[derive(Clone, Copy)]
struct Need {
    first_segment: u64,
    above: SequenceNumber,
}

struct Segment {
    path: PathBuf,
    file: Arc<dyn ReadableFile>,
    header: SegmentHeader,
    /// Where it was sealed, if its successor is here.
    limit: u64,
    /// It goes at least so far, by the manifest or its successor.
    known_bytes: u64,
}

/// What all segments together have.
#[derive(Default)]
struct Survey {
    families: Vec<FamilyId>,
    numbers: Numbers,
}

impl Survey {
    fn add(&mut self, sequence: SequenceNumber, record: &Record<'_>) {
        if let Record::Entry { family, .. } = record
            && !self.families.contains(family)
        {
            self.families.push(*family);
        }
        if record.takes_sequence() {
            self.numbers.add(sequence);
        }
    }
}

/// A run of entries that are needed, for one batch.
pub(super) type Visit<'a> =
    dyn FnMut(SequenceNumber, FamilyId, Kind, &[u8], &[u8]) -> Result<()> + 'a;

impl Log {
    /// Finds the segments by what their headers say.
    pub(super) fn find(
        fs: &dyn Fs,
        directory: &Path,
        files: &[(String, u64)],
        guide: &Guide,
    ) -> Result<Log> {
        let mut log = Log::default();
        for (name, bytes) in files {
            let Some(FileKind::Log(number)) = filename::parse(name) else { continue };
            log.find_one(fs, directory.join(name), number, *bytes, guide)?;
        }
        log.link(directory, guide);
        Ok(log)
    }

    fn find_one(
        &mut self,
        fs: &dyn Fs,
        path: PathBuf,
        number: u64,
        bytes: u64,
        guide: &Guide,
    ) -> Result<()> {
        let file = fs.open(&path).map_err(|error| Error::io(&path, "open", error))?;
        let header = match wal::read_header(&*file, &path) {
            Ok(header) => header,
            Err(error) if error.is_corruption() => {
                // A segment that was not begun has none either.
                if guide.state.durable_log.number == number && bytes > 0 {
                    self.lose(&path, "its header is damaged: what it held is lost", None);
                }
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if let Some(what) = guide.disowns(&header) {
            self.lose(&path, &format!("{what}: what this one's held is lost"), None);
            return Ok(());
        }
        let start = HEADER_BLOCK_BYTES;
        let mut reader = BatchReader::new(Arc::clone(&file), &path, &header, start, u64::MAX);
        while let Next::Record { .. } = reader.next()? {}
        self.manifest_edit =
            self.manifest_edit.max(header.manifest_edit).max(reader.records().manifest_edit());
        let number = header.number;
        let segment = Segment { path, file, header, limit: u64::MAX, known_bytes: 0 };
        self.segments.insert(number, segment);
        Ok(())
    }

    /// Lets each segment know what its successor says of it, and finds those
    /// that are missing.
    fn link(&mut self, directory: &Path, guide: &Guide) {
        let first_live = guide.state.oldest_log_number().unwrap_or(0);
        let known: Vec<_> =
            self.segments.values().map(|segment| segment.header.predecessor).collect();
        for predecessor in known.into_iter().flatten() {
            match self.segments.get_mut(&predecessor.number) {
                Some(segment) if segment.header.id == predecessor.id => {
                    segment.limit = predecessor.bytes;
                    segment.known_bytes = predecessor.bytes;
                }
                found => {
                    let is_other = found.is_some();
                    if guide.is_exact() && predecessor.number >= first_live {
                        let path = filename::log_path(directory, predecessor.number);
                        let what = if is_other { "it is another log" } else { "it is missing" };
                        self.lose(&path, &format!("{what}: what it held is lost"), None);
                        self.segments.remove(&predecessor.number);
                    }
                }
            }
        }
        let durable = guide.state.durable_log;
        match self.segments.get_mut(&durable.number) {
            Some(segment) => segment.known_bytes = segment.known_bytes.max(durable.bytes),
            None if guide.is_exact() && durable.number >= first_live.max(1) => {
                let path = filename::log_path(directory, durable.number);
                if !self.losses.iter().any(|loss| path.ends_with(&loss.file)) {
                    self.lose(&path, "it is missing: what it held is lost", None);
                }
            }
            None => {}
        }
    }

    fn lose(
        &mut self,
        path: &Path,
        what: &str,
        sequences: Option<(SequenceNumber, Option<SequenceNumber>)>,
    ) {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let what = what.to_string();
        self.losses.push(Loss { file, what, sequences, deletes: true, ..Loss::default() });
    }

    /// Reads everything: counts what is needed, notes what is damaged, and lets
    /// `guide` know of families that are met here only.
    pub(super) fn read(&mut self, guide: &mut Guide, tables: &Tables) -> Result<()> {
        let survey = match guide.is_exact() {
            true => None,
            false => Some(self.survey()?),
        };
        for (&id, family) in &guide.state.families {
            let numbers = survey.as_ref().map(|survey| &survey.numbers);
            let above = numbers.map_or(0, |numbers| tables.flushed_up_to(id, numbers));
            self.needs.insert(id, Need { first_segment: family.log_number, above });
        }
        if let Some(Survey { families, .. }) = survey {
            self.add_families(families, guide);
        }
        let mut damages = Vec::new();
        let (mut entries, mut last, mut families) = (0, 0, Vec::new());
        self.visit(
            &mut |sequence, family, _, _, _| {
                entries += 1;
                last = last.max(sequence);
                if !families.contains(&family) {
                    families.push(family);
                }
                Ok(())
            },
            &mut |damage| damages.push(damage),
        )?;
        (self.entries, self.last_sequence, self.families) = (entries, last, families);
        for Damage { path, what, after, before } in damages {
            let sequences = Some((after + 1, before.map(|before| before.saturating_sub(1))));
            self.lose(&path, &what, sequences);
        }
        Ok(())
    }

    /// Looks through all segments, needed or not.
    fn survey(&self) -> Result<Survey> {
        let mut survey = Survey::default();
        for segment in self.segments.values() {
            segment.visit(
                0,
                &mut |sequence, record| {
                    survey.add(sequence, &record);
                    Ok(())
                },
                &mut |_| {},
            )?;
        }
        Ok(survey)
    }

    /// Lets `guide` know those of `families` that only the log knows.
    fn add_families(&mut self, families: Vec<FamilyId>, guide: &mut Guide) {
        for FamilyId(id) in families {
            if self.needs.contains_key(&id) {
                continue;
            }
            let name = if id == 0 { "default".to_string() } else { format!("family-{id}") };
            let comparator = crate::key::KeyOrder::Bytewise.name().to_string();
            guide.notes.push(format!(
                "only the log knows of family {id}: it is called {name:?}, and its keys are taken \
                 for bytewise; it may be one that was dropped"
            ));
            guide.add_family(FamilyDescriptor { id, name, comparator, ..Default::default() });
            self.needs.insert(id, Need { first_segment: 0, above: 0 });
        }
    }

    /// Gives every entry that is needed to `visit`, in order.
    pub(super) fn visit(
        &self,
        visit: &mut Visit<'_>,
        damaged: &mut dyn FnMut(Damage),
    ) -> Result<()> {
        let mut last = 0;
        for (&number, segment) in &self.segments {
            let needed = self.needs.values().map(|need| need.first_segment).min();
            if needed.is_none_or(|needed| number < needed) {
                continue;
            }
            last = segment.visit(
                last,
                &mut |sequence, record| {
                    let Record::Entry { family, kind, key, value } = record else { return Ok(()) };
                    let is_needed = self
                        .needs
                        .get(&family.0)
                        .is_some_and(|need| number >= need.first_segment && sequence > need.above);
                    if is_needed { visit(sequence, family, kind, key, value) } else { Ok(()) }
                },
                damaged,
            )?;
        }
        Ok(())
    }
}

/// A place where records are missing.
pub(super) struct Damage {
    path: PathBuf,
    what: String,
    /// The last number before it, and the first one behind it.
    after: SequenceNumber,
    before: Option<SequenceNumber>,
}

impl Segment {
    /// Gives every record to `visit`; `last` is the last number before this
    /// segment. Gives the last number in it.
    fn visit(
        &self,
        mut last: SequenceNumber,
        visit: &mut dyn FnMut(SequenceNumber, Record<'_>) -> Result<()>,
        damaged: &mut dyn FnMut(Damage),
    ) -> Result<SequenceNumber> {
        last = last.max(self.header.first_sequence.saturating_sub(1));
        let mut at = HEADER_BLOCK_BYTES;
        let mut open: Option<Damage> = None;
        loop {
            let file = Arc::clone(&self.file);
            let mut reader = BatchReader::new(file, &self.path, &self.header, at, self.limit);
            let end = loop {
                let (offset, payload) = match reader.next()? {
                    Next::Record { offset, payload, .. } => (offset, payload),
                    Next::End(end) => break end,
                };
                // Sound and senseless, or written for another past.
                let batch = decoded(payload, &self.path, offset)?;
                let Some(batch) = batch.filter(|batch| batch.sequence() > last) else {
                    let what = "a batch is malformed, or its number was given out before";
                    open.get_or_insert_with(|| self.damage(offset, what, last));
                    continue;
                };
                if let Some(damage) = open.take() {
                    damaged(Damage { before: Some(batch.sequence()), ..damage });
                }
                let mut sequence = batch.sequence();
                for record in batch.records() {
                    visit(sequence, record)?;
                    sequence += u64::from(record.takes_sequence());
                }
                last = last.max(sequence.saturating_sub(1));
            };
            let offset = end.offset();
            let past = scan(&*self.file, &self.path, self.header.id, offset + 1)?;
            let nearest = nearest_record(&*self.file, &self.path, &self.header, offset, &past)?;
            let is_followed = nearest.is_some_and(|nearest| nearest < self.limit);
            if is_followed || offset < self.known_bytes || matches!(end, End::Torn { .. }) {
                let what = match end {
                    End::Torn { what, .. } => what,
                    _ if is_followed => "a record is damaged",
                    _ => "the log ends early",
                };
                open.get_or_insert_with(|| self.damage(offset, what, last));
            }
            // A short record can't be read: what it follows is lost.
            match past.first.filter(|&next| next < self.limit) {
                Some(next) => at = next,
                None => break,
            }
        }
        if let Some(damage) = open {
            damaged(damage);
        }
        Ok(last)
    }

    fn damage(&self, offset: u64, what: &str, after: SequenceNumber) -> Damage {
        let what = format!("at offset {offset}: {what}");
        Damage { path: self.path.clone(), what, after, before: None }
    }
}

/// The batch that `payload` is; `None` if it is none.
///
/// # Errors
/// `Incompatible` if a newer build wrote it: what it says must not be left out.
fn decoded<'a>(payload: &'a [u8], path: &Path, offset: u64) -> Result<Option<BatchRef<'a>>> {
    match BatchRef::decode(payload) {
        Ok(batch) => Ok(Some(batch)),
        Err(Undecodable::Corrupt(_)) => Ok(None),
        Err(unknown) => Err(unknown.at(path, offset)),
    }
}
