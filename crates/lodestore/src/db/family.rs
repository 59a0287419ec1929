//! Families: trees of their own inside one database, and what all of them
//! use to read.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use crate::batch::FamilyId;
use crate::budget::{Account, Charge, Item};
use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::events::Events;
use crate::fs::Fs;
use crate::gaps::Gaps;
use crate::key::KeyOrder;
use crate::latency::{self, Operation};
use crate::merge_operator::SharedMergeOperator;
use crate::options::FamilyOptions;
use crate::rows::RowCache;
use crate::scheduler::Scheduler;
use crate::stats::Statistics;
use crate::sync::{Arc, Published};
use crate::table::ReadContext;
use crate::tables::TableHome;

use super::pacer::Pacer;
use super::pending::Pending;
use super::snapshot::{Snapshot, SnapshotList};
use super::view::{Views, VisibleSequence};

/// The name of the family that every database has.
pub(crate) const DEFAULT_NAME: &str = "default";

/// What all families of an open database use to read.
pub(crate) struct Shared {
    pub(crate) fs: Arc<dyn Fs>,
    pub(crate) directory: PathBuf,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) memory: Arc<Account>,
    pub(crate) rows: Arc<RowCache>,
    pub(crate) statistics: Arc<Statistics>,
    pub(crate) home: Arc<TableHome>,
    pub(crate) snapshots: Arc<SnapshotList>,
    pub(crate) visible: VisibleSequence,
    pub(crate) events: Events,
    /// Whether operations are timed.
    pub(crate) latencies: bool,
}

impl Shared {
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.snapshots.take(|| self.visible.get())
    }

    /// Does `work`, and times it if it is its turn.
    #[inline]
    pub(crate) fn timed<T>(&self, operation: Operation, work: impl FnOnce() -> T) -> T {
        let begin = if self.latencies { latency::begin(operation) } else { None };
        let done = work();
        if let Some(begin) = begin {
            self.statistics.time_since(operation, begin);
        }
        done
    }

    /// Counts how long something took that has read the clock anyway.
    pub(crate) fn count_time(&self, operation: Operation, time: Duration) {
        if self.latencies {
            self.statistics.time(operation, time);
        }
    }
}

/// One family, open.
pub(crate) struct FamilyCore {
    pub(crate) id: FamilyId,
    pub(crate) name: String,
    /// They may change while the family is open, all but these two.
    options: Published<FamilyOptions>,
    order: KeyOrder,
    pub(crate) merge_operator: Option<SharedMergeOperator>,
    pub(crate) views: Views,
    /// Where its walks found nothing.
    pub(crate) gaps: Arc<Gaps>,
    /// Where its writers wait while its background work is behind.
    pub(crate) pacer: Pacer,
    /// Its lookups that wait for a reading thread.
    pub(crate) pending: Pending,
    pub(crate) shared: Arc<Shared>,
    filling: ReadContext,
    passing: ReadContext,
}

impl std::fmt::Debug for FamilyCore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FamilyCore").field("id", &self.id).field("name", &self.name).finish()
    }
}

impl FamilyCore {
    pub(crate) fn new(
        id: FamilyId,
        name: &str,
        options: FamilyOptions,
        views: Views,
        shared: &Arc<Shared>,
    ) -> Arc<FamilyCore> {
        let context = |fill_cache| ReadContext {
            cache: Arc::clone(&shared.cache),
            fill_cache,
            rows: Some(Arc::clone(&shared.rows)),
            statistics: Arc::clone(&shared.statistics),
            buffers: Charge::new(&shared.memory, Item::Cursors),
            waits_for_device: shared.home.reads_direct(),
        };
        Arc::new(FamilyCore {
            id,
            name: name.to_string(),
            order: options.order.clone(),
            merge_operator: options.merge_operator.clone(),
            views,
            gaps: Gaps::new(options.order.clone(), &shared.statistics),
            options: Published::new(Arc::new(options)),
            pacer: Pacer::default(),
            pending: Pending::default(),
            shared: Arc::clone(shared),
            filling: context(true),
            passing: context(false),
        })
    }

    #[inline]
    pub(crate) fn order(&self) -> &KeyOrder {
        &self.order
    }

    /// What holds now.
    #[inline]
    pub(crate) fn options(&self) -> impl Deref<Target = Arc<FamilyOptions>> + use<> {
        self.options.load()
    }

    /// Replaces the options. Only under the commit lock.
    pub(crate) fn set_options(&self, options: FamilyOptions) {
        self.options.store(Arc::new(options));
    }

    /// True if another memtable may be sealed.
    pub(crate) fn has_room(&self) -> bool {
        self.views.load().sealed.len() < self.options().sealed_memtables_max
    }

    /// Opens tables that nobody has used yet, if that is wanted. One that cannot be
    /// opened is left to whoever needs it, who is told.
    pub(crate) fn preload_tables(&self) {
        if self.shared.home.preloads {
            let view = self.views.keep();
            let levels = view.version.levels().iter();
            levels.flat_map(|level| level.tables().iter()).for_each(|table| drop(table.table()));
        }
    }

    /// How blocks are fetched, with or without keeping them in the cache.
    #[inline]
    pub(crate) fn context(&self, fill_cache: bool) -> &ReadContext {
        if fill_cache { &self.filling } else { &self.passing }
    }
}

/// The open families, by id and by name.
#[derive(Clone, Default)]
pub(crate) struct Families {
    by_id: BTreeMap<FamilyId, Arc<FamilyCore>>,
}

impl Families {
    pub(crate) fn insert(&mut self, family: Arc<FamilyCore>) {
        self.by_id.insert(family.id, family);
    }

    pub(crate) fn remove(&mut self, id: FamilyId) {
        self.by_id.remove(&id);
    }

    pub(crate) fn get(&self, id: FamilyId) -> Option<&Arc<FamilyCore>> {
        self.by_id.get(&id)
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Arc<FamilyCore>> {
        self.by_id.values().find(|family| family.name == name)
    }

    /// All families, the default one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<FamilyCore>> {
        self.by_id.values()
    }
}

/// Refuses names that could not be told apart or shown.
pub(crate) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > 255 || name.chars().any(char::is_control) {
        return Err(Error::invalid(format!(
            "{name:?} is no family name: 1 to 255 bytes without control characters"
        )));
    }
    Ok(())
}
