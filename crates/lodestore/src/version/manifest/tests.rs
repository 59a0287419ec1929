use std::io;
use std::path::PathBuf;

use super::header::{HEADER_BYTES, Header};
use super::recover::read_manifest;
use super::*;
use crate::compatibility::Features;
use crate::fs::{OsFs, ReadableFile};
use crate::table::meta::TableMeta;
use crate::version::edit::FamilyDescriptor;

/// A directory for one test.
struct Scratch {
    fs: Arc<dyn Fs>,
    path: PathBuf,
}

impl Scratch {
    fn new(name: &str) -> Scratch {
        let name = format!("lodestore-manifest-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let fs: Arc<dyn Fs> = Arc::new(OsFs);
        fs.create_directory(&path).unwrap();
        Scratch { fs, path }
    }

    fn create(&self, identity: ManifestIdentity, state: &State) -> Manifest {
        Manifest::create(&self.fs, &self.path, identity, state).unwrap()
    }

    fn recover(&self) -> Result<Recovered> {
        recover(&self.fs, &self.path)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path.join(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path.join(name)).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A file in memory.
#[derive(Debug)]
struct Bytes(Vec<u8>);

impl ReadableFile for Bytes {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.0.get(offset as usize..).unwrap_or(&[]);
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

fn read(bytes: &[u8]) -> Result<Recovered> {
    let file: Arc<dyn ReadableFile> = Arc::new(Bytes(bytes.to_vec()));
    read_manifest(&file, Path::new("MANIFEST-000001"), &mut |_, _| {})
}

const NAME: &str = "MANIFEST-000001";

fn identity() -> ManifestIdentity {
    ManifestIdentity {
        number: 1,
        id: FileId(0x1111),
        database_id: FileId(0x2222),
        predecessor: FileId(0),
        edit: 40,
        created_unix_seconds: 1_700_000_000,
    }
}

fn first_state() -> State {
    let default = FamilyDescriptor { name: "default".into(), ..FamilyDescriptor::default() };
    let mut state = State::default();
    let edit = VersionEdit { families_created: vec![default], ..VersionEdit::default() };
    state.apply(&edit).unwrap();
    state
}

/// A group of two edits; table `number` is added and the one before removed.
fn group(number: u64) -> Vec<VersionEdit> {
    let meta = TableMeta { number, ..TableMeta::default() };
    let mut deleted = vec![(0, 0, number - 1)];
    deleted.retain(|_| number > 10);
    vec![
        VersionEdit { tables_deleted: deleted, ..VersionEdit::default() },
        VersionEdit {
            tables_added: vec![(0, 0, meta)],
            last_sequence: Some(number * 100),
            ..VersionEdit::default()
        },
    ]
}

/// A manifest with `groups` groups after its checkpoint, and the state after
/// each; a group's bytes are split into records of `part` bytes.
fn sample(name: &str, groups: u64, part: usize) -> (Vec<u8>, Vec<State>) {
    let scratch = Scratch::new(name);
    let mut states = vec![first_state()];
    let mut manifest = scratch.create(identity(), &states[0]);
    for number in 10..10 + groups {
        let mut state = states.last().unwrap().clone();
        for edit in &group(number) {
            state.apply(edit).unwrap();
        }
        states.push(state);
        let edit = manifest.append_in_parts(&group(number), part).unwrap();
        assert_eq!(edit, 40 + states.len() as u64 - 1);
    }
    (scratch.read(NAME), states)
}

/// What was appended is there after reopening, and so is everything that the
/// manifest says of itself.
#[test]
fn appended_groups_are_recovered() {
    let scratch = Scratch::new("recovered");
    let mut manifest = scratch.create(identity(), &first_state());
    assert_eq!(manifest.append(&group(10)).unwrap(), 41);
    assert_eq!(manifest.append(&group(11)).unwrap(), 42);
    let recovered = scratch.recover().unwrap();
    assert_eq!(recovered.identity, ManifestIdentity { edit: 42, ..identity() });
    assert_eq!(&recovered.identity, manifest.identity());
    assert_eq!(recovered.torn, None);
    assert!(recovered.check_writable().is_ok());
    let tables: Vec<u64> = recovered.state.families[&0].tables.keys().copied().collect();
    assert_eq!((tables, recovered.state.last_sequence), (vec![11], 1_100));

    let next = ManifestIdentity {
        number: 12,
        id: FileId(0x3333),
        predecessor: recovered.identity.id,
        ..recovered.identity
    };
    let mut manifest = scratch.create(next, &recovered.state);
    let again = scratch.recover().unwrap();
    assert_eq!((&again.state.families, again.identity), (&recovered.state.families, next));
    assert_eq!(manifest.append(&group(12)).unwrap(), 43, "edit numbers go on");
}

/// A crash may cut the manifest anywhere: the state is that after some prefix
/// of the groups, never part of a group; a cut checkpoint is corruption.
#[test]
fn a_manifest_cut_at_any_byte_gives_a_prefix_of_its_groups() {
    for (name, part) in [("cut-whole", usize::MAX), ("cut-parts", 20)] {
        let (bytes, states) = sample(name, 3, part);
        let mut seen = 0;
        for end in 0..=bytes.len() {
            match read(&bytes[..end]) {
                Ok(recovered) => {
                    let groups = (recovered.identity.edit - 40) as usize;
                    assert!(groups >= seen, "a longer file has no fewer groups");
                    seen = groups;
                    assert_eq!(recovered.state, states[groups], "cut at {end}");
                }
                Err(error) => {
                    assert!(error.is_corruption(), "{error}");
                    assert_eq!(seen, 0);
                    assert!(end < 4096, "the checkpoint was whole at {end}");
                }
            }
        }
        assert_eq!(seen, 3);
    }
}

/// Rot in a group is corruption, never a smaller state, in the last one too.
/// Only the last witness may look like a torn tail, and takes nothing along.
#[test]
fn changed_bytes_are_corruption_unless_nothing_depends_on_them() {
    for (name, part) in [("flip-whole", usize::MAX), ("flip-parts", 20)] {
        let (bytes, states) = sample(name, 3, part);
        let witness = bytes.len() - crate::record::HEADER_BYTES;
        for place in 0..bytes.len() {
            // Fill is all alike: a few places of it are enough.
            if place % 4096 > 600 && place % 64 != 0 {
                continue;
            }
            for flip in [0x01, 0x80] {
                let mut changed = bytes.clone();
                changed[place] ^= flip;
                match read(&changed) {
                    Ok(recovered) => {
                        assert!(place >= witness, "rot at {place} was not noticed");
                        assert!(recovered.torn.is_some());
                        assert_eq!(recovered.state, states[3]);
                    }
                    Err(error) => assert!(error.is_corruption(), "{error}"),
                }
            }
        }
    }
}

/// Two manifests' records, or two places in one, cannot be exchanged.
#[test]
fn records_of_another_manifest_do_not_count() {
    let (bytes, _) = sample("swap", 2, usize::MAX);
    let mut swapped = bytes.clone();
    swapped[4096..8192].copy_from_slice(&bytes[8192..12288]);
    assert!(read(&swapped).unwrap_err().is_corruption());
    let other = ManifestIdentity { id: FileId(0x4444), ..identity() };
    let mut renamed = bytes.clone();
    renamed[..HEADER_BYTES].copy_from_slice(&Header::of(&other, Features::default()).encode());
    assert!(read(&renamed).unwrap_err().is_corruption());
}

/// A group larger than a record's part counts wholly.
#[test]
fn a_group_of_many_records_is_one_change() {
    let scratch = Scratch::new("large");
    let mut manifest = scratch.create(identity(), &first_state());
    let add = |number| (0, 0, TableMeta { number, ..TableMeta::default() });
    let large =
        VersionEdit { tables_added: (100..3_000).map(add).collect(), ..VersionEdit::default() };
    manifest.append_in_parts(&[large], 1_000).unwrap();
    let recovered = scratch.recover().unwrap();
    assert_eq!(recovered.state.families[&0].tables.len(), 2_900);
    assert_eq!(recovered.identity.edit, 41);
    assert_eq!(recovered.state.next_file_number, 3_000);
}

/// An edit that contradicts the state is told with its place.
#[test]
fn a_contradicting_edit_is_corruption() {
    let scratch = Scratch::new("contradiction");
    let mut manifest = scratch.create(identity(), &first_state());
    manifest.append(&group(20)).unwrap();
    let recovered = scratch.recover();
    let Err(Error::Corruption { offset, what, .. }) = recovered else {
        panic!("{recovered:?}");
    };
    assert_eq!(offset, 4096 + crate::record::HEADER_BYTES as u64);
    assert!(what.contains("table 19"), "{what}");
}

/// What a later program wrote is refused as such, not called damage; what it
/// says may be ignored is; what only readers may ignore stops a writer.
#[test]
fn later_formats_are_told_apart() {
    let (bytes, _) = sample("later", 1, usize::MAX);
    let with = |change: &dyn Fn(&mut Header)| {
        let mut header = Header::of(&identity(), Features::default());
        change(&mut header);
        let mut changed = bytes.clone();
        changed[..HEADER_BYTES].copy_from_slice(&header.encode());
        read(&changed)
    };
    let incompatible =
        |result: Result<Recovered>| matches!(result, Err(Error::Incompatible { .. }));
    assert!(incompatible(with(&|h| h.version += 1)));
    assert!(incompatible(with(&|h| h.features.incompatible = 1 << 63)));
    let read_only = with(&|h| h.features.read_compatible = 1).unwrap();
    assert!(matches!(read_only.check_writable(), Err(Error::Incompatible { .. })));
    let all = Features { compatible: u64::MAX, ..Features::default() };
    assert!(with(&|h| h.features = all).unwrap().check_writable().is_ok());
    let mut reserved = bytes.clone();
    [12, 15, 112, 123].into_iter().for_each(|at: usize| reserved[at] = 9);
    let checksum = crate::checksum::crc32c(&reserved[..HEADER_BYTES - 4]);
    reserved[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
    assert!(read(&reserved).unwrap().check_writable().is_ok(), "reserved bytes mean nothing yet");
}

/// Without CURRENT there is no database, unless files of one are there.
#[test]
fn a_lost_current_is_corruption_and_no_new_database() {
    let scratch = Scratch::new("lost");
    let missing = |result: Result<Recovered>| matches!(result, Err(Error::Missing { .. }));
    let none: Arc<dyn Fs> = Arc::new(OsFs);
    assert!(missing(recover(&none, &scratch.path.join("nowhere"))));
    assert!(missing(scratch.recover()));
    scratch.write("notes.txt", b"not ours");
    scratch.write("LOCK", b"");
    assert!(missing(scratch.recover()));
    for name in ["000007.wal", "000008.table", "MANIFEST-000009"] {
        scratch.write(name, &[7; 20_000]);
        let error = scratch.recover().unwrap_err();
        assert!(error.is_corruption() && error.to_string().contains("CURRENT"), "{error}");
        std::fs::remove_file(scratch.path.join(name)).unwrap();
    }
}

/// A crash while the database was being created leaves a first manifest, whole
/// or not, and no CURRENT: there is nothing to lose, so it can be created.
#[test]
fn a_creation_that_was_cut_short_leaves_no_database() {
    let scratch = Scratch::new("creation");
    let mut manifest = scratch.create(identity(), &first_state());
    let whole = scratch.read(NAME);
    manifest.append(&group(10)).unwrap();
    let with_table = scratch.read(NAME);
    std::fs::remove_file(scratch.path.join("CURRENT")).unwrap();
    for end in [0, 1, 8, 100, 128, 150, whole.len() - 1, whole.len()] {
        scratch.write(NAME, &whole[..end]);
        let result = scratch.recover();
        assert!(matches!(result, Err(Error::Missing { .. })), "{end}: {result:?}");
    }
    scratch.write("000002.wal", b"");
    assert!(scratch.recover().unwrap_err().is_corruption());
    std::fs::remove_file(scratch.path.join("000002.wal")).unwrap();
    scratch.write(NAME, &with_table);
    assert!(scratch.recover().unwrap_err().is_corruption(), "a table is lost");
}

/// Damage to CURRENT and to what it names is told, and nothing is changed.
#[test]
fn a_damaged_current_is_corruption() {
    let scratch = Scratch::new("current");
    scratch.create(identity(), &first_state());
    let good = scratch.read("CURRENT");
    for bad in
        [&b""[..], b"\n", b"garbage\n", &good[..good.len() - 1], &[b'M'; 600], NAME.as_bytes()]
    {
        scratch.write("CURRENT", bad);
        assert!(scratch.recover().unwrap_err().is_corruption());
        assert_eq!(scratch.read("CURRENT"), bad);
    }
    scratch.write("CURRENT", format!("{NAME}\n").as_bytes());
    assert!(scratch.recover().unwrap_err().is_corruption(), "the id is cut off");
    scratch.write("CURRENT", &good);
    assert!(scratch.recover().is_ok());
    let other = ManifestIdentity { id: FileId(9), ..identity() };
    scratch.create(other, &first_state());
    scratch.write("CURRENT", &good);
    assert!(scratch.recover().unwrap_err().is_corruption(), "another manifest of that name");
    std::fs::remove_file(scratch.path.join(NAME)).unwrap();
    assert!(scratch.recover().unwrap_err().is_corruption(), "no manifest of that name");
}

/// Someone else's database is named for what it is, and left alone.
#[test]
fn a_leveldb_directory_is_incompatible() {
    let scratch = Scratch::new("leveldb");
    scratch.write("CURRENT", b"MANIFEST-000005\n");
    scratch.write(
        "MANIFEST-000005",
        b"\x56\xf9\xb8\xf8\x1c\x00\x01\x01\x1aleveldb.BytewiseComparator",
    );
    let error = scratch.recover().unwrap_err();
    assert!(matches!(error, Error::Incompatible { .. }));
    assert!(error.to_string().contains("LevelDB or RocksDB"), "{error}");
}

/// Files that an unfinished change left behind keep their numbers.
#[test]
fn numbers_of_files_that_are_there_are_not_used_again() {
    let scratch = Scratch::new("numbers");
    scratch.create(identity(), &first_state());
    scratch.write("000041.table", b"");
    scratch.write("18446744073709551615.wal", b"");
    assert_eq!(scratch.recover().unwrap().state.next_file_number, 42);
}

/// A manifest is begun anew when it is far longer than its checkpoint.
#[test]
fn a_long_manifest_is_outgrown() {
    let scratch = Scratch::new("outgrown");
    let mut manifest = scratch.create(identity(), &first_state());
    let edit = |id, bytes| VersionEdit {
        families_created: vec![FamilyDescriptor {
            id,
            name: "n".repeat(bytes),
            ..FamilyDescriptor::default()
        }],
        ..VersionEdit::default()
    };
    manifest.append(&[edit(8, OUTGROWN_BYTES_MIN as usize - 20_000)]).unwrap();
    assert!(!manifest.is_outgrown());
    manifest.append(&[edit(9, 20_000)]).unwrap();
    assert!(manifest.is_outgrown());
}
