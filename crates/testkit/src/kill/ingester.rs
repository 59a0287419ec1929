//! The worker that ingests: writes to two families, and tables of the same
//! keys that are written outside of the database and taken in, copied or
//! moved, into one family or into both together.
//!
//! Step `i` is a function of (seed, i), and later steps overwrite what earlier
//! ones said; so what is there after a crash says how far it came, an older
//! write over a newer table is a difference, and so is half of an ingest.

use super::acknowledged::{INGESTER, TABLES_WRITTEN, acknowledge};
use super::points::{SOURCE_EXTENSION, while_ingesting};
use crate::load::{Contents, difference_in};
use crate::random::{self, Random};
use lodestore::inspect::TableFile;
use lodestore::{
    Db, Error, Family, FamilyOptions, IngestOptions, KeyOrder, Options, OsFs, Result, TableWriter,
    WriteBatch,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The families that it writes to.
const FAMILIES: [&str; 2] = ["taken-0", "taken-1"];
/// The key of the last step that a family has seen.
const MARKER: &[u8] = b"~step";
const KEYS: usize = 40;

/// How what a step says comes into the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// As one batch.
    Write,
    /// As one table for each family, of which it gets copies.
    Copy,
    /// The same, but it gets the files themselves.
    Move,
}

/// What a step says about one family.
#[derive(Clone, Debug)]
struct Said {
    family: usize,
    /// Deleted first, from the first key up to the second.
    range: Option<(Vec<u8>, Vec<u8>)>,
    /// By key; `None` deletes it.
    points: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

#[derive(Clone, Debug)]
struct Step {
    how: How,
    said: Vec<Said>,
}

fn key(number: usize) -> Vec<u8> {
    format!("{number:03}").into_bytes()
}

impl Step {
    /// Step `index`, counted from 1, of the history of `seed`.
    fn new(seed: u64, index: u64) -> Step {
        let mut random = Random::new(seed ^ 0x7ab1e ^ index.wrapping_mul(0x9e37_79b9));
        let how = *random.pick(&[How::Write, How::Write, How::Copy, How::Move]);
        let families = *random.pick(&[&[0][..], &[1], &[0, 1], &[0, 1]]);
        let said = families.iter().map(|&family| Said::new(family, index, &mut random));
        Step { how, said: said.collect() }
    }
}

impl Said {
    fn new(family: usize, index: u64, random: &mut Random) -> Said {
        let mut points = BTreeMap::new();
        for _ in 0..random.between(1, 12) {
            let (length, seed) = (random.below(600), random.word());
            let value = (!random.one_in(4)).then(|| random::bytes(length, seed));
            points.insert(key(random.below(KEYS)), value);
        }
        points.insert(MARKER.to_vec(), Some(index.to_le_bytes().to_vec()));
        let first = random.below(KEYS);
        let range = (key(first), key(first + random.between(1, KEYS / 4)));
        Said { family, range: random.one_in(3).then_some(range), points }
    }

    fn add_to(&self, batch: &mut WriteBatch, family: &Family) {
        if let Some((begin, end)) = &self.range {
            batch.delete_range_in(family, begin, end);
        }
        for (key, value) in &self.points {
            match value {
                Some(value) => batch.put_in(family, key, value),
                None => batch.delete_in(family, key),
            };
        }
    }

    fn write_table(&self, path: &Path, options: &Options) -> Result<()> {
        let mut writer = TableWriter::create(path, options, &options.family)?;
        if let Some((begin, end)) = &self.range {
            writer.delete_range(begin, end)?;
        }
        for (key, value) in &self.points {
            match value {
                Some(value) => writer.put(key, value)?,
                None => writer.delete(key)?,
            }
        }
        writer.finish().map(drop)
    }
}

/// What the families hold after some steps.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    steps: u64,
    families: [BTreeMap<Vec<u8>, Vec<u8>>; 2],
}

impl Taken {
    /// Steps done.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The state after `steps` of the history of `seed`, which are more.
    pub fn after(mut self, seed: u64, steps: u64) -> Taken {
        for index in self.steps + 1..=steps {
            for Said { family, range, points } in Step::new(seed, index).said {
                let entries = &mut self.families[family];
                if let Some((begin, end)) = range {
                    entries.retain(|key, _| *key < begin || *key >= end);
                }
                for (key, value) in points {
                    match value {
                        Some(value) => entries.insert(key, value),
                        None => entries.remove(&key),
                    };
                }
            }
        }
        Taken { steps, ..self }
    }

    /// The first difference from what was found, in words.
    pub fn difference(&self, found: &Contents) -> Option<String> {
        let none = BTreeMap::new();
        FAMILIES.iter().zip(&self.families).find_map(|(name, expected)| {
            difference_in(name, expected, found.get(*name).unwrap_or(&none))
        })
    }
}

/// True if step `index` ingests tables.
pub fn is_ingest(seed: u64, index: u64) -> bool {
    Step::new(seed, index).how != How::Write
}

/// What became of the files of an ingest that was in doubt, in words, if it
/// is not what must be: copied ones stay, and moved ones until their tables
/// are in the database.
pub fn lost_source(directory: &Path, seed: u64, index: u64, is_kept: bool) -> Option<String> {
    let step = Step::new(seed, index);
    if step.how == How::Move && is_kept {
        return None;
    }
    step.said.iter().find_map(|said| {
        let path = source(directory, index, said.family);
        let sound = TableFile::open(&OsFs::new(), &path, KeyOrder::Bytewise);
        let sound = sound.and_then(|table| table.verify());
        sound.err().map(|error| format!("a file of step {index} of the ingester: {error}"))
    })
}

fn source(directory: &Path, index: u64, family: usize) -> PathBuf {
    directory.join(format!("{index}-{family}.{SOURCE_EXTENSION}"))
}

/// Does the steps after `done` until one fails; files go to `directory`.
pub fn work(db: &Db, options: &Options, directory: &Path, seed: u64, done: u64) -> Error {
    let worker = match Worker::new(db, options, directory) {
        Ok(worker) => worker,
        Err(error) => return error,
    };
    for index in done + 1.. {
        if let Err(error) = worker.step(index, &Step::new(seed, index)) {
            return error;
        }
        acknowledge(INGESTER, index);
    }
    unreachable!("numbers do not run out")
}

struct Worker<'a> {
    db: &'a Db,
    options: &'a Options,
    directory: &'a Path,
    families: [Family; 2],
}

impl<'a> Worker<'a> {
    /// Begins with an empty directory: names are used again.
    fn new(db: &'a Db, options: &'a Options, directory: &'a Path) -> Result<Worker<'a>> {
        let _ = std::fs::remove_dir_all(directory); // of the run before, if there was one
        std::fs::create_dir(directory).expect("a directory can be made beside the database");
        let family = |name: &str| match db.family(name) {
            Some(family) => Ok(family),
            None => db.create_family(name, FamilyOptions::clone(&options.family)),
        };
        let families = [family(FAMILIES[0])?, family(FAMILIES[1])?];
        Ok(Worker { db, options, directory, families })
    }

    fn step(&self, index: u64, step: &Step) -> Result<()> {
        if step.how == How::Write {
            let mut batch = WriteBatch::new();
            step.said.iter().for_each(|said| said.add_to(&mut batch, &self.families[said.family]));
            return self.db.write(batch);
        }
        let mut tables = Vec::new();
        for said in &step.said {
            let path = source(self.directory, index, said.family);
            said.write_table(&path, self.options)?;
            tables.push((&self.families[said.family], path));
        }
        acknowledge(TABLES_WRITTEN, index);
        let how =
            IngestOptions { move_files: step.how == How::Move, verify: !index.is_multiple_of(3) };
        while_ingesting(|| match &tables[..] {
            [(family, path)] => family.ingest(&[path], &how),
            tables => self.db.ingest_together(tables, &how),
        })?;
        Ok(())
    }
}
