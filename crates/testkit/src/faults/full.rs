//! A disk that is full, at many moments: what did not fit is told and is not
//! there, reads go on, and when space returns all goes on by itself.

use super::disk::SmallDisk;
use crate::files::{pause, stray_tables};
use crate::load::{Expected, Families, Writer, contents, difference_in, with_families};
use lodestore::{
    Db, Error, IngestOptions, Options, OsFs, ReadOptions, Snapshot, TableWriter, WriteOptions,
};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const DISK_BYTES: u64 = 8 << 20;
/// Batches before the disk is full, and after space has returned.
const BATCHES_BEFORE: u64 = 150;
const BATCHES_AFTER: u64 = 60;
/// Batches until which a full disk must have been met.
const BATCHES_MAX: u64 = 4000;
/// How long it may take until writing goes on by itself.
const BY_ITSELF_MAX: Duration = Duration::from_secs(10);
/// What is left free, in KiB: each file is the first that does not fit at one of
/// them.
const FREE_KIB: [u64; 14] = [0, 4, 8, 12, 16, 20, 28, 40, 56, 72, 96, 136, 200, 300];
const ENOSPC: i32 = 28;

/// What is done until the disk is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Activity {
    /// Batches, some of them synced.
    Writes,
    /// Batches and flushes.
    Flushes,
    /// Families that come and go: edits of the manifest.
    Families,
    /// Copies of the database on the same disk.
    Checkpoints,
    /// A table that is copied into the database.
    Ingests,
    /// The database is closed and opened.
    Openings,
}

impl Activity {
    const ALL: [Activity; 6] = [
        Activity::Writes,
        Activity::Flushes,
        Activity::Families,
        Activity::Checkpoints,
        Activity::Ingests,
        Activity::Openings,
    ];
}

/// What was met: how often which file was told to have no room.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Disks that were filled.
    pub disks: usize,
    /// By kind of file.
    pub told: BTreeMap<&'static str, usize>,
}

/// Kinds of files that must be among those told.
const KINDS: [&str; 5] = ["log", "table", "manifest", "current", "copy"];

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} full disks; no room was told for", self.disks)?;
        self.told.iter().try_for_each(|(kind, count)| write!(f, " {kind} {count}"))?;
        writeln!(f)
    }
}

/// Fills disks that are mounted at `path`, one after the other.
///
/// # Errors
/// What was found wrong, in words.
pub fn fill_disks(path: &Path) -> Result<Report, String> {
    let mut report = Report::default();
    for activity in Activity::ALL {
        for free_kib in FREE_KIB {
            for log_mapped in ["yes", "no"] {
                let disk = SmallDisk::mount(path, DISK_BYTES)?;
                let filled = fill_one(&disk, activity, free_kib << 10, log_mapped, &mut report);
                filled.map_err(|what| {
                    format!("{activity:?}, {free_kib} KiB free, log_mapped={log_mapped}: {what}")
                })?;
                report.disks += 1;
            }
        }
    }
    match KINDS.iter().find(|kind| !report.told.contains_key(*kind)) {
        Some(kind) => Err(format!("{report}a full disk was never met by a {kind}")),
        None => Ok(report),
    }
}

/// A database on a small disk, and what must be in it.
struct Filled<'a> {
    disk: &'a SmallDisk,
    options: Options,
    db: Option<Db>,
    writer: Writer,
    done: u64,
    expected: Expected,
    report: &'a mut Report,
}

fn fill_one(
    disk: &SmallDisk,
    activity: Activity,
    free_bytes: u64,
    log_mapped: &str,
    report: &mut Report,
) -> Result<(), String> {
    let failed = |what: &'static str| move |error: std::io::Error| format!("{what}: {error}");
    let mut filled = Filled::new(disk, options(log_mapped)?, report)?;
    for _ in 0..BATCHES_BEFORE {
        filled.write_one().map_err(|error| format!("with room: {error}"))?;
    }
    let source = filled.write_source()?;
    let before = filled.expected.clone();
    let snapshot = filled.db()?.snapshot();
    disk.fill(free_bytes).map_err(failed("filling the disk"))?;
    filled.until_full(activity, &source)?;
    filled.check("on the full disk")?;
    check_snapshot(filled.db()?, &snapshot, &before)?;
    drop(snapshot);
    if activity == Activity::Openings {
        filled.open_while_full(free_bytes)?;
    }
    disk.relieve().map_err(failed("freeing the disk"))?;
    filled.go_on()?;
    filled.ingest(&source).map_err(|error| format!("ingesting with room: {error}"))?;
    filled.finish()
}

fn options(log_mapped: &str) -> Result<Options, String> {
    let mut options = Options { create_if_missing: true, cache_bytes: 0, ..Options::default() };
    options.family.memtable_bytes = 48 << 10;
    options.family.table_bytes = 16 << 10;
    options.family.level0_compaction_files = 2;
    options.family.level1_bytes = 64 << 10;
    options.log_bytes_max = 256 << 10;
    options.set("log_mapped", log_mapped).map_err(|error| error.to_string())?;
    Ok(with_families(options))
}

impl<'a> Filled<'a> {
    fn new(
        disk: &'a SmallDisk,
        options: Options,
        report: &'a mut Report,
    ) -> Result<Filled<'a>, String> {
        let db = Db::open(disk.path().join("db"), options.clone());
        let db = db.map_err(|error| format!("opening with room: {error}"))?;
        Families::of(&db, &options).map_err(|error| format!("creating families: {error}"))?;
        let writer = Writer { seed: 1, id: 0, value_bytes_max: 600 };
        let expected = Expected::default();
        Ok(Filled { disk, options, db: Some(db), writer, done: 0, expected, report })
    }

    fn db(&self) -> Result<&Db, String> {
        self.db.as_ref().ok_or_else(|| "the database is not open".to_string())
    }

    /// Writes the next batch; it is expected from then on only if that worked.
    fn write_one(&mut self) -> Result<(), Error> {
        let db = self.db.as_ref().expect("it is open while batches are written");
        let families = Families::of(db, &self.options)?;
        let index = self.done + 1;
        let write = WriteOptions { sync: index.is_multiple_of(7), ..WriteOptions::default() };
        db.write_with(&write, &mut self.writer.batch(index, &families))?;
        self.done = index;
        self.expected.apply(&self.writer, index);
        Ok(())
    }

    /// A table outside of the database, to be ingested.
    fn write_source(&self) -> Result<PathBuf, String> {
        let path = self.disk.path().join("source");
        let write = || {
            let mut table = TableWriter::create(&path, &self.options, &self.options.family)?;
            for key in 0..100u32 {
                let value = crate::random::bytes(300, u64::from(key));
                table.put(&key.to_be_bytes(), &value)?;
            }
            table.finish().map(drop)
        };
        write().map_err(|error| format!("writing a table: {error}"))?;
        Ok(path)
    }

    fn ingest(&self, source: &Path) -> Result<(), Error> {
        let db = self.db.as_ref().expect("it is open while tables are ingested");
        let taken = db.family_or_create("taken")?;
        taken.ingest(&[source], &IngestOptions::default()).map(drop)
    }

    /// Works until something finds no room. Flushes fail in the background, so
    /// some batches more may fit.
    fn until_full(&mut self, activity: Activity, source: &Path) -> Result<(), String> {
        for step in 0..BATCHES_MAX {
            let mut result = self.write_one();
            if result.is_ok() && step.is_multiple_of(10) {
                result = self.act(activity, step, source);
            }
            if let Err(error) = result {
                self.note(&error)?;
                return Ok(());
            }
        }
        Err(format!("{BATCHES_MAX} batches found room"))
    }

    fn act(&self, activity: Activity, step: u64, source: &Path) -> Result<(), Error> {
        let db = self.db.as_ref().expect("it is open while it is used");
        match activity {
            Activity::Writes | Activity::Openings => Ok(()),
            Activity::Flushes => db.flush_all(),
            Activity::Families => {
                let name = format!("brief-{step}");
                db.create_family(&name, self.options.family.clone())?;
                db.drop_family(&name)
            }
            Activity::Checkpoints => db.checkpoint(self.disk.path().join(format!("copy-{step}"))),
            Activity::Ingests => self.ingest(source),
        }
    }

    /// A full disk is told as such; anything else is wrong.
    fn note(&mut self, error: &Error) -> Result<(), String> {
        let Error::Io { path, source, .. } = error else {
            return Err(format!("a full disk is told as {error:?}"));
        };
        if source.raw_os_error() != Some(ENOSPC) {
            return Err(format!("a full disk is told as {error}"));
        }
        *self.report.told.entry(kind(path)).or_default() += 1;
        Ok(())
    }

    fn check(&self, when: &str) -> Result<(), String> {
        let found = contents(self.db()?).map_err(|error| format!("reading {when}: {error}"))?;
        match self.expected.difference(&found) {
            None => Ok(()),
            Some(difference) => Err(format!("{when}: {difference}")),
        }
    }

    /// Closes and opens on the full disk: either works, with everything there,
    /// or it is told, and works when there is room.
    fn open_while_full(&mut self, free_bytes: u64) -> Result<(), String> {
        self.db = None;
        // Closing has given back what was reserved ahead.
        self.disk.fill(free_bytes).map_err(|error| error.to_string())?;
        let path = self.disk.path().join("db");
        match Db::open(&path, self.options.clone()) {
            Ok(db) => self.db = Some(db),
            Err(error) => {
                self.note(&error)?;
                self.disk.relieve().map_err(|error| error.to_string())?;
                let db = Db::open(&path, self.options.clone());
                self.db = Some(db.map_err(|error| format!("opening with room again: {error}"))?);
            }
        }
        self.check("opened again")
    }

    /// There is room again, and nobody does anything about it.
    fn go_on(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + BY_ITSELF_MAX;
        for _ in 0..BATCHES_AFTER {
            while let Err(error) = self.write_one() {
                if Instant::now() > deadline {
                    return Err(format!("writing does not go on by itself: {error}"));
                }
                self.check("while space returns")?;
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        let db = self.db()?;
        // The last try of the background is told until the next one, which
        // comes after a pause.
        while let Err(error) = db.flush_all() {
            if Instant::now() > deadline {
                return Err(format!("flushing does not go on by itself: {error}"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        db.wait_for_background().map_err(|error| format!("background with room: {error}"))?;
        self.check("with room again")
    }

    /// The files are those of a sound database.
    fn finish(&mut self) -> Result<(), String> {
        self.db = None;
        let db = Db::open(self.disk.path().join("db"), self.options.clone());
        self.db = Some(db.map_err(|error| format!("opening in the end: {error}"))?);
        self.check("in the end")?;
        let db = self.db()?;
        db.verify().map_err(|error| format!("verifying: {error}"))?;
        match stray_tables(db, &OsFs::new(), pause)? {
            0 => Ok(()),
            stray => Err(format!("{stray} table files belong to nothing")),
        }
    }
}

/// The default family as a snapshot shows it.
fn check_snapshot(db: &Db, snapshot: &Snapshot, before: &Expected) -> Result<(), String> {
    let options = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
    let mut found = BTreeMap::new();
    let mut cursor = db.cursor_with(options);
    cursor.first();
    while cursor.valid() {
        found.insert(cursor.key().to_vec(), cursor.value().to_vec());
        cursor.next();
    }
    cursor.status().map_err(|error| format!("reading at a snapshot: {error}"))?;
    let difference =
        difference_in("default", before.entries("default").expect("it was written to"), &found);
    difference.map_or(Ok(()), |difference| Err(format!("at a snapshot: {difference}")))
}

/// What kind of file a path is, in the order in which names are told apart.
fn kind(path: &Path) -> &'static str {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let directory = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    match () {
        () if directory.starts_with("copy-") || name.starts_with("copy-") => "copy",
        () if name.starts_with("MANIFEST-") => "manifest",
        () if name == "CURRENT" || name.ends_with(".tmp") => "current",
        () if name.ends_with(".table") => "table",
        () if name.ends_with(".wal") => "log",
        () if name.starts_with("LOCK") => "lock",
        () => "other",
    }
}
