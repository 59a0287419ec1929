//! Checkpoints: a copy of the database at one moment, in a directory of its
//! own, that opens like any other.
//!
//! Tables are linked (or copied, where the file system cannot link); logs are
//! copied up to where they stood. The copy gets a manifest of its own, so that
//! it can be written to without harm to the original.

use std::path::Path;

use crate::error::{Error, Result};
use crate::filename;
use crate::fs::{Fs, create_directory_durably, read_full_at};
use crate::key::FileId;
use crate::sync::Arc;
use crate::version::{Manifest, ManifestIdentity};

use super::engine::Engine;
use super::open::list;

/// Files are copied in pieces of this size.
const COPY_BYTES: u64 = 1 << 20;

impl Engine {
    pub(crate) fn checkpoint(self: &Arc<Self>, target: &Path) -> Result<()> {
        if self.read_only {
            // Its log was replayed, and is not among `logs`.
            return Err(Error::invalid("a checkpoint needs a database opened for writing"));
        }
        let fs = &self.shared.fs;
        let was_there = prepare_directory(&**fs, target)?;
        self.copy_to(target).inspect_err(|_| {
            // Half a copy is of no use and would be in the way of the next try.
            remove_copy(&**fs, target, was_there);
        })
    }

    fn copy_to(self: &Arc<Self>, target: &Path) -> Result<()> {
        let fs = &self.shared.fs;
        if !self.logging {
            self.flush(&self.family_ids())?; // what is in memory is in no log
        }
        // Under the commit lock nothing is written: log and manifest are of
        // one moment. The versions keep the tables, the pin keeps the logs: it
        // comes first, because a flush may retire the logs that the state needs.
        let commit = self.commit.lock();
        let _pin = self.logs.pin(self, 0);
        let (mut state, manifest, _versions) = self.versions.capture();
        state.last_sequence = state.last_sequence.max(commit.last_sequence);
        let logs = self.logs.live();
        let live_bytes = commit.log.as_ref().map_or(0, |log| log.bytes());
        drop(commit);

        for family in state.families.values() {
            for &number in family.tables.keys() {
                let (from, to) =
                    paths(&self.shared.directory, target, number, filename::table_path);
                link_or_copy(&**fs, &from, &to)?;
            }
        }
        let needed_from = state.oldest_log_number().unwrap_or(0);
        for log in logs.iter().filter(|log| log.number >= needed_from) {
            let (from, to) = paths(&self.shared.directory, target, log.number, filename::log_path);
            copy(&**fs, &from, &to, log.sealed_bytes.unwrap_or(live_bytes))?;
        }
        let identity = ManifestIdentity {
            number: state.next_file_number,
            id: FileId(self.shared.scheduler.random_u128()),
            predecessor: manifest.id,
            created_unix_seconds: self.shared.scheduler.unix_seconds(),
            ..manifest
        };
        state.next_file_number += 1;
        sync_directory(&**fs, target)?;
        Manifest::create(fs, target, identity, &state).map(|_| ())
    }
}

fn paths(
    from: &Path,
    to: &Path,
    number: u64,
    name: fn(&Path, u64) -> std::path::PathBuf,
) -> (std::path::PathBuf, std::path::PathBuf) {
    (name(from, number), name(to, number))
}

/// Makes sure that `target` is an empty directory; true if it was there.
pub(crate) fn prepare_directory(fs: &dyn Fs, target: &Path) -> Result<bool> {
    let names = list(fs, target)?;
    if names.as_ref().is_some_and(|names| !names.is_empty()) {
        let target = target.display();
        return Err(Error::invalid(format!("{target} is not empty: give a new directory")));
    }
    create_directory_durably(fs, target)
        .map_err(|error| Error::io(target, "create directory", error))?;
    Ok(names.is_some())
}

/// Removes what a failed copy has made. What cannot be removed either
/// stays: the failure itself is what the caller must hear of.
pub(crate) fn remove_copy(fs: &dyn Fs, target: &Path, was_there: bool) {
    for name in fs.list(target).unwrap_or_default() {
        if filename::parse(&name).is_some() {
            let _ = fs.remove(&target.join(name));
        }
    }
    if !was_there {
        let _ = fs.remove_directory(target);
    }
}

pub(crate) fn link_or_copy(fs: &dyn Fs, from: &Path, to: &Path) -> Result<()> {
    // Linking fails across file systems: then it is copied.
    if fs.capabilities().hard_links && fs.hard_link(from, to).is_ok() {
        return Ok(());
    }
    let length = fs.length(from).map_err(|error| Error::io(from, "read length of", error))?;
    copy(fs, from, to, length)
}

/// The same for a file whose bytes may not be durable: they are then.
pub(crate) fn link_or_copy_synced(fs: &dyn Fs, from: &Path, to: &Path) -> Result<()> {
    if link_synced(fs, from, to)? {
        return Ok(());
    }
    let length = fs.length(from).map_err(|error| Error::io(from, "read length of", error))?;
    copy(fs, from, to, length)
}

/// Gives the file `from` the name `to` as well and makes its bytes durable:
/// whoever wrote it may not have. False if it cannot be linked, or not synced
/// for want of permission: `to` is not there then.
pub(crate) fn link_synced(fs: &dyn Fs, from: &Path, to: &Path) -> Result<bool> {
    let able = fs.capabilities();
    if !able.hard_links || !able.overwriting || fs.hard_link(from, to).is_err() {
        return Ok(false);
    }
    match fs.overwrite(to) {
        Ok(mut file) => {
            file.sync().map_err(|error| Error::io(from, "sync", error))?;
            file.close().map_err(|error| Error::io(from, "close", error))?;
            Ok(true)
        }
        Err(_) => {
            // A copy to this name would write over the source.
            fs.remove(to).map_err(|error| Error::io(to, "remove", error))?;
            Ok(false)
        }
    }
}

/// Copies the first `bytes` bytes of a file, durably.
pub(crate) fn copy(fs: &dyn Fs, from: &Path, to: &Path, bytes: u64) -> Result<()> {
    let source = fs.open(from).map_err(|error| Error::io(from, "open", error))?;
    let mut target = fs.create(to).map_err(|error| Error::io(to, "create", error))?;
    let mut buffer = vec![0; COPY_BYTES.min(bytes) as usize];
    let mut done = 0;
    while done < bytes {
        let piece = &mut buffer[..COPY_BYTES.min(bytes - done) as usize];
        read_full_at(&*source, done, piece).map_err(|error| Error::io(from, "read", error))?;
        target.append(piece).map_err(|error| Error::io(to, "append", error))?;
        done += piece.len() as u64;
    }
    target.sync().map_err(|error| Error::io(to, "sync", error))?;
    target.close().map_err(|error| Error::io(to, "close", error))
}

fn sync_directory(fs: &dyn Fs, directory: &Path) -> Result<()> {
    fs.sync_directory(directory).map_err(|error| Error::io(directory, "sync directory", error))
}
