//! Ingesting: tables that were written outside of the database become its own.
//!
//! files -> copied or linked, and checked (`arrive`) -> what memtables hold of
//! their keys is flushed -> log synced -> one `VersionEdit` -> views and
//! visible number
//!
//! Invariants: until the edit the database is as it was, and what a crash
//! leaves of the files is removed by the next open; the edit is durable only
//! after all earlier writes are, so that what is recovered is a prefix of them;
//! no memtable holds an older entry of a key of an ingested table.

mod arrive;

use std::path::{Path, PathBuf};

use crate::batch::FamilyId;
use crate::compact::pick;
use crate::error::{Error, Result};
use crate::key::{SEQUENCE_MAX, SequenceNumber};
use crate::options::IngestOptions;
use crate::stats::Counter;
use crate::sync::Arc;
use crate::table::meta::TableMeta;
use crate::version::{KeyRange, VersionEdit};

use super::background::BackgroundState;
use super::commit::CommitState;
use super::compaction::limits;
use super::engine::Engine;
use super::family::FamilyCore;

use arrive::{Arrivals, Arrived};

/// What came of ingesting tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IngestReport {
    /// The tables, in the order in which they were given.
    pub tables: Vec<IngestedTable>,
    /// Files that were to be moved and could not be removed from where they
    /// were. Their tables are in the database all the same.
    pub sources_left: Vec<PathBuf>,
}

/// A table that was ingested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngestedTable {
    /// Where it came from.
    pub source: PathBuf,
    /// The level that it was put at.
    pub level: usize,
    /// The sequence number of everything in it.
    pub sequence: SequenceNumber,
    /// Puts, deletes and operands.
    pub entries: u64,
    /// Range deletes.
    pub range_deletes: u64,
    /// Length of the file.
    pub bytes: u64,
    /// True if the file was linked, false if it was copied.
    pub linked: bool,
}

impl Engine {
    /// Ingests tables, each into its family.
    pub(crate) fn ingest(
        self: &Arc<Self>,
        tables: Vec<(Arc<FamilyCore>, PathBuf)>,
        options: &IngestOptions,
    ) -> Result<IngestReport> {
        self.check_writable()?;
        if tables.is_empty() {
            return Ok(IngestReport::default());
        }
        let mut arrivals = self.take_in(tables, options)?;
        // Most of what is in memory is flushed while writers go on.
        let in_memory = {
            let commit = self.commit.lock();
            self.families_to_flush(&commit, &arrivals.tables)
        };
        if !in_memory.is_empty() {
            self.flush(&in_memory)?;
        }
        let ingested = self.while_writers_wait(|| self.install_arrivals(&mut arrivals))?;
        self.count_ingested(&ingested);
        self.update_pressure();
        self.compact_arrived();
        let sources_left = match options.move_files {
            true => self.remove_sources(&ingested),
            false => Vec::new(),
        };
        Ok(IngestReport { tables: ingested, sources_left })
    }

    /// Writers wait meanwhile, so that what is flushed does not fill again.
    fn install_arrivals(
        self: &Arc<Self>,
        arrivals: &mut Arrivals<'_>,
    ) -> Result<Vec<IngestedTable>> {
        loop {
            let mut commit = self.commit.lock();
            self.prepare(&mut commit)?;
            for Arrived { family, .. } in &arrivals.tables {
                if commit.memtable(family.id).is_none() {
                    return Err(Error::missing(format!("family {:?}", family.name)));
                }
            }
            let in_memory = self.families_to_flush(&commit, &arrivals.tables);
            if in_memory.is_empty() {
                return self.install_at_once(&mut commit, arrivals);
            }
            drop(commit);
            self.flush(&in_memory)?;
        }
    }

    /// Families of which memtables hold something that has to be in tables
    /// first: what is about keys of the arrivals; with logging off, anything,
    /// because the edit makes durable what came after it.
    fn families_to_flush(&self, commit: &CommitState, tables: &[Arrived]) -> Vec<FamilyId> {
        let must_flush = |family: &FamilyCore| {
            let view = family.views.keep();
            std::iter::once(&view.active).chain(&view.sealed).any(|memtable| {
                let own = tables.iter().filter(|table| table.family.id == family.id);
                let mut metas = own.map(|table| &table.meta);
                !self.logging && !memtable.is_empty()
                    || metas.any(|meta| {
                        memtable.overlaps(&meta.smallest.user_key, &meta.largest.user_key)
                    })
            })
        };
        let families = commit.memtables().iter().map(|active| &active.family);
        families.filter(|family| must_flush(family)).map(|family| family.id).collect()
    }

    /// Gives the arrivals their numbers and levels and makes them part of the
    /// database, by one edit.
    fn install_at_once(
        &self,
        commit: &mut CommitState,
        arrivals: &mut Arrivals<'_>,
    ) -> Result<Vec<IngestedTable>> {
        let first = commit.last_sequence + 1;
        let last = commit.last_sequence + arrivals.tables.len() as u64;
        if last > SEQUENCE_MAX {
            return Err(Error::invalid("sequence numbers end at 2^56 - 1"));
        }
        if self.logging {
            self.sync_commit_log(commit).inspect_err(|error| self.health.take(error))?;
        }
        // Held throughout, so that no compaction begins that would write where
        // the tables go.
        let background = self.background.lock();
        let tables = arrivals.hand_over();
        let ingested = place(&background, &tables, first);
        let mut edit = VersionEdit { last_sequence: Some(last), ..VersionEdit::default() };
        for (arrived, IngestedTable { level, sequence, .. }) in tables.iter().zip(&ingested) {
            let meta = arrived.meta.clone().with_sequence(*sequence);
            edit.tables_added.push((arrived.family.id.0, *level, meta));
        }
        let installed = self.versions.apply_at_once(edit, Default::default(), |versions| {
            self.shared.snapshots.hold_still(|| {
                for (id, version) in versions {
                    let arrived = tables.iter().find(|arrived| arrived.family.id.0 == *id);
                    let family = &arrived.expect("the edit is about these families").family;
                    family.views.install(Arc::clone(version), &[]);
                    family.gaps.forget();
                }
                self.shared.visible.publish(last);
            });
        });
        drop(background);
        // Also after a failure: the edit may be found after a crash, and nothing else may
        // have its numbers then.
        commit.last_sequence = last;
        installed.inspect_err(|error| self.health.take(error))?;
        if self.logging {
            self.logs.add_gap(first, last);
        }
        Ok(ingested)
    }

    fn count_ingested(&self, ingested: &[IngestedTable]) {
        let statistics = &self.shared.statistics;
        let linked = ingested.iter().filter(|table| table.linked).count();
        statistics.add(Counter::TablesIngested, ingested.len() as u64);
        statistics.add(Counter::TablesLinked, linked as u64);
        statistics.add(Counter::IngestBytes, ingested.iter().map(|table| table.bytes).sum());
    }

    /// Removes the files that were moved; gives those that stayed.
    fn remove_sources(&self, ingested: &[IngestedTable]) -> Vec<PathBuf> {
        let stays = |source: &&Path| match self.shared.fs.remove(source) {
            // One file may have been given twice.
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
            Ok(()) => false,
        };
        let sources = ingested.iter().map(|table| table.source.as_path());
        sources.filter(stays).map(Path::to_path_buf).collect()
    }
}

/// Chooses each table's level; each is newer than those before it.
fn place(
    background: &BackgroundState,
    tables: &[Arrived],
    first: SequenceNumber,
) -> Vec<IngestedTable> {
    let mut placed: Vec<(FamilyId, (usize, KeyRange))> = Vec::new();
    let mut ingested = Vec::with_capacity(tables.len());
    for (sequence, arrived) in (first..).zip(tables) {
        let Arrived { family, meta, source, linked } = arrived;
        let own = placed.iter().filter(|(id, _)| *id == family.id);
        let own: Vec<(usize, KeyRange)> = own.map(|(_, table)| table.clone()).collect();
        let range = key_range(meta);
        let version = Arc::clone(&family.views.load().version);
        let running = background.running_of(family.id);
        let level = pick::level_for(&version, &limits(family), &running, &own, &range);
        placed.push((family.id, (level, range)));
        ingested.push(IngestedTable {
            source: source.clone(),
            level,
            sequence,
            entries: meta.entries,
            range_deletes: meta.range_tombstones,
            bytes: meta.bytes,
            linked: *linked,
        });
    }
    ingested
}

fn key_range(meta: &TableMeta) -> KeyRange {
    KeyRange { first: meta.smallest.user_key.clone(), last: meta.largest.user_key.clone() }
}
