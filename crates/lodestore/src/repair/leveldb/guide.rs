//! The manifest of a LevelDB database, or as much of it as can be read.

use std::collections::BTreeSet;
use std::path::Path;

use crate::db;
use crate::error::{Error, Result};
use crate::fs::{self, Fs};
use crate::key::KeyOrder;
use crate::leveldb::directory::{ManifestState, TableNames, decode_manifest, read_current};
use crate::leveldb::edit::Edit;
use crate::leveldb::names::LevelDbFile;
use crate::options::Options;

use super::order_of;

/// What is known of a damaged database before its tables and logs are read.
#[derive(Default)]
pub(super) struct Guide {
    /// Why the state is not to be believed: other files may be in use, and some of its
    /// files not any more. `None`: it says which files count.
    pub(super) damage: Option<String>,
    /// Empty if the manifest is damaged.
    pub(super) state: ManifestState,
    comparator: Option<Vec<u8>>,
    /// Tables that a change took out of use.
    deleted: BTreeSet<u64>,
    pub(super) notes: Vec<String>,
}

impl Guide {
    /// # Errors
    /// `Incompatible` if entries expire; `Io`.
    pub(super) fn read(
        fs: &dyn Fs,
        directory: &Path,
        files: &[(String, LevelDbFile)],
    ) -> Result<Guide> {
        let (named, is_lost) = match read_current(fs, directory) {
            Ok(path) => (Some(path), None),
            Err(error @ (Error::Corruption { .. } | Error::Missing { .. })) => {
                (None, Some(error.to_string()))
            }
            Err(error) => return Err(error),
        };
        let is_there = |path: &&std::path::PathBuf| {
            files.iter().any(|(name, _)| directory.join(name) == **path)
        };
        let mut guide = match (named.as_ref().filter(is_there), newest_manifest(files)) {
            (Some(path), _) => Guide::of(fs, path)?,
            (None, Some(newest)) => Guide::of(fs, &directory.join(newest))?,
            (None, None) => Guide::damaged("the manifest is missing".to_string()),
        };
        match (named, is_lost) {
            // CURRENT alone is damaged: the newest manifest, if it is whole, says it all.
            (None, Some(lost)) => guide.notes.push(lost),
            (Some(path), _) if !is_there(&&path) => {
                guide.doubt("CURRENT names a manifest that is missing".to_string());
            }
            _ => {}
        }
        guide.state.refuse_expiry(directory)?;
        guide.compare_with(&TableNames::among(files));
        Ok(guide)
    }

    fn damaged(what: String) -> Guide {
        Guide { damage: Some(what), ..Guide::default() }
    }

    /// What one manifest says.
    fn of(fs: &dyn Fs, path: &Path) -> Result<Guide> {
        let bytes = fs::read_all(fs, path).map_err(|error| Error::io(path, "read", error))?;
        let mut guide = Guide::default();
        let read = decode_manifest(&bytes, path, &mut |_, edit| guide.follow(edit));
        match read {
            Ok(state) => {
                guide.notes.extend(state.torn_at.map(|at| {
                    format!(
                        "the manifest ends in the middle of a change (byte {at}): it is left out"
                    )
                }));
                guide.state = state;
            }
            Err(error) if error.is_corruption() => guide.damage = Some(error.to_string()),
            Err(error) => return Err(error),
        }
        Ok(guide)
    }

    fn follow(&mut self, edit: &Edit) {
        self.comparator = edit.comparator.clone().or(self.comparator.take());
        self.deleted.extend(edit.deleted.iter().map(|&(_, number)| number));
        // A table that goes to another level is deleted and added.
        for (_, table) in &edit.added {
            self.deleted.remove(&table.number);
        }
    }

    /// The manifest does not say which files count.
    pub(super) fn doubt(&mut self, what: String) {
        self.damage.get_or_insert(what);
    }

    /// A manifest that does not know tables which are there may be an older one, or have
    /// lost its end. They may also be what a compaction that ended with a crash has left:
    /// then they hold nothing that others do not.
    fn compare_with(&mut self, names: &TableNames<'_>) {
        let is_known =
            |number: &u64| self.state.tables.contains_key(number) || self.is_deleted(*number);
        let unknown = names.numbers().filter(|number| !is_known(number)).count();
        if unknown > 0 {
            self.doubt(format!(
                "it does not know {unknown} tables that are there: it may have lost its end"
            ));
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

    /// The order of keys.
    ///
    /// # Errors
    /// `InvalidArgument` if the library does not have it and `options` do not give it.
    pub(super) fn order(&mut self, options: &Options) -> Result<KeyOrder> {
        let stored = self.comparator.as_deref().and_then(|name| std::str::from_utf8(name).ok());
        if let Some(stored) = stored {
            return order_of(db::DEFAULT_NAME, stored, options);
        }
        let order = options.family_options(db::DEFAULT_NAME).order.clone();
        self.notes.push(format!("the order of keys is not known: taken for {}", order.name()));
        Ok(order)
    }
}

fn newest_manifest(files: &[(String, LevelDbFile)]) -> Option<&str> {
    let manifests = files.iter().filter_map(|(name, kind)| match kind {
        LevelDbFile::Manifest(number) => Some((*number, &name[..])),
        _ => None,
    });
    manifests.max().map(|(_, name)| name)
}
