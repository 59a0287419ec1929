//! Opening: from `CURRENT` and the manifest that it names to the state. Reads
//! only; whoever wants to write begins a new manifest afterwards.
//!
//! Where the records stop, the last group was cut short, or stored bytes were
//! lost. A later record whose watermark lies behind that place was written
//! after the place had become durable: that is corruption. Without one it is a
//! torn tail: the group was never acknowledged, and it is left out and told.
//! Each group is followed by a record without content, its witness.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::coding::Reader;
use crate::error::{Error, Result};
use crate::filename::{self, FileKind};
use crate::fs::{Fs, ReadableFile, read_full_at};
use crate::key::FileId;
use crate::record::{End, Next, RecordReader, scan};
use crate::version::current::{self, Current};
use crate::version::edit::VersionEdit;
use crate::version::field::corrupt;
use crate::version::manifest::header::{HEADER_BYTES, Header, MAGIC};
use crate::version::manifest::{FLAG_CHECKPOINT, FLAG_MORE, ManifestIdentity, PREFIX_BYTES};
use crate::version::state::State;

/// What a manifest said.
#[derive(Clone, Debug)]
pub(crate) struct Recovered {
    pub(crate) state: State,
    /// Its `edit` is the last edit applied.
    pub(crate) identity: ManifestIdentity,
    /// Number of the last edit of its checkpoint: those after it were made while
    /// this manifest was in use.
    pub(crate) checkpoint_edit: u64,
    /// The manifest's path.
    pub(crate) path: PathBuf,
    /// Bytes at the end that were left out.
    pub(crate) torn: Option<TornTail>,
    /// Whether the file itself tells that its last edit was synced.
    pub(crate) is_synced: bool,
}

/// The end of a manifest that was cut short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TornTail {
    /// Where the first record stood that does not count.
    pub(crate) offset: u64,
    pub(crate) what: String,
}

impl Recovered {
    /// What there is before a database's first manifest.
    pub(crate) fn nothing(directory: &Path, identity: ManifestIdentity) -> Recovered {
        Recovered {
            state: State::default(),
            identity,
            checkpoint_edit: 0,
            path: filename::current_path(directory),
            torn: None,
            is_synced: true,
        }
    }

    /// Whether power loss may still take the name in `CURRENT`, the directory never having
    /// been synced since: each edit behind those that it began with came after that.
    pub(crate) fn name_may_be_lost(&self) -> bool {
        !self.state.families.is_empty() && self.identity.edit <= self.checkpoint_edit + 1
    }

    /// What was left out at the end, in words.
    pub(crate) fn torn_note(&self) -> Option<String> {
        let TornTail { offset, what } = self.torn.as_ref()?;
        Some(format!("{} ends at offset {offset}: {what}", self.path.display()))
    }

    /// Must be asked before anything is written.
    ///
    /// # Errors
    /// `Incompatible` if a program that knows more has to do the writing.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.state.features.check_writable(&self.path)
    }
}

/// Reads the database's state from `directory`.
///
/// # Errors
/// - `Missing` if there is no database, or its creation was cut short before
///   it could hold anything.
/// - `Corruption` if `CURRENT` or the manifest is lost or damaged.
/// - `Incompatible` if a newer program wrote it, or LevelDB or RocksDB did.
pub(crate) fn recover(fs: &Arc<dyn Fs>, directory: &Path) -> Result<Recovered> {
    let names = match fs.list(directory) {
        Ok(names) => names,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(no_database(directory)),
        Err(error) => return Err(Error::io(directory, "list", error)),
    };
    let files: Vec<FileKind> = names.iter().filter_map(|name| filename::parse(name)).collect();
    let (number, id) = match current::read(&**fs, directory)? {
        Some(Current::Ours { number, id }) => (number, id),
        Some(Current::NameAlone { number }) => return Err(foreign(fs, directory, number)),
        None => return Err(without_current(fs, directory, &files)),
    };
    let path = directory.join(filename::manifest_name(number));
    let file = open(fs, &path)?;
    let mut recovered = read_manifest(&file, &path, &mut |_, _| {})?;
    if (recovered.identity.number, recovered.identity.id) != (number, id) {
        let ManifestIdentity { number, id: found, .. } = recovered.identity;
        let what = format!("CURRENT names manifest {id}, but this is {found}, number {number}");
        return Err(Error::corruption(&path, 0, what));
    }
    // A file that an unfinished change left behind must not have its number
    // used again while it is still there.
    let next = files.iter().filter_map(|&file| file.number()?.checked_add(1)).max();
    let state = &mut recovered.state;
    state.next_file_number = state.next_file_number.max(next.unwrap_or(0));
    Ok(recovered)
}

/// # Errors
/// `Incompatible` if the database in `directory` is LevelDB's or RocksDB's, `Io`
/// and `Corruption` if `CURRENT` cannot be read.
pub(crate) fn refuse_foreign(fs: &Arc<dyn Fs>, directory: &Path) -> Result<()> {
    match current::read(&**fs, directory)? {
        Some(Current::NameAlone { number }) => Err(foreign(fs, directory, number)),
        Some(Current::Ours { .. }) | None => Ok(()),
    }
}

fn open(fs: &Arc<dyn Fs>, path: &Path) -> Result<Arc<dyn ReadableFile>> {
    fs.open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::corruption(path, 0, "CURRENT names it, but it is missing"),
        _ => Error::io(path, "open", error),
    })
}

fn no_database(directory: &Path) -> Error {
    Error::missing(format!("no database in {}", directory.display()))
}

/// What a directory without `CURRENT` is: nothing, unless files say otherwise.
fn without_current(fs: &Arc<dyn Fs>, directory: &Path, files: &[FileKind]) -> Error {
    let mut manifests = files.iter().filter(|file| matches!(file, FileKind::Manifest(_)));
    let holds_data = |file: &FileKind| matches!(file, FileKind::Log(_) | FileKind::Table(_));
    let manifest = manifests.next();
    let data = files.iter().find(|file| holds_data(file));
    let Some(found) = data.or(manifest) else {
        return no_database(directory);
    };
    if let (None, Some(&FileKind::Manifest(number)), None) = (data, manifest, manifests.next())
        && creation_was_cut_short(fs, directory, number)
    {
        return no_database(directory);
    }
    let what = format!("it is missing, although there are files of a database ({found:?})");
    Error::corruption(&filename::current_path(directory), 0, what)
}

/// True if the only manifest is a first one that never came into use: it is
/// not whole, or it knows of no table. Then there is nothing to lose.
fn creation_was_cut_short(fs: &Arc<dyn Fs>, directory: &Path, number: u64) -> bool {
    // A first manifest is its header and a checkpoint of a few names, filled
    // up to a multiple of 4 KiB. One that is longer is not taken for it.
    const FIRST_BYTES_MAX: u64 = 16 << 10;
    let path = directory.join(filename::manifest_name(number));
    let Ok(file) = fs.open(&path) else {
        return false;
    };
    let Ok(length) = file.length() else {
        return false;
    };
    let mut magic = [0; MAGIC.len()];
    let readable = length >= MAGIC.len() as u64;
    if readable {
        let is_read = read_full_at(&*file, 0, &mut magic).is_ok();
        // Zeros: the length reached the disk, the first sector did not.
        let is_ours = magic == MAGIC || magic == [0; MAGIC.len()];
        if !(is_read && is_ours) {
            return false;
        }
    }
    match read_manifest(&file, &path, &mut |_, _| {}) {
        Ok(whole) => {
            let families = &mut whole.state.families.values();
            whole.identity.predecessor == FileId(0) && families.all(|f| f.tables.is_empty())
        }
        Err(error) => error.is_corruption() && length <= FIRST_BYTES_MAX,
    }
}

/// The error for a directory whose `CURRENT` holds a manifest's name alone.
fn foreign(fs: &Arc<dyn Fs>, directory: &Path, number: u64) -> Error {
    let current = filename::current_path(directory);
    let path = directory.join(filename::manifest_name(number));
    if is_ours(&**fs, &path) {
        return Error::corruption(&current, 0, "the manifest's id is missing");
    }
    let what = "this is a database of LevelDB or RocksDB; `lode adopt` makes one of LevelDB ours, in \
                place, and can be undone";
    Error::incompatible(&current, what)
}

/// True if the file begins as our manifests do.
pub(crate) fn is_ours(fs: &dyn Fs, path: &Path) -> bool {
    let mut magic = [0; MAGIC.len()];
    fs.open(path).is_ok_and(|file| read_full_at(&*file, 0, &mut magic).is_ok()) && magic == MAGIC
}

/// The path of the manifest that `CURRENT` names.
///
/// # Errors
/// `Missing` if there is no `CURRENT`; `Corruption` if it is damaged; `Io`.
pub(crate) fn current_path(fs: &dyn Fs, directory: &Path) -> Result<PathBuf> {
    match current::read(fs, directory)? {
        Some(Current::Ours { number, .. } | Current::NameAlone { number }) => {
            Ok(directory.join(filename::manifest_name(number)))
        }
        None => Err(no_database(directory)),
    }
}

/// Where an edit stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EditPlace {
    /// Where its group's first record begins.
    pub(crate) offset: u64,
    pub(crate) edit: u64,
    pub(crate) is_checkpoint: bool,
}

/// Everything that the bytes of one manifest say; `visit` is given each edit
/// once it was applied.
pub(crate) fn read_manifest(
    file: &Arc<dyn ReadableFile>,
    path: &Path,
    visit: &mut dyn FnMut(EditPlace, &VersionEdit),
) -> Result<Recovered> {
    let header = read_header(&**file, path)?;
    let id = header.identity.id;
    let start = HEADER_BYTES as u64;
    let mut records = RecordReader::new(Arc::clone(file), path, id, start, u64::MAX);
    let mut replay = Replay::new(path, &header);
    let mut last_offset = start;
    let end = loop {
        match records.next()? {
            Next::Record { offset, payload, .. } => {
                last_offset = offset;
                replay.record(offset, payload, visit)?;
            }
            Next::End(end) => break end,
        }
    };
    let torn = torn_tail(&**file, path, id, &replay, end)?;
    if !replay.has_checkpoint {
        return Err(Error::corruption(path, start, "the checkpoint is not whole"));
    }
    Ok(Recovered {
        state: replay.state,
        identity: ManifestIdentity { edit: replay.edit, ..header.identity },
        checkpoint_edit: header.identity.edit,
        path: path.to_path_buf(),
        torn,
        is_synced: records.watermark() > last_offset,
    })
}

/// Which manifest `file` is, and the features of its database.
pub(crate) fn read_header(file: &dyn ReadableFile, path: &Path) -> Result<Header> {
    let mut bytes = [0; HEADER_BYTES];
    read_full_at(file, 0, &mut bytes).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => Error::corruption(path, 0, "the header is not whole"),
        _ => Error::io(path, "read", error),
    })?;
    Header::decode(&bytes, path)
}

/// Whether the records' end is the file's end, a torn tail or corruption.
fn torn_tail(
    file: &dyn ReadableFile,
    path: &Path,
    id: FileId,
    replay: &Replay<'_>,
    end: End,
) -> Result<Option<TornTail>> {
    let (offset, what) = match (end, replay.open_group()) {
        (End::Clean { .. }, None) => return Ok(None),
        (End::Clean { .. }, Some(offset)) => (offset, "the last group of edits is not whole"),
        // Records of the group before the tear were written by the same call.
        (End::Torn { what, .. }, Some(offset)) => (offset, what),
        (End::Torn { offset, what }, None) => (offset, what),
        (End::Foreign { offset }, None) => (offset, "bytes that are no record"),
        (End::Foreign { .. }, Some(offset)) => (offset, "a group of edits ends too early"),
    };
    check_durable(file, path, id, offset, what)?;
    Ok(Some(TornTail { offset, what: what.to_string() }))
}

/// Refuses a file in which a later record says that `offset` was durable.
fn check_durable(
    file: &dyn ReadableFile,
    path: &Path,
    id: FileId,
    offset: u64,
    what: &str,
) -> Result<()> {
    if scan(file, path, id, offset)?.watermark > offset {
        let what = format!("{what}, although it was durable");
        return Err(Error::corruption(path, offset, what));
    }
    Ok(())
}

/// Applies groups of edits as their records come.
struct Replay<'a> {
    path: &'a Path,
    state: State,
    edit: u64,
    has_checkpoint: bool,
    /// A group whose records so far say that more follow.
    open: Option<OpenGroup>,
}

struct OpenGroup {
    offset: u64,
    edit: u64,
    flags: u8,
    bytes: Vec<u8>,
}

impl<'a> Replay<'a> {
    fn new(path: &'a Path, header: &Header) -> Replay<'a> {
        let edit = header.identity.edit;
        let state = State::with(header.features);
        Replay { path, state, edit, has_checkpoint: false, open: None }
    }

    /// Where the group begins that is not whole yet.
    fn open_group(&self) -> Option<u64> {
        self.open.as_ref().map(|group| group.offset)
    }

    fn record(
        &mut self,
        offset: u64,
        payload: &[u8],
        visit: &mut dyn FnMut(EditPlace, &VersionEdit),
    ) -> Result<()> {
        let (edit, flags, bytes) = self.prefix(offset, payload)?;
        let (kind, more) = (flags & !FLAG_MORE, flags & FLAG_MORE != 0);
        let group = match self.open.take() {
            None if !more => {
                let place = EditPlace { offset, edit, is_checkpoint: kind & FLAG_CHECKPOINT != 0 };
                return self.group(place, bytes, visit);
            }
            None => OpenGroup { offset, edit, flags: kind, bytes: bytes.to_vec() },
            Some(open) if (open.edit, open.flags) != (edit, kind) => {
                let what = "a group of edits breaks off before another begins";
                return Err(Error::corruption(self.path, offset, what));
            }
            Some(mut open) => {
                open.bytes.extend_from_slice(bytes);
                open
            }
        };
        if more {
            self.open = Some(group);
            return Ok(());
        }
        let is_checkpoint = kind & FLAG_CHECKPOINT != 0;
        self.group(EditPlace { offset: group.offset, edit, is_checkpoint }, &group.bytes, visit)
    }

    fn prefix<'p>(&self, offset: u64, payload: &'p [u8]) -> Result<(u64, u8, &'p [u8])> {
        let mut reader = Reader::new(payload);
        let Some((edit, flags)) = reader.u64().zip(reader.u8()) else {
            let what = format!("a record is shorter than {PREFIX_BYTES} bytes");
            return Err(Error::corruption(self.path, offset, what));
        };
        let unknown = flags & !(FLAG_MORE | FLAG_CHECKPOINT);
        if unknown != 0 {
            let what = format!("record flags {unknown:#x} are not known");
            return Err(Error::incompatible(self.path, what));
        }
        Ok((edit, flags, reader.rest()))
    }

    /// Applies a whole group.
    fn group(
        &mut self,
        place: EditPlace,
        bytes: &[u8],
        visit: &mut dyn FnMut(EditPlace, &VersionEdit),
    ) -> Result<()> {
        let EditPlace { offset, edit, is_checkpoint } = place;
        let expected = if self.has_checkpoint { self.edit.checked_add(1) } else { Some(self.edit) };
        if is_checkpoint == self.has_checkpoint || Some(edit) != expected {
            let what = format!("edit {edit} does not follow edit {}", self.edit);
            return Err(Error::corruption(self.path, offset, what));
        }
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let decoded = reader.slice().ok_or_else(|| corrupt("an edit ends early"));
            let decoded = decoded.and_then(VersionEdit::decode);
            let change = decoded.map_err(|error| error.at(self.path, offset))?;
            let applied = self.state.apply(&change);
            applied.map_err(|what| Error::corruption(self.path, offset, what))?;
            visit(place, &change);
        }
        self.has_checkpoint = true;
        self.edit = edit;
        Ok(())
    }
}
