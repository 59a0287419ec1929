//! A small database with every kind of file, and everything that it may show.

use lodestore::inspect::{FileUse, LogFile, Survey, TableFile};
use lodestore::{
    Append, Compression, Db, Family, FamilyOptions, Fs, KeyOrder, MemFs, Options, PrefixExtractor,
    Result, TableWriter, WriteBatch, WriteOptions,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use testkit::files::{self, Files};

pub const DIRECTORY: &str = "/rot";
/// The family with a dictionary, merges and partitions.
pub const OTHER: &str = "other";
pub const FAMILIES: [&str; 2] = ["default", OTHER];
/// Batches that only the log holds.
pub const BATCHES: u64 = 16;
/// Those of them that are synced, where some are.
const SYNCED: [u64; 2] = [3, 12];
/// The key that says how many of these batches are there, in the default family.
pub const MARKER: &[u8] = b"~marker";
pub const PREFIX_BYTES: usize = 4;

/// Family -> key -> value.
pub type Contents = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

/// How the process ended that had it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was killed; some of its writes were synced.
    Killed,
    /// It was killed and had synced nothing itself.
    NeverSynced,
    /// It closed the database.
    Closed,
}

/// A batch that only the log holds.
pub struct Batch {
    /// The number of its first and its last entry.
    pub numbers: (u64, u64),
    /// Family and key of everything that it says something of.
    pub touched: BTreeSet<(String, Vec<u8>)>,
}

/// The files of the database and what is known of it.
pub struct Sample {
    pub files: Files,
    /// So many of the batches have a durable witness.
    pub witnessed: u64,
    /// What it holds with the first 0, 1, .. of the batches in the log.
    pub states: Vec<Contents>,
    /// Those batches.
    pub batches: Vec<Batch>,
    /// Every key that was ever written, by family, and some that never were.
    pub keys: BTreeMap<String, BTreeSet<Vec<u8>>>,
    /// Manifest and `CURRENT` as they were at earlier moments.
    pub older_manifests: Vec<Files>,
    /// Segments with the number of this one's newest: of another database, and
    /// of a copy of this one that went its own way.
    pub foreign_logs: Vec<Vec<u8>>,
}

pub fn options(fs: &MemFs) -> Options {
    let family = FamilyOptions {
        memtable_bytes: 8 << 10, // only the room that is asked for a segment
        block_bytes: 256,
        compression: Compression::None,
        prefix_extractor: Some(PrefixExtractor::Fixed(PREFIX_BYTES)),
        table_bytes: 8 << 10,
        // Compactions come when they are asked for.
        level0_compaction_files: 100,
        level0_slowdown_files: 100,
        level0_stop_files: 100,
        tombstone_percent: 0,
        ..FamilyOptions::default()
    };
    let default = FamilyOptions { memtable_bytes: 1 << 20, ..family.clone() };
    let other = FamilyOptions {
        merge_operator: Some(Arc::new(Append::with_delimiter(b","))),
        compression: Compression::Zstd { level: 3 },
        compression_by_level: vec![Compression::Snappy],
        dictionary_bytes: 512,
        dictionary_training_bytes: 64 << 10,
        partition_bytes: Some(256),
        table_bytes: 1 << 20,
        ..default.clone()
    };
    Options {
        create_if_missing: true,
        fs: Arc::new(fs.clone()),
        family,
        families: BTreeMap::from([("default".to_string(), default), (OTHER.to_string(), other)]),
        ..Options::default()
    }
}

/// A file system that holds `files` in [`DIRECTORY`].
pub fn disk(files: &Files) -> MemFs {
    let fs = MemFs::new();
    files::write(&fs, Path::new(DIRECTORY), files).expect("memory can be written");
    fs
}

pub fn read_files(fs: &MemFs) -> Files {
    let read = files::read(fs, Path::new(DIRECTORY)).expect("memory can be read");
    files::without_locks(&read)
}

pub fn key(number: u64) -> Vec<u8> {
    format!("k{:03}/{number:05}", number / 16).into_bytes()
}

/// Values of one length in one family, so that blocks of one length are there
/// to be swapped; records that have much in common in the other.
fn value(family: &str, number: u64, round: u64) -> Vec<u8> {
    let mixed = (number * 31 + round).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    match family {
        OTHER => format!(
            "{{\"kind\":\"customer\",\"number\":{number},\"city\":\"Town {}\",\"round\":{round},\
             \"street\":\"Main street {}\",\"active\":true}}",
            mixed % 17,
            mixed % 211
        ),
        _ => format!("{round:02}:{mixed:044x}"),
    }
    .into_bytes()
}

struct Maker {
    fs: MemFs,
    db: Db,
    contents: Contents,
    keys: BTreeMap<String, BTreeSet<Vec<u8>>>,
    older_manifests: Vec<Files>,
    /// What the batch that is being made says something of.
    touched: BTreeSet<(String, Vec<u8>)>,
}

impl Maker {
    fn reopened(self, options: Options) -> Result<Maker> {
        let Maker { fs, db, .. } = self;
        drop(db);
        let db = Db::open(DIRECTORY, options)?;
        Ok(Maker { fs, db, ..self })
    }

    fn family(&self, name: &str) -> Family {
        self.db.family(name).expect("it was created")
    }

    fn entries(&mut self, family: &str) -> &mut BTreeMap<Vec<u8>, Vec<u8>> {
        self.contents.entry(family.to_string()).or_default()
    }

    fn put(&mut self, batch: &mut WriteBatch, family: &str, number: u64, round: u64) {
        let (key, value) = (key(number), value(family, number, round));
        batch.put_in(&self.family(family), &key, &value);
        self.keys.entry(family.to_string()).or_default().insert(key.clone());
        self.touch(family, &key);
        self.entries(family).insert(key, value);
    }

    fn touch(&mut self, family: &str, key: &[u8]) {
        self.touched.insert((family.to_string(), key.to_vec()));
    }

    fn delete(&mut self, batch: &mut WriteBatch, family: &str, number: u64) {
        batch.delete_in(&self.family(family), &key(number));
        self.touch(family, &key(number));
        self.entries(family).remove(&key(number));
    }

    fn delete_range(&mut self, batch: &mut WriteBatch, family: &str, from: u64, to: u64) {
        batch.delete_range_in(&self.family(family), &key(from), &key(to));
        (from..to).for_each(|number| self.touch(family, &key(number)));
        self.entries(family).retain(|k, _| *k < key(from) || *k >= key(to));
    }

    fn append(&mut self, batch: &mut WriteBatch, number: u64, operand: &[u8]) {
        batch.merge_in(&self.family(OTHER), &key(number), operand);
        self.touch(OTHER, &key(number));
        let entries = self.entries(OTHER);
        let whole = match entries.remove(&key(number)) {
            Some(old) => [&old, &b","[..], operand].concat(),
            None => operand.to_vec(),
        };
        entries.insert(key(number), whole);
    }

    fn write(&self, mut batch: WriteBatch, sync: bool) -> Result<()> {
        let options = WriteOptions { sync, ..WriteOptions::default() };
        self.db.write_with(&options, &mut batch).map(|_| ())
    }

    /// Remembers the manifest as it is now.
    fn keep_manifest(&mut self) {
        let mut files = read_files(&self.fs);
        files.retain(|name, _| name == "CURRENT" || name.starts_with("MANIFEST-"));
        self.older_manifests.push(files);
    }

    /// Levels 6 and 5, an ingested table among them.
    fn fill_deep_levels(&mut self) -> Result<()> {
        for family in FAMILIES {
            // Two tables that overlap: one alone would only be moved down.
            for half in 0..2 {
                let mut batch = WriteBatch::new();
                (0..200).for_each(|n| self.put(&mut batch, family, 4 * n + 2 * half, 1));
                self.write(batch, false)?;
                self.family(family).flush()?;
            }
            self.family(family).compact_range(None, None)?;
            self.db.wait_for_background()?;
        }
        self.keep_manifest();
        let (path, options) = ("/ingested", options(&self.fs));
        let mut writer = TableWriter::create(path, &options, &options.family)?;
        for number in 500..560 {
            writer.put(&key(number), &value("default", number, 2))?;
        }
        writer.delete_range(&key(560), &key(580))?;
        writer.finish()?;
        self.db.ingest(&[path], &Default::default())?;
        for number in 500..560 {
            self.keys.get_mut("default").expect("it has keys").insert(key(number));
            self.entries("default").insert(key(number), value("default", number, 2));
        }
        self.entries("default").retain(|k, _| *k < key(560) || *k >= key(580));
        self.keep_manifest();
        Ok(())
    }

    /// Tables of level 0 with deletes of all kinds and operands.
    fn fill_level_0(&mut self, round: u64) -> Result<()> {
        for family in FAMILIES {
            let mut batch = WriteBatch::new();
            for number in (round..300).step_by(7) {
                self.put(&mut batch, family, number, 10 + round);
            }
            self.delete(&mut batch, family, 40 + round);
            self.delete(&mut batch, family, 2 * round);
            self.delete_range(&mut batch, family, 100 * round, 100 * round + 30);
            if family == OTHER {
                self.append(&mut batch, 310 + round, b"more");
                self.append(&mut batch, 311 + round, b"new");
            }
            self.write(batch, false)?;
        }
        self.db.flush_all()?;
        self.keep_manifest();
        Ok(())
    }

    /// Batch `index` of those that only the log holds.
    fn log_batch(&mut self, index: u64, sync: bool) -> Result<()> {
        let mut batch = WriteBatch::new();
        for family in FAMILIES {
            self.put(&mut batch, family, 700 + index % 5, 100 + index);
            self.put(&mut batch, family, 40 * index, 100 + index);
            self.delete(&mut batch, family, 11 * index);
        }
        self.append(&mut batch, 323, format!("{index}").as_bytes());
        if index.is_multiple_of(4) {
            self.delete_range(&mut batch, "default", 600, 600 + index);
        }
        let number = index.to_le_bytes().to_vec();
        batch.put_in(&self.family("default"), MARKER, &number);
        self.entries("default").insert(MARKER.to_vec(), number);
        self.touch("default", MARKER);
        self.write(batch, sync)
    }

    fn note_absent_keys(&mut self) {
        for family in FAMILIES {
            let keys = self.keys.entry(family.to_string()).or_default();
            keys.extend((1..900).step_by(50).map(key));
            keys.extend([b"".to_vec(), b"k".to_vec(), b"z".to_vec(), MARKER.to_vec()]);
        }
    }
}

impl Sample {
    /// Makes it.
    pub fn new(end: End) -> Sample {
        Sample::make(end).expect("nothing fails")
    }

    fn make(end: End) -> Result<Sample> {
        let fs = MemFs::new();
        let options = options(&fs);
        let db = Db::open(DIRECTORY, options.clone())?;
        db.create_family(OTHER, options.family_options(OTHER).clone())?;
        let mut maker = Maker {
            fs: fs.clone(),
            db,
            contents: Contents::new(),
            keys: BTreeMap::new(),
            older_manifests: Vec::new(),
            touched: BTreeSet::new(),
        };
        maker.fill_deep_levels()?;
        maker.fill_level_0(1)?;
        maker.db.checkpoint("/copy")?;
        let copy = files::read(&fs, Path::new("/copy")).expect("memory can be read");
        let mut maker = maker.reopened(options)?;
        maker.keep_manifest();
        maker.fill_level_0(2)?;
        maker.note_absent_keys();
        let mut states = vec![maker.contents.clone()];
        let mut batches = Vec::new();
        for index in 1..=BATCHES {
            if index == 6 {
                // Both families are in the first segment; the one without operands,
                // which must not be counted twice, stays there.
                maker.family(OTHER).flush()?;
                maker.keep_manifest();
            }
            let first = maker.db.latest_sequence() + 1;
            maker.touched.clear();
            maker.log_batch(index, end != End::NeverSynced && SYNCED.contains(&index))?;
            states.push(maker.contents.clone());
            let numbers = (first, maker.db.latest_sequence());
            batches.push(Batch { numbers, touched: std::mem::take(&mut maker.touched) });
        }
        let Maker { db, keys, older_manifests, .. } = maker;
        db.wait_for_background()?;
        let killed = read_files(&fs);
        drop(db);
        let (files, witnessed) = match end {
            End::Killed => (killed, SYNCED[1]),
            End::NeverSynced => (killed, 0),
            End::Closed => (read_files(&fs), BATCHES),
        };
        let newest = newest_log(&files).expect("batches are in it");
        let foreign_logs = vec![foreign_log(&Files::new(), &newest)?, foreign_log(&copy, &newest)?];
        Ok(Sample { files, witnessed, states, batches, keys, older_manifests, foreign_logs })
    }

    /// Names of the files whose names begin or end so.
    pub fn names(&self, part: &str) -> Vec<String> {
        let is_one = |name: &&String| name.starts_with(part) || name.ends_with(part);
        self.files.keys().filter(is_one).cloned().collect()
    }

    /// The segments of the log that matter, oldest first.
    pub fn logs(&self) -> Vec<String> {
        let fs: Arc<dyn Fs> = Arc::new(disk(&self.files));
        let survey = Survey::read(&fs, Path::new(DIRECTORY)).expect("it is sound");
        let logs = survey.files.into_iter().filter(|file| file.usage == FileUse::Log);
        logs.map(|file| file.name).collect()
    }

    /// Where the blocks of a table begin and how long they are.
    pub fn blocks(&self, table: &str) -> Vec<(usize, usize)> {
        let path = Path::new(DIRECTORY).join(table);
        let table = TableFile::open(&disk(&self.files), &path, KeyOrder::Bytewise);
        let table = table.expect("it is sound");
        let place = |block: Result<lodestore::inspect::BlockSummary>| {
            let block = block.expect("it is sound");
            (block.offset as usize, block.stored_bytes as usize)
        };
        table.blocks().map(place).collect()
    }

    /// Where the batches of a segment begin, and where the last one ends.
    pub fn batch_offsets(&self, log: &str) -> Vec<usize> {
        let mut log = LogFile::open(&disk(&self.files), &Path::new(DIRECTORY).join(log))
            .expect("it is sound");
        let mut offsets = Vec::new();
        while let Some(batch) = log.next_batch().expect("it is sound") {
            offsets.push(batch.offset as usize);
        }
        offsets.push(log.end().expect("it is sound").offset as usize);
        offsets
    }
}

/// The segment `wanted` of a database that begins with `files` and goes its own
/// way; with none it is a new one.
fn foreign_log(files: &Files, wanted: &str) -> Result<Vec<u8>> {
    for skipped in 0..4 {
        let fs = disk(files);
        let db = Db::open(DIRECTORY, options(&fs))?;
        // Each change of the options takes a file number.
        (0..skipped)
            .try_for_each(|i| db.set_options(&[("log_bytes_max", &format!("{}GiB", i + 2))]))?;
        while newest_log(&read_files(&fs)).as_deref() < Some(wanted) {
            db.put(&key(2), b"of another")?;
            // An edit of the manifest: a copy's log that is no further than where our
            // manifest begins can't be told from one of ours.
            db.sync_log()?;
            db.flush()?;
        }
        db.put(&key(2), b"of another")?;
        drop(db);
        if let Some(bytes) = read_files(&fs).get(wanted) {
            return Ok(bytes.clone());
        }
    }
    panic!("no other database has a log {wanted}");
}

fn newest_log(files: &Files) -> Option<String> {
    files.keys().rfind(|name| name.ends_with(".wal")).cloned()
}
