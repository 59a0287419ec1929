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
use crate::key::{FileId, KeyOrder};
use crate::stats::{Counter, Statistics};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};
use crate::table::meta::TableMeta;
use crate::tables::{TableFile, TableHome};
use crate::version::{Manifest, ManifestIdentity, State, Version, VersionEdit};

/// The versions of all families, and the manifest that makes them durable.
pub(crate) struct Versions {
    inner: Mutex<Inner>,
    next_file_number: AtomicU64,
    home: Arc<TableHome>,
    statistics: Arc<Statistics>,
}

struct Inner {
    /// `None` if it failed, or was opened for reading: the next edit begins a
    /// new one.
    manifest: Option<Manifest>,
    /// Of the manifest in use.
    identity: ManifestIdentity,
    state: State,
    families: BTreeMap<u32, Arc<Version>>,
}

impl Versions {
    /// The versions that `state` describes; `orders` has the order of each of
    /// its families. A new manifest is begun, as the successor of `previous`.
    ///
    /// # Errors
    /// `Corruption` if the state contradicts itself.
    pub(crate) fn begin(
        home: &Arc<TableHome>,
        statistics: &Arc<Statistics>,
        mut state: State,
        previous: ManifestIdentity,
        orders: &BTreeMap<u32, KeyOrder>,
    ) -> Result<Versions> {
        let families = build_families(home, &state, orders)?;
        let number = state.next_file_number;
        state.next_file_number += 1;
        let manifest = begin_manifest(home, number, &state, &previous)?;
        statistics.add(Counter::ManifestRotations, 1);
        let next_file_number = AtomicU64::new(state.next_file_number);
        Ok(Versions {
            inner: Mutex::new(Inner {
                identity: *manifest.identity(),
                manifest: Some(manifest),
                state,
                families,
            }),
            next_file_number,
            home: Arc::clone(home),
            statistics: Arc::clone(statistics),
        })
    }

    /// The versions that `state` describes, for reading: the manifest stays as
    /// it is, and [`Versions::apply`] must not be called.
    pub(crate) fn read_only(
        home: &Arc<TableHome>,
        statistics: &Arc<Statistics>,
        state: State,
        identity: ManifestIdentity,
        orders: &BTreeMap<u32, KeyOrder>,
    ) -> Result<Versions> {
        let families = build_families(home, &state, orders)?;
        let next_file_number = AtomicU64::new(state.next_file_number);
        Ok(Versions {
            inner: Mutex::new(Inner { manifest: None, identity, state, families }),
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
        self.inner.lock().families.get(&family).map(Arc::clone)
    }

    /// The oldest log that some family needs.
    pub(crate) fn log_number_min(&self) -> u64 {
        self.inner.lock().state.oldest_log_number().unwrap_or(0)
    }

    /// The oldest log that `family` needs.
    pub(crate) fn log_number(&self, family: u32) -> Option<u64> {
        self.inner.lock().state.families.get(&family).map(|family| family.log_number)
    }

    /// Which manifest is in use, and how far it has come.
    pub(crate) fn manifest(&self) -> ManifestIdentity {
        self.inner.lock().identity
    }

    /// The durable description, the manifest that has it and the versions that
    /// keep its tables, all of one moment.
    pub(crate) fn capture(&self) -> (State, ManifestIdentity, Vec<Arc<Version>>) {
        let inner = self.inner.lock();
        let mut state = inner.state.clone();
        state.next_file_number = self.next_file_number.load(Ordering::Relaxed);
        (state, inner.identity, inner.families.values().cloned().collect())
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
        self.make_tables_durable(&edit)?;
        self.make_durable(&mut inner, &edit, &state)?;
        inner.state = state;
        for (id, order) in orders {
            inner.families.insert(id, Arc::new(Version::empty(order)));
        }
        for id in changed_families(&edit) {
            let Some(current) = inner.families.get_mut(&id) else { continue };
            *current = Arc::new(next_version(&self.home, current, id, &edit).map_err(broken)?);
            install(id, current);
        }
        for id in &edit.families_dropped {
            if let Some(dropped) = inner.families.remove(id) {
                dropped.tables().for_each(|table| table.mark_obsolete());
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

    /// Syncs the names of new tables: their content is synced when they are
    /// finished. Tables that only move have their names.
    fn make_tables_durable(&self, edit: &VersionEdit) -> Result<()> {
        let moves = |number| edit.tables_deleted.iter().any(|&(.., deleted)| deleted == number);
        if edit.tables_added.iter().all(|(.., meta)| moves(meta.number)) {
            return Ok(());
        }
        let directory = &self.home.directory;
        let failed = |error| Error::io(directory, "sync directory", error);
        self.home.fs.sync_directory(directory).map_err(failed)
    }

    fn make_durable(&self, inner: &mut Inner, edit: &VersionEdit, state: &State) -> Result<()> {
        self.statistics.add(Counter::ManifestEdits, 1);
        let Some(manifest) = &mut inner.manifest else {
            inner.identity.edit += 1; // the new manifest's first state contains it
            return self.rotate_to(inner, state);
        };
        if let Err(error) = manifest.append(std::slice::from_ref(edit)) {
            inner.manifest = None;
            return Err(error);
        }
        inner.identity = *manifest.identity();
        if manifest.is_outgrown() {
            // The edit is durable already: a failure here only means that the
            // next edit tries again.
            let _ = self.rotate_to(inner, state);
        }
        Ok(())
    }

    /// After a failure `CURRENT` may name either manifest, so both must hold
    /// everything: the old one takes no more edits.
    fn rotate_to(&self, inner: &mut Inner, state: &State) -> Result<()> {
        let number = self.new_file_number();
        let mut state = state.clone();
        state.next_file_number = self.next_file_number.load(Ordering::Relaxed);
        let old = self.manifest_path(inner);
        inner.manifest = None;
        let manifest = begin_manifest(&self.home, number, &state, &inner.identity)?;
        inner.identity = *manifest.identity();
        inner.manifest = Some(manifest);
        self.statistics.add(Counter::ManifestRotations, 1);
        // What stays behind is removed by the next open.
        let _ = self.home.fs.remove(&old);
        Ok(())
    }

    fn manifest_path(&self, inner: &Inner) -> PathBuf {
        self.home.directory.join(filename::manifest_name(inner.identity.number))
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

/// The version after `edit`. Tables that go are marked, so that their files go
/// with their last reader.
fn next_version(
    home: &Arc<TableHome>,
    current: &Version,
    family: u32,
    edit: &VersionEdit,
) -> std::result::Result<Version, String> {
    let slot = |meta: &TableMeta| TableFile::new(home, current.order(), meta.clone());
    let next = current.apply(family, edit, &slot)?;
    let is_added = |number| edit.tables_added.iter().any(|(_, _, meta)| meta.number == number);
    for &(id, level, number) in &edit.tables_deleted {
        if id == family && !is_added(number) {
            let mut tables = current.level(level).tables().iter();
            if let Some(table) = tables.find(|table| table.meta.number == number) {
                table.mark_obsolete();
            }
        }
    }
    Ok(next)
}

fn build_families(
    home: &Arc<TableHome>,
    state: &State,
    orders: &BTreeMap<u32, KeyOrder>,
) -> Result<BTreeMap<u32, Arc<Version>>> {
    let mut families = BTreeMap::new();
    for (&id, family) in &state.families {
        let order = orders.get(&id).expect("the caller gives every family's order");
        let slot = |meta: &TableMeta| TableFile::new(home, order, meta.clone());
        let version = Version::from_state(order.clone(), family, &slot)
            .map_err(|what| Error::corruption(&filename::current_path(&home.directory), 0, what))?;
        families.insert(id, Arc::new(version));
    }
    Ok(families)
}

/// Writes the manifest that follows `previous`, and makes it the one in use.
fn begin_manifest(
    home: &TableHome,
    number: u64,
    state: &State,
    previous: &ManifestIdentity,
) -> Result<Manifest> {
    let identity = ManifestIdentity {
        number,
        id: FileId(home.scheduler.random_u128()),
        predecessor: previous.id,
        created_unix_seconds: home.scheduler.unix_seconds(),
        ..*previous
    };
    Manifest::create(&home.fs, &home.directory, identity, state)
}
