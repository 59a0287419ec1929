//! The manifest: the durable log of edits.
//!
//! A file `MANIFEST-000007` is a [`header`], then records (see `record`). The
//! first group of edits is a checkpoint: the whole state, so that opening
//! reads one manifest and not a history. Each later group is one change.
//!
//! A record's payload:
//!
//! | OFFSET | SIZE | MEANING |
//! |---|---|---|
//! | 0 | 8 | edit number: the group's place in the life of the database |
//! | 8 | 1 | flags: 1 = the group goes on in the next record; 2 = checkpoint; other bits must be 0 |
//! | 9 | .. | the group, or a part of it: each edit as length (varint) and bytes |
//!
//! What holds:
//! - A group counts wholly or not at all, however long it is.
//! - Edit numbers ascend by one, also from one manifest to the next. A
//!   checkpoint has the number of the last edit that it contains.
//! - `append` returns only when the group survives power loss. After an error
//!   it is unknown whether the group is there. So nothing that either outcome
//!   needs may be deleted until the next manifest is in use.
//! - `CURRENT` names a manifest only once its checkpoint is durable.

mod header;
mod recover;

use std::path::Path;
use std::sync::Arc;

use crate::coding::{put_slice, put_u64};
use crate::error::{Error, Result};
use crate::filename;
use crate::fs::Fs;
use crate::key::FileId;
use crate::record::{Kind, RecordWriter};
use crate::version::current;
use crate::version::edit::VersionEdit;
use crate::version::state::State;

pub(crate) use recover::{
    Recovered, current_path, is_ours, read_header, read_manifest, recover, refuse_foreign,
};

/// The group goes on in the next record.
const FLAG_MORE: u8 = 1;
/// The group is the whole state.
const FLAG_CHECKPOINT: u8 = 2;
/// Bytes of a payload before the group's.
const PREFIX_BYTES: usize = 9;
/// The longest part of a group in one record: far below the 4 GiB that a
/// record can hold, so that no group is too long.
const PART_BYTES_MAX: usize = 64 << 20;
/// A manifest that is shorter is not begun anew. Every synced edit takes 4 KiB
/// at least, so this is a thousand edits, read in some milliseconds.
const OUTGROWN_BYTES_MIN: u64 = 4 << 20;
/// Nor is one that is shorter than its checkpoint times this.
const OUTGROWN_FACTOR: u64 = 4;

/// Which manifest a file is, and where it stands in the database's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ManifestIdentity {
    pub(crate) number: u64,
    pub(crate) id: FileId,
    /// The database in which this line of manifests began: origin only, so
    /// that a copy opens like the original.
    pub(crate) database_id: FileId,
    /// The manifest before this one; zero if there was none.
    pub(crate) predecessor: FileId,
    /// Number of the last edit in it.
    pub(crate) edit: u64,
    /// When it was created, in seconds since 1970.
    pub(crate) created_unix_seconds: u64,
}

/// The manifest in use, open for appending.
#[derive(Debug)]
pub(crate) struct Manifest {
    writer: RecordWriter,
    identity: ManifestIdentity,
    checkpoint_bytes: u64,
    broken: Option<Error>,
}

impl Manifest {
    /// Writes a new manifest that begins with `state`, which is the state
    /// after edit number `identity.edit`; then makes it the one in use. All of
    /// it is durable when this returns.
    ///
    /// # Errors
    /// `Io`. Either the manifest before or this one is in use then, and both
    /// say the same; the files of both must stay.
    pub(crate) fn create(
        fs: &Arc<dyn Fs>,
        directory: &Path,
        identity: ManifestIdentity,
        state: &State,
    ) -> Result<Manifest> {
        Manifest::begin(fs, directory, identity, state, &[])
    }

    /// [`Manifest::create`], with an edit of nothing behind the checkpoint. Its number is
    /// this manifest's: a log that knows of it is of no copy that went on by itself.
    pub(crate) fn create_apart(
        fs: &Arc<dyn Fs>,
        directory: &Path,
        identity: ManifestIdentity,
        state: &State,
    ) -> Result<Manifest> {
        let next = identity.edit + 1;
        let mut manifest = Manifest::begin(
            fs,
            directory,
            identity,
            state,
            &[Group { edit: next, flags: 0, bytes: &[] }],
        )?;
        manifest.identity.edit = next;
        Ok(manifest)
    }

    fn begin(
        fs: &Arc<dyn Fs>,
        directory: &Path,
        identity: ManifestIdentity,
        state: &State,
        more: &[Group<'_>],
    ) -> Result<Manifest> {
        let (number, path) =
            (identity.number, directory.join(filename::manifest_name(identity.number)));
        let written = Manifest::write_new(fs, &path, identity, state, more);
        let prepared = written.and_then(|manifest| {
            current::prepare(&**fs, directory, number, identity.id).map(|()| manifest)
        });
        let manifest = prepared.inspect_err(|_| {
            // Nothing names them yet, and on a full disk each try would leave two.
            let _ = fs.remove(&path);
            let _ = fs.remove(&filename::temporary_path(directory, number));
        })?;
        current::install(&**fs, directory, number)?;
        Ok(manifest)
    }

    /// Writes the file, durably.
    fn write_new(
        fs: &Arc<dyn Fs>,
        path: &Path,
        identity: ManifestIdentity,
        state: &State,
        more: &[Group<'_>],
    ) -> Result<Manifest> {
        let mut file = fs.create(path).map_err(|error| Error::io(path, "create", error))?;
        let header = header::Header::of(&identity, state.features).encode();
        file.append(&header).map_err(|error| Error::io(path, "append", error))?;
        let writer = RecordWriter::new(fs, path, file, identity.id, header.len() as u64);
        let mut manifest = Manifest { writer, identity, checkpoint_bytes: 0, broken: None };
        let bytes = encode_group(&state.to_checkpoint());
        let checkpoint = Group { edit: identity.edit, flags: FLAG_CHECKPOINT, bytes: &bytes };
        manifest.write(&[&[checkpoint], more].concat(), PART_BYTES_MAX)?;
        manifest.checkpoint_bytes = manifest.writer.bytes();
        Ok(manifest)
    }

    /// Appends `group`, to be applied wholly or not at all, and makes it
    /// durable. Returns its edit number.
    ///
    /// # Errors
    /// What failed, now or at an earlier call: the manifest takes no more
    /// then, and the group may or may not be there after a crash.
    pub(crate) fn append(&mut self, group: &[VersionEdit]) -> Result<u64> {
        self.append_in_parts(group, PART_BYTES_MAX)
    }

    fn append_in_parts(&mut self, group: &[VersionEdit], part_bytes_max: usize) -> Result<u64> {
        if let Some(error) = &self.broken {
            return Err(Error::ReadOnly { cause: Box::new(error.clone()) });
        }
        let number = self.identity.edit + 1;
        let bytes = encode_group(group);
        let group = Group { edit: number, flags: 0, bytes: &bytes };
        if let Err(error) = self.write(&[group], part_bytes_max) {
            self.broken = Some(error.clone());
            return Err(error);
        }
        self.identity.edit = number;
        Ok(number)
    }

    /// Which manifest this is; its `edit` is the last one appended.
    pub(crate) fn identity(&self) -> &ManifestIdentity {
        &self.identity
    }

    /// Length of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    /// True once a new manifest would be so much shorter that it pays.
    pub(crate) fn is_outgrown(&self) -> bool {
        let limit = self.checkpoint_bytes.saturating_mul(OUTGROWN_FACTOR);
        self.bytes() > limit.max(OUTGROWN_BYTES_MIN)
    }

    /// Writes groups in records of at most `part_bytes_max` bytes of them, with one
    /// write, and syncs.
    fn write(&mut self, groups: &[Group<'_>], part_bytes_max: usize) -> Result<()> {
        let payloads: Vec<Vec<u8>> =
            groups.iter().flat_map(|group| group.payloads(part_bytes_max)).collect();
        let payloads: Vec<&[u8]> = payloads.iter().map(|payload| &payload[..]).collect();
        // Even a failure that was undone ends this manifest: should the
        // machine stop now, the undoing itself may be lost.
        self.writer.append_and_sync(&payloads).map_err(|failure| failure.into_error())?;
        // The group's witness: what it makes unneeded is removed from now on,
        // so that rot in it must not pass for a group that was cut short. It
        // need not be durable, and the group is good without it.
        let _ = self.writer.append_marker(Kind::Skip, &[]);
        Ok(())
    }
}

/// Edits that count wholly or not at all, encoded.
#[derive(Clone, Copy)]
struct Group<'a> {
    /// The number of the last one.
    edit: u64,
    flags: u8,
    bytes: &'a [u8],
}

impl Group<'_> {
    /// The records that hold it.
    fn payloads(&self, part_bytes_max: usize) -> Vec<Vec<u8>> {
        let Group { edit, flags, bytes } = *self;
        let parts = bytes.len().div_ceil(part_bytes_max).max(1);
        let payload = |part: usize| {
            let start = part * part_bytes_max;
            let end = bytes.len().min(start + part_bytes_max);
            let more = if part + 1 < parts { FLAG_MORE } else { 0 };
            let mut payload = Vec::with_capacity(PREFIX_BYTES + end - start);
            put_u64(&mut payload, edit);
            payload.push(flags | more);
            payload.extend_from_slice(&bytes[start..end]);
            payload
        };
        (0..parts).map(payload).collect()
    }
}

fn encode_group(group: &[VersionEdit]) -> Vec<u8> {
    let (mut out, mut edit_bytes) = (Vec::new(), Vec::new());
    for edit in group {
        edit_bytes.clear();
        edit.encode(&mut edit_bytes);
        put_slice(&mut out, &edit_bytes);
    }
    out
}

#[cfg(test)]
mod tests;
