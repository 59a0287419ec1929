//! The current version of every family, and the one place where it changes.
//!
//! edit -> manifest record, synced -> new version -> the caller's views
//!
//! Invariant: what views show is what the manifest says, in the same order:
//! both happen under one lock.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::filename;
use crate::fs::Fs;
use crate::key::{FileId, KeyOrder};
use crate::scheduler::Scheduler;
use crate::stats::{Counter, Statistics};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};
use crate::tables::{TableFile, TableHome};
use crate::version::{Manifest, State, Version, VersionEdit};

/// A manifest is begun anew when it has outgrown its checkpoint by this much.
const MANIFEST_GROWTH_BYTES: u64 = 1 << 20;

/// The versions of all families, and the manifest that makes them durable.
pub(crate) struct Versions {
    inner: Mutex<Inner>,
    next_file_number: AtomicU64,
    home: Arc<TableHome>,
    statistics: Arc<Statistics>,
}

struct Inner {
    manifest: Manifest,
    /// Size of the manifest when it was begun.
    checkpoint_bytes: u64,
    state: State,
    families: BTreeMap<u32, Current>,
    /// Begin a new manifest at the next edit: the last one failed.
    must_rotate: bool,
}

struct Current {
    order: KeyOrder,
    version: Arc<Version>,
}

/// Which manifest holds which edit: what a log segment's header records, so
/// that an older manifest put back is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ManifestPosition {
    pub(crate) id: FileId,
    pub(crate) edit: u64,
}

impl Versions {
    /// The versions that `state` describes. `orders` has the order of each of
    /// its families. A new manifest is begun, with `first_edit` applied.
    ///
    /// # Errors
    /// `Corruption` if the state contradicts itself.
    pub(crate) fn begin(
        home: &Arc<TableHome>,
        statistics: &Arc<Statistics>,
        mut state: State,
        previous: Option<ManifestPosition>,
        database: FileId,
        orders: BTreeMap<u32, KeyOrder>,
    ) -> Result<Versions> {
        let families = build_families(home, &state, orders)?;
        let number = state.next_file_number;
        state.next_file_number += 1;
        let manifest = new_manifest(home, number, &state, previous, database)?;
        let checkpoint_bytes = manifest.bytes();
        statistics.add(Counter::ManifestRotations, 1);
        let next_file_number = AtomicU64::new(state.next_file_number);
        let inner = Inner { manifest, checkpoint_bytes, state, families, must_rotate: false };
        Ok(Versions {
            inner: Mutex::new(inner),
            next_file_number,
            home: Arc::clone(home),
            statistics: Arc::clone(statistics),
        })
    }

    /// A number that no file of this database has or had.
    pub(crate) fn new_file_number(&self) -> u64 {
        self.next_file_number.fetch_add(1, Ordering::Relaxed)
    }

    /// An id that no family of this database has or had.
    pub(crate) fn new_family_id(&self) -> u32 {
        self.inner.lock().state.next_family_id
    }

    /// The version of a family now.
    pub(crate) fn current(&self, family: u32) -> Option<Arc<Version>> {
        self.inner.lock().families.get(&family).map(|current| Arc::clone(&current.version))
    }

    /// The oldest log that some family needs.
    pub(crate) fn log_number_min(&self) -> u64 {
        self.inner.lock().state.oldest_log_number().unwrap_or(0)
    }

    /// The oldest log that `family` needs.
    pub(crate) fn log_number(&self, family: u32) -> Option<u64> {
        self.inner.lock().state.families.get(&family).map(|family| family.log_number)
    }

    /// Where the manifest is now.
    pub(crate) fn position(&self) -> ManifestPosition {
        self.inner.lock().position()
    }

    /// A copy of the durable description, with its versions, at one moment.
    pub(crate) fn capture(&self) -> (State, ManifestPosition, Vec<Arc<Version>>) {
        let inner = self.inner.lock();
        let versions = inner.families.values().map(|current| Arc::clone(&current.version));
        let mut state = inner.state.clone();
        state.next_file_number = self.next_file_number.load(Ordering::Relaxed);
        (state, inner.position(), versions.collect())
    }

    /// The database's id.
    pub(crate) fn database(&self) -> FileId {
        self.inner.lock().manifest.database()
    }

    /// Makes an edit durable, then calls `install` with each changed family
    /// and its new version. What concerns families that were dropped meanwhile
    /// is left out, and its tables are removed.
    ///
    /// # Errors
    /// Of the manifest: whether the edit is durable is then not known, and
    /// nothing may be written until [`Versions::rotate`] has succeeded.
    pub(crate) fn apply(
        &self,
        edit: VersionEdit,
        install: impl FnMut(u32, &Arc<Version>),
    ) -> Result<()> {
        self.apply_with_orders(edit, BTreeMap::new(), install)
    }

    /// [`Versions::apply`] for an edit that creates families: `orders` has
    /// theirs.
    pub(crate) fn apply_with_orders(
        &self,
        mut edit: VersionEdit,
        orders: BTreeMap<u32, KeyOrder>,
        mut install: impl FnMut(u32, &Arc<Version>),
    ) -> Result<()> {
        let mut inner = self.inner.lock();
        self.leave_out_dropped(&inner, &mut edit);
        edit.next_file_number = Some(self.next_file_number.load(Ordering::Relaxed));
        let mut state = inner.state.clone();
        let path = self.manifest_path(&inner);
        let broken = |what: String| Error::corruption(&path, 0, what);
        state.apply(&edit).map_err(broken)?;
        self.make_durable(&mut inner, &edit, &state)?;
        inner.state = state;
        for (id, order) in orders {
            let version = Arc::new(Version::empty());
            inner.families.insert(id, Current { order, version });
        }
        for id in changed_families(&edit) {
            let Some(current) = inner.families.get_mut(&id) else { continue };
            let next = next_version(&self.home, current, id, &edit).map_err(broken)?;
            current.version = Arc::new(next);
            install(id, &current.version);
        }
        for id in &edit.families_dropped {
            if let Some(dropped) = inner.families.remove(id) {
                mark_all_obsolete(&dropped.version);
            }
        }
        Ok(())
    }

    /// Begins a new manifest with the state as it is known here.
    pub(crate) fn rotate(&self) -> Result<()> {
        let mut inner = self.inner.lock();
        let state = inner.state.clone();
        self.rotate_to(&mut inner, &state)
    }

    fn make_durable(&self, inner: &mut Inner, edit: &VersionEdit, state: &State) -> Result<()> {
        self.statistics.add(Counter::ManifestEdits, 1);
        if inner.must_rotate {
            return self.rotate_to(inner, state);
        }
        if let Err(error) = inner.manifest.append(std::slice::from_ref(edit)) {
            inner.must_rotate = true;
            return Err(error);
        }
        let limit = MANIFEST_GROWTH_BYTES.max(4 * inner.checkpoint_bytes);
        if inner.manifest.bytes() > limit {
            // The edit is durable already: a failure here only means that the
            // old manifest goes on.
            let _ = self.rotate_to(inner, state);
        }
        Ok(())
    }

    fn rotate_to(&self, inner: &mut Inner, state: &State) -> Result<()> {
        let number = self.new_file_number();
        let mut state = state.clone();
        state.next_file_number = self.next_file_number.load(Ordering::Relaxed);
        let previous = Some(inner.position());
        let database = inner.manifest.database();
        let old = self.manifest_path(inner);
        inner.manifest = match new_manifest(&self.home, number, &state, previous, database) {
            Ok(manifest) => manifest,
            Err(error) => {
                // CURRENT may name either manifest now, so both must hold
                // everything: the next edit begins another one.
                inner.must_rotate = true;
                return Err(error);
            }
        };
        inner.must_rotate = false;
        inner.checkpoint_bytes = inner.manifest.bytes();
        self.statistics.add(Counter::ManifestRotations, 1);
        // What stays behind is removed by the next open.
        let _ = self.home.fs.remove(&old);
        Ok(())
    }

    fn manifest_path(&self, inner: &Inner) -> PathBuf {
        self.home.directory.join(filename::manifest_name(inner.manifest.number()))
    }

    fn leave_out_dropped(&self, inner: &Inner, edit: &mut VersionEdit) {
        let created: Vec<u32> = edit.families_created.iter().map(|family| family.id).collect();
        let known = |id: &u32| inner.state.families.contains_key(id) || created.contains(id);
        edit.log_numbers.retain(|(id, _)| known(id));
        edit.tables_deleted.retain(|(id, ..)| known(id));
        edit.tables_added.retain(|(id, _, meta)| {
            let keeps = known(id);
            if !keeps {
                let path = filename::table_path(&self.home.directory, meta.number);
                // What stays behind is removed by the next open.
                let _ = self.home.fs.remove(&path);
            }
            keeps
        });
    }
}

impl Inner {
    fn position(&self) -> ManifestPosition {
        ManifestPosition { id: self.manifest.id(), edit: self.manifest.edit() }
    }
}

/// Families whose version an edit changes.
fn changed_families(edit: &VersionEdit) -> Vec<u32> {
    let created = edit.families_created.iter().map(|family| family.id);
    let logged = edit.log_numbers.iter().map(|&(id, _)| id);
    let added = edit.tables_added.iter().map(|&(id, ..)| id);
    let deleted = edit.tables_deleted.iter().map(|&(id, ..)| id);
    let mut ids: Vec<u32> = created.chain(logged).chain(added).chain(deleted).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The version after `edit`. A table that only moves keeps its slot; one that
/// goes is marked, so that its file goes with its last reader.
fn next_version(
    home: &Arc<TableHome>,
    current: &Current,
    family: u32,
    edit: &VersionEdit,
) -> Result<Version, String> {
    let old = tables_by_number(&current.version);
    let slot = |meta: &crate::table::meta::TableMeta| match old.get(&meta.number) {
        Some(table) => Arc::clone(table),
        None => TableFile::new(home, &current.order, meta.clone()),
    };
    let next = current.version.apply(family, edit, &current.order, &slot)?;
    let added = |number: u64| edit.tables_added.iter().any(|(_, _, meta)| meta.number == number);
    for &(id, _, number) in &edit.tables_deleted {
        if id == family && !added(number) {
            if let Some(table) = old.get(&number) {
                table.mark_obsolete();
            }
        }
    }
    Ok(next)
}

fn tables_by_number(version: &Version) -> BTreeMap<u64, Arc<TableFile>> {
    let tables = version.levels().flat_map(|level| level.tables().iter());
    tables.map(|table| (table.meta.number, Arc::clone(table))).collect()
}

fn mark_all_obsolete(version: &Version) {
    version.levels().flat_map(|level| level.tables().iter()).for_each(|table| table.mark_obsolete());
}

fn build_families(
    home: &Arc<TableHome>,
    state: &State,
    mut orders: BTreeMap<u32, KeyOrder>,
) -> Result<BTreeMap<u32, Current>> {
    let mut families = BTreeMap::new();
    for (&id, family) in &state.families {
        let order = orders.remove(&id).expect("the caller gives every family's order");
        let current = Current { order, version: Arc::new(Version::empty()) };
        let tables = family.tables.values().map(|(level, meta)| (id, *level, meta.clone()));
        let edit = VersionEdit { tables_added: tables.collect(), ..VersionEdit::default() };
        let version = next_version(home, &current, id, &edit)
            .map_err(|what| Error::corruption(&filename::current_path(&home.directory), 0, what))?;
        families.insert(id, Current { version: Arc::new(version), ..current });
    }
    Ok(families)
}

fn new_manifest(
    home: &TableHome,
    number: u64,
    state: &State,
    previous: Option<ManifestPosition>,
    database: FileId,
) -> Result<Manifest> {
    let scheduler: &Scheduler = &home.scheduler;
    let fs: &dyn Fs = &*home.fs;
    Manifest::create(
        fs,
        &home.directory,
        number,
        FileId(scheduler.random_u128()),
        database,
        previous.map(|position| (position.id, position.edit)),
        scheduler.unix_seconds(),
        state,
    )
}
