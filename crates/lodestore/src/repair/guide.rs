//! What guides a repair: the manifest, or as much of it as can be read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::error::{Error, Result};
use crate::filename::{self, FileKind};
use crate::fs::Fs;
use crate::key::KeyOrder;
use crate::sync::Arc;
use crate::table::meta::TableMeta;
use crate::version::manifest::{self, ManifestIdentity};
use crate::version::state::{FamilyState, State};
use crate::version::{FamilyDescriptor, VersionEdit};
use crate::wal::SegmentHeader;

use super::log::Log;

/// What is known of a damaged database before its tables and logs are read.
pub(super) struct Guide {
    pub(super) state: State,
    /// Of the manifest that says it, if one does.
    pub(super) identity: Option<ManifestIdentity>,
    /// Why the state is not to be believed as a whole: other tables may be in
    /// use, and some of its tables not any more.
    pub(super) damage: Option<String>,
    /// Edits after this were made while that manifest was in use.
    checkpoint_edit: u64,
    /// Tables that an edit took out of use.
    deleted: BTreeSet<u64>,
    pub(super) notes: Vec<String>,
}

impl Guide {
    /// # Errors
    /// `Incompatible` if a newer build has to read the manifest, or to write what
    /// follows from it; `Io`.
    pub(super) fn read(
        fs: &Arc<dyn Fs>,
        directory: &Path,
        files: &[(String, u64)],
    ) -> Result<Guide> {
        let damage = match manifest::recover(fs, directory) {
            Ok(recovered) => {
                // What is written in its place says no less.
                recovered.check_writable()?;
                let mut guide = Guide::nothing();
                guide.notes.extend(recovered.torn_note());
                guide.state = recovered.state;
                guide.identity = Some(recovered.identity);
                guide.checkpoint_edit = recovered.checkpoint_edit;
                return Ok(guide);
            }
            Err(error @ (Error::Corruption { .. } | Error::Missing { .. })) => error.to_string(),
            Err(error) => return Err(error),
        };
        let mut best: Option<(Guide, bool)> = None;
        for (name, _) in files {
            if !matches!(filename::parse(name), Some(FileKind::Manifest(_))) {
                continue;
            }
            let Some((read, is_whole)) = Guide::read_partly(fs, &directory.join(name))? else {
                continue;
            };
            let edit = |guide: &Guide| guide.identity.map_or(0, |identity| identity.edit);
            if best.as_ref().is_none_or(|(best, _)| edit(best) <= edit(&read)) {
                best = Some((read, is_whole));
            }
        }
        let (mut guide, is_whole) = best.unwrap_or((Guide::nothing(), false));
        // CURRENT alone may be damaged: a manifest that is whole, and not older
        // than the log, says it all.
        match is_whole {
            true => guide.notes.push(damage),
            false => guide.damage = Some(damage),
        }
        Ok(guide)
    }

    fn nothing() -> Guide {
        Guide {
            state: State::default(),
            identity: None,
            damage: None,
            checkpoint_edit: 0,
            deleted: BTreeSet::new(),
            notes: Vec::new(),
        }
    }

    /// The edits of a manifest up to where it is damaged, and whether that is
    /// nowhere; `None` if it cannot be read at all.
    fn read_partly(fs: &Arc<dyn Fs>, path: &Path) -> Result<Option<(Guide, bool)>> {
        let file = fs.open(path).map_err(|error| Error::io(path, "open", error))?;
        let header = match manifest::read_header(&*file, path) {
            Err(error) if error.is_corruption() => return Ok(None),
            header => header?,
        };
        header.features.check_writable(path)?;
        let identity = header.identity;
        let mut guide = Guide::nothing();
        guide.state.features = header.features;
        guide.checkpoint_edit = identity.edit;
        let mut edit = identity.edit;
        let read = manifest::read_manifest(&file, path, &mut |place, change: &VersionEdit| {
            // The reader has applied it to a state of its own before.
            let _ = guide.state.apply(change);
            guide.deleted.extend(change.tables_deleted.iter().map(|&(.., number)| number));
            edit = place.edit;
        });
        guide.identity = Some(ManifestIdentity { edit, ..identity });
        let in_use = guide.state.families.values().flat_map(|family| family.tables.keys());
        for number in in_use {
            guide.deleted.remove(number);
        }
        match read {
            Ok(whole) => {
                guide.notes.extend(whole.torn_note());
                Ok(Some((guide, true)))
            }
            Err(error) if error.is_corruption() => Ok(Some((guide, false))),
            Err(error) => Err(error),
        }
    }

    /// A log that knows of later edits shows that the manifest is an older one.
    pub(super) fn compare_with_log(&mut self, log: &Log) {
        let edit = self.identity.map_or(0, |identity| identity.edit);
        if self.damage.is_none() && log.manifest_edit > edit {
            self.damage = Some(format!(
                "the manifest ends at edit {edit}, the log knows of edit {}: an older manifest \
                 was put back, or its end is lost",
                log.manifest_edit
            ));
        }
    }

    /// Why a segment of the log is not of this database, if it is not.
    pub(super) fn disowns(&self, header: &SegmentHeader) -> Option<&'static str> {
        let identity = self.identity?;
        let is_of_another = header.manifest_id != identity.id;
        match header.manifest_edit > self.checkpoint_edit && is_of_another {
            _ if header.database != identity.database_id => Some("it is of another database"),
            true if header.manifest_edit <= identity.edit => {
                Some("it is of a copy of this database")
            }
            _ => None,
        }
    }

    /// True if the manifest says which tables and logs count.
    pub(super) fn is_exact(&self) -> bool {
        self.damage.is_none()
    }

    /// True if a table is known to be out of use.
    pub(super) fn is_deleted(&self, number: u64) -> bool {
        self.deleted.contains(&number)
    }

    /// Every table that the manifest names, by family and level.
    pub(super) fn named(&self) -> BTreeMap<u64, (u32, usize, TableMeta)> {
        let families = self.state.families.iter();
        let tables = families.flat_map(|(&id, family)| {
            family.tables.iter().map(move |(&n, (level, meta))| (n, (id, *level, meta.clone())))
        });
        tables.collect()
    }

    /// Every database has its default family.
    pub(super) fn complete(&mut self) {
        if !self.state.families.contains_key(&0) {
            let comparator = KeyOrder::Bytewise.name().to_string();
            let name = "default".to_string();
            self.add_family(FamilyDescriptor { name, comparator, ..Default::default() });
        }
    }

    /// Makes sure that a family is known that something was found of.
    pub(super) fn add_family(&mut self, descriptor: FamilyDescriptor) {
        let id = descriptor.id;
        if self.state.families.contains_key(&id) {
            return;
        }
        if descriptor.merge_operator.is_none() {
            self.notes.push(format!(
                "the merge operator of family {:?}, if it had one, is not known: give it when \
                 the database is opened",
                descriptor.name
            ));
        }
        let name = descriptor.name.clone();
        self.state.adopt_family(descriptor);
        self.keep_names_apart(&name);
    }

    /// A family that was dropped may have left tables behind, and another of
    /// its name was created since: the name is the later one's.
    fn keep_names_apart(&mut self, name: &str) {
        let of_name = |family: &FamilyState| family.descriptor.name == name;
        let ids = self.state.families.iter().filter(|(_, family)| of_name(family));
        let mut ids: Vec<u32> = ids.map(|(&id, _)| id).collect();
        // The default family is always there, and was never another.
        ids.sort_by_key(|&id| (id == 0, id));
        ids.pop();
        for id in ids {
            let mut other = format!("{name} (family {id})");
            while self.state.family_named(&other).is_some() {
                other.push('\'');
            }
            self.notes.push(format!(
                "two families are called {name:?}: the one with the lower number, {id}, perhaps \
                 dropped once, is now called {other:?}"
            ));
            self.state.rename_family(id, other);
        }
    }
}
