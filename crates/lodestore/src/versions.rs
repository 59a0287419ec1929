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

/// Families by id, with the versions that an edit gives them.
type NextVersions = Vec<(u32, Arc<Version>)>;

/// The versions of all families, and the manifest that makes them durable.
pub(crate) struct Versions {
    inner: Mutex<Inner>,
    next_file_number: AtomicU64,
    /// The number of the last durable edit.
    edit: AtomicU64,
    home: Arc<TableHome>,
    statistics: Arc<Statistics>,
}

struct Inner {
    /// `None` if it failed, or is that of an earlier opening: the next edit begins
    /// a new one.
    manifest: Option<Manifest>,
    /// Whether the one in use is that of an earlier opening.
    is_inherited: bool,
    /// Of the manifest in use.
    identity: ManifestIdentity,
    /// Without the tables: the versions have these, so that an edit copies
    /// only what it changes.
    frame: State,
    families: BTreeMap<u32, Arc<Version>>,
    /// New tables of edits that failed: the manifest in use may name them, so
    /// that they must stay until another one is in use.
    undecided: Vec<u64>,
}

impl Inner {
    /// The whole state: `frame` with the tables of the versions, of which
    /// `next` replaces some. Only a new manifest or a copy needs it.
    fn whole(&self, frame: &State, next: &[(u32, Arc<Version>)]) -> State {
        let mut state = frame.clone();
        let versions = self.families.iter().map(|(&id, version)| (id, version));
        for (id, version) in versions.chain(next.iter().map(|(id, version)| (*id, version))) {
            // A family that the edit drops is not in the frame any more.
            let Some(family) = state.families.get_mut(&id) else { continue };
            family.tables.clear();
            for (level, tables) in version.levels().iter().enumerate() {
                let metas = tables.tables().iter().map(|table| &table.meta);
                family.tables.extend(metas.map(|meta| (meta.number, (level, meta.clone()))));
            }
        }
        state
    }
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
        let identity = *manifest.identity();
        Ok(Versions::new(home, statistics, state, families, identity, Some(manifest)))
    }

    /// The versions that `state` describes. The manifest, which has `identity`, stays as
    /// it is until the first edit.
    ///
    /// # Errors
    /// `Corruption` if the state contradicts itself.
    pub(crate) fn inherit(
        home: &Arc<TableHome>,
        statistics: &Arc<Statistics>,
        state: State,
        identity: ManifestIdentity,
        orders: &BTreeMap<u32, KeyOrder>,
    ) -> Result<Versions> {
        let families = build_families(home, &state, orders)?;
        Ok(Versions::new(home, statistics, state, families, identity, None))
    }

    /// Without a manifest that takes edits it is that of an earlier opening.
    fn new(
        home: &Arc<TableHome>,
        statistics: &Arc<Statistics>,
        mut frame: State,
        families: BTreeMap<u32, Arc<Version>>,
        identity: ManifestIdentity,
        manifest: Option<Manifest>,
    ) -> Versions {
        frame.clear_tables();
        let next_file_number = AtomicU64::new(frame.next_file_number);
        let is_inherited = manifest.is_none();
        let undecided = Vec::new();
        Versions {
            inner: Mutex::new(Inner {
                manifest,
                is_inherited,
                identity,
                frame,
                families,
                undecided,
            }),
            next_file_number,
            edit: AtomicU64::new(identity.edit),
            home: Arc::clone(home),
            statistics: Arc::clone(statistics),
        }
    }

    /// A number that no file of this database has or had.
    pub(crate) fn new_file_number(&self) -> u64 {
        self.next_file_number.fetch_add(1, Ordering::Relaxed)
    }

    /// An id that no family of this database has or had.
    pub(crate) fn new_family_id(&self) -> u32 {
        self.inner.lock().frame.next_family_id
    }

    /// The version of a family now.
    pub(crate) fn current(&self, family: u32) -> Option<Arc<Version>> {
        self.inner.lock().families.get(&family).map(Arc::clone)
    }

    /// The oldest log that some family needs.
    pub(crate) fn log_number_min(&self) -> u64 {
        self.inner.lock().frame.oldest_log_number().unwrap_or(0)
    }

    /// The oldest log that `family` needs.
    pub(crate) fn log_number(&self, family: u32) -> Option<u64> {
        self.inner.lock().frame.families.get(&family).map(|family| family.log_number)
    }

    /// Which manifest is in use, and how far it has come.
    pub(crate) fn manifest(&self) -> ManifestIdentity {
        self.inner.lock().identity
    }

    /// The number of the last durable edit, without waiting for one that is
    /// being written.
    #[inline]
    pub(crate) fn last_edit(&self) -> u64 {
        self.edit.load(Ordering::Acquire)
    }

    /// The durable description, the manifest that has it and the versions that
    /// keep its tables, all of one moment.
    pub(crate) fn capture(&self) -> (State, ManifestIdentity, Vec<Arc<Version>>) {
        let inner = self.inner.lock();
        let mut state = inner.whole(&inner.frame, &[]);
        state.next_file_number = self.next_file_number.load(Ordering::Relaxed);
        (state, inner.identity, inner.families.values().cloned().collect())
    }

    /// Makes an edit durable, then calls `install` with each changed family
    /// and its new version. What concerns families that were dropped meanwhile
    /// is left out. The tables that it adds are the manifest's from here on:
    /// those that come to nothing are removed here, when that is safe.
    ///
    /// # Errors
    /// Of the manifest: whether the edit is durable is then not known. Nothing
    /// has changed here; the next edit begins a new manifest.
    pub(crate) fn apply(
        &self,
        edit: VersionEdit,
        mut install: impl FnMut(u32, &Arc<Version>),
    ) -> Result<()> {
        self.apply_at_once(edit, BTreeMap::new(), |versions| {
            versions.iter().for_each(|(id, version)| install(*id, version));
        })
    }

    /// [`Versions::apply`] with one call of `install` for all families, and for
    /// an edit that creates families: `orders` has theirs.
    pub(crate) fn apply_at_once(
        &self,
        mut edit: VersionEdit,
        orders: BTreeMap<u32, KeyOrder>,
        install: impl FnOnce(&[(u32, Arc<Version>)]),
    ) -> Result<()> {
        let mut inner = self.inner.lock();
        self.leave_out_dropped(&inner, &mut edit);
        edit.next_file_number = Some(self.next_file_number.load(Ordering::Relaxed));
        let next = self.after(&inner, &edit, &orders);
        let next = next.and_then(|next| self.make_tables_durable(&edit).map(|()| next));
        // No manifest knows of the new tables yet.
        let (frame, families) = next.inspect_err(|_| self.remove_tables(new_tables(&edit)))?;
        if let Err(error) = self.make_durable(&mut inner, &edit, &frame, &families) {
            inner.undecided.extend(new_tables(&edit));
            return Err(error);
        }
        inner.frame = frame;
        install(&families);
        for (id, version) in families {
            if let Some(before) = inner.families.insert(id, version) {
                mark_obsolete(&before, id, &edit);
            }
        }
        for id in &edit.families_dropped {
            if let Some(dropped) = inner.families.remove(id) {
                dropped.tables().for_each(|table| table.mark_obsolete());
            }
        }
        Ok(())
    }

    /// The frame after `edit`, and the new versions of the families that it
    /// changes. An edit that contradicts what is here fails before it is
    /// durable, not at the next open.
    fn after(
        &self,
        inner: &Inner,
        edit: &VersionEdit,
        orders: &BTreeMap<u32, KeyOrder>,
    ) -> Result<(State, NextVersions)> {
        let path = self.manifest_path(inner);
        let broken = |what: String| Error::corruption(&path, 0, what);
        let mut frame = inner.frame.clone();
        frame.apply_to_frame(edit).map_err(broken)?;
        let mut families = Vec::new();
        for id in changed_families(edit) {
            let created = orders.get(&id).map(|order| Arc::new(Version::empty(order.clone())));
            let Some(current) = inner.families.get(&id).cloned().or(created) else { continue };
            let slot = |meta: &TableMeta| TableFile::new(&self.home, current.order(), meta.clone());
            families.push((id, Arc::new(current.apply(id, edit, &slot).map_err(broken)?)));
        }
        Ok((frame, families))
    }

    /// Begins a new manifest with the state as it is known here.
    pub(crate) fn rotate(&self) -> Result<()> {
        let mut inner = self.inner.lock();
        let state = inner.whole(&inner.frame, &[]);
        let edit = inner.identity.edit;
        self.rotate_to(&mut inner, state, edit)
    }

    /// Begins a manifest, unless one was begun since the opening. What will refer to the
    /// manifest in use must not mean one that a copy of the directory has too.
    pub(crate) fn begin_own(&self) -> Result<()> {
        let mut inner = self.inner.lock();
        if !inner.is_inherited {
            return Ok(());
        }
        let (state, edit) = (inner.whole(&inner.frame, &[]), inner.identity.edit);
        self.rotate_to(&mut inner, state, edit)
    }

    /// Syncs the names of new tables: their content is synced when they are
    /// finished. Tables that only move have their names.
    fn make_tables_durable(&self, edit: &VersionEdit) -> Result<()> {
        if new_tables(edit).next().is_none() {
            return Ok(());
        }
        let directory = &self.home.directory;
        let failed = |error| Error::io(directory, "sync directory", error);
        self.home.fs.sync_directory(directory).map_err(failed)
    }

    /// Makes `edit` durable, which leads to `frame` and the versions `next`.
    fn make_durable(
        &self,
        inner: &mut Inner,
        edit: &VersionEdit,
        frame: &State,
        next: &[(u32, Arc<Version>)],
    ) -> Result<()> {
        self.statistics.add(Counter::ManifestEdits, 1);
        let Some(manifest) = &mut inner.manifest else {
            // The new manifest's first state contains the edit.
            return self.rotate_to(inner, inner.whole(frame, next), inner.identity.edit + 1);
        };
        if let Err(error) = manifest.append(std::slice::from_ref(edit)) {
            inner.manifest = None;
            return Err(error);
        }
        inner.identity = *manifest.identity();
        self.edit.store(inner.identity.edit, Ordering::Release);
        if manifest.is_outgrown() {
            // The edit is durable already: a failure here only means that the
            // next edit tries again.
            let _ = self.rotate_to(inner, inner.whole(frame, next), inner.identity.edit);
        }
        Ok(())
    }

    /// Begins a manifest with `state`, which is the one after edit number
    /// `edit`. Until that has succeeded, `edit` must not be known to anyone: a
    /// log that says it follows an edit that no manifest has is refused.
    ///
    /// After a failure `CURRENT` may name either manifest, so both must hold
    /// everything: the old one takes no more edits.
    fn rotate_to(&self, inner: &mut Inner, mut state: State, edit: u64) -> Result<()> {
        let number = self.new_file_number();
        state.next_file_number = self.next_file_number.load(Ordering::Relaxed);
        let old = self.manifest_path(inner);
        inner.manifest = None;
        let previous = ManifestIdentity { edit, ..inner.identity };
        let manifest = begin_manifest(&self.home, number, &state, &previous)?;
        inner.identity = *manifest.identity();
        self.edit.store(inner.identity.edit, Ordering::Release);
        inner.manifest = Some(manifest);
        inner.is_inherited = false;
        self.statistics.add(Counter::ManifestRotations, 1);
        // What stays behind is removed by the next open.
        let _ = self.home.fs.remove(&old);
        self.remove_tables(inner.undecided.drain(..));
        Ok(())
    }

    fn manifest_path(&self, inner: &Inner) -> PathBuf {
        self.home.directory.join(filename::manifest_name(inner.identity.number))
    }

    /// Takes out what concerns dropped families. A new table of theirs is
    /// removed; one that was to move is for its readers, and goes with them.
    fn leave_out_dropped(&self, inner: &Inner, edit: &mut VersionEdit) {
        let created: Vec<u32> = edit.families_created.iter().map(|family| family.id).collect();
        let known = |id: &u32| inner.frame.families.contains_key(id) || created.contains(id);
        let (kept, dropped): (Vec<_>, Vec<_>) =
            std::mem::take(&mut edit.tables_added).into_iter().partition(|(id, ..)| known(id));
        edit.tables_added = dropped;
        self.remove_tables(new_tables(edit));
        edit.tables_added = kept;
        edit.log_numbers.retain(|(id, _)| known(id));
        edit.tables_deleted.retain(|(id, ..)| known(id));
    }

    fn remove_tables(&self, numbers: impl Iterator<Item = u64>) {
        for number in numbers {
            // What stays behind is removed by the next open.
            let _ = self.home.fs.remove(&filename::table_path(&self.home.directory, number));
        }
    }
}

/// Numbers of the tables that an edit adds, and does not only move.
fn new_tables(edit: &VersionEdit) -> impl Iterator<Item = u64> {
    let moves = |number| edit.tables_deleted.iter().any(|&(.., deleted)| deleted == number);
    edit.tables_added.iter().map(|(.., meta)| meta.number).filter(move |&number| !moves(number))
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

/// Marks the tables of `before` that an edit deletes and does not add again,
/// so that their files go with their last reader.
fn mark_obsolete(before: &Version, family: u32, edit: &VersionEdit) {
    let is_added = |number| edit.tables_added.iter().any(|(_, _, meta)| meta.number == number);
    for &(id, level, number) in &edit.tables_deleted {
        if id == family && !is_added(number) {
            let mut tables = before.level(level).tables().iter();
            if let Some(table) = tables.find(|table| table.meta.number == number) {
                table.mark_obsolete();
            }
        }
    }
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
    Manifest::create_apart(&home.fs, &home.directory, identity, state)
}
