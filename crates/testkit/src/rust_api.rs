//! The Rust API as a surface.

use crate::command::{
    Action, Change, Command, DEFAULT_FAMILY, Form, Move, Output, Read, Schema, Settings,
};
use crate::config;
use crate::surface::{Surface, failure};
use crate::text::Datum;
use lodestore::{
    Db, DbCursor, Error, Family, Fs, IngestOptions, IngestReport, Options, Outcome, ReadOptions,
    Scheduler, Snapshot, Statistics, TableWriter, WriteBatch, WriteOptions,
};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A failure, by its kind.
type Answer<T> = Result<T, String>;

/// Databases below one directory, one of them open at a time.
pub struct RustApi {
    fs: Arc<dyn Fs>,
    root: PathBuf,
    statistics: Arc<Statistics>,
    /// Whose threads work in the background; none: each database's own.
    scheduler: Option<Arc<Scheduler>>,
    /// What the caller knows of each database's families and passes at opening.
    schemas: BTreeMap<String, BTreeMap<String, Schema>>,
    open: Option<Opened>,
    /// Text of the last failure, for reports: scripts see only its kind.
    pub last_error: Option<String>,
    /// What was ingested, call by call.
    pub ingested: Vec<IngestReport>,
    /// Families dropped under load.
    pub dropped: Dropped,
    /// Files written to be ingested.
    table_files: usize,
}

struct Opened {
    name: String,
    db: Db,
    options: Options,
    snapshots: BTreeMap<String, Snapshot>,
    held: BTreeMap<String, DbCursor>,
    /// The family of each cursor that is kept.
    held_families: BTreeMap<String, String>,
}

/// Families that were dropped while something worked on them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dropped {
    /// While a memtable of theirs waited for its flush or was flushed.
    pub flushing: usize,
    /// While a compaction ran.
    pub compacting: usize,
    /// While a cursor on them was kept.
    pub held: usize,
}

impl RustApi {
    /// A surface for databases in `root` on `fs`.
    pub fn new(fs: Arc<dyn Fs>, root: impl Into<PathBuf>) -> RustApi {
        RustApi {
            fs,
            root: root.into(),
            statistics: Arc::new(Statistics::default()),
            scheduler: None,
            schemas: BTreeMap::new(),
            open: None,
            last_error: None,
            ingested: Vec::new(),
            dropped: Dropped::default(),
            table_files: 0,
        }
    }

    /// The same surface with background work on the threads of `scheduler`.
    pub fn with_scheduler(self, scheduler: Arc<Scheduler>) -> RustApi {
        RustApi { scheduler: Some(scheduler), ..self }
    }

    /// Counters over all databases opened here.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The open database.
    pub fn db(&self) -> Option<&Db> {
        self.open.as_ref().map(|opened| &opened.db)
    }

    fn options(&self, name: &str, settings: &Settings) -> Answer<Options> {
        let mut options = Options {
            create_if_missing: settings.create,
            error_if_exists: settings.exclusive,
            fs: Arc::clone(&self.fs),
            statistics: Some(Arc::clone(&self.statistics)),
            scheduler: self.scheduler.clone(),
            ..Options::default()
        };
        for (knob, value) in &settings.knobs {
            config::apply(&mut options, knob, value)
                .map_err(|what| format!("{} {what}", failure::SCRIPT))?;
        }
        let mut schemas = self.schemas.get(name).cloned().unwrap_or_default();
        schemas.extend(settings.schemas.iter().cloned());
        for (family, schema) in schemas {
            let of_family = config::family_options(&options.family, schema);
            options.families.insert(family, of_family);
        }
        Ok(options)
    }

    fn open(&mut self, name: &str, settings: &Settings) -> Answer<Output> {
        self.open = None;
        let options = self.options(name, settings)?;
        let path = self.root.join(name);
        let db = if settings.read_only {
            Db::open_read_only(path, options.clone())
        } else {
            Db::open(path, options.clone())
        };
        let db = self.check(db)?;
        self.schemas.entry(name.to_string()).or_default().extend(settings.schemas.iter().cloned());
        self.open = Some(Opened {
            name: name.to_string(),
            db,
            options,
            snapshots: BTreeMap::new(),
            held: BTreeMap::new(),
            held_families: BTreeMap::new(),
        });
        Ok(Output::Done)
    }

    fn opened(&self) -> Answer<&Opened> {
        self.open.as_ref().ok_or_else(|| failure::CLOSED.to_string())
    }

    fn opened_mut(&mut self) -> Answer<&mut Opened> {
        self.open.as_mut().ok_or_else(|| failure::CLOSED.to_string())
    }

    fn family(&self, name: &str) -> Answer<Family> {
        self.opened()?.db.family(name).ok_or_else(|| "Missing".to_string())
    }

    /// The result, its error kept and reduced to its kind.
    fn check<T>(&mut self, result: lodestore::Result<T>) -> Answer<T> {
        result.map_err(|error| {
            self.last_error = Some(error.to_string());
            kind(&error).to_string()
        })
    }

    fn done(&mut self, result: lodestore::Result<()>) -> Answer<Output> {
        self.check(result).map(|()| Output::Done)
    }

    fn answer(&mut self, command: &Command) -> Answer<Output> {
        match command {
            Command::Open { name, settings } => self.open(name, settings),
            Command::OpenAgain => {
                let path = self.root.join(&self.opened()?.name);
                let options = self.opened()?.options.clone();
                let second = Db::open(path, options).map(|_| ());
                self.done(second)
            }
            Command::Close => {
                self.open = None;
                Ok(Output::Done)
            }
            Command::Destroy { name } => {
                let options = self.options(name, &Settings::default())?;
                self.schemas.remove(name);
                self.done(Db::destroy(self.root.join(name), &options))
            }
            Command::ListFamilies { name } => {
                let options = self.options(name, &Settings::default())?;
                let names = self.check(Db::list_families(self.root.join(name), &options))?;
                Ok(family_list(names))
            }
            Command::Write { changes, form: Form::Single, sync } => self.single(&changes[0], *sync),
            Command::Write { changes, form: Form::Batch, sync } => self.batch(changes, *sync),
            Command::Get { .. }
            | Command::MultiGet { .. }
            | Command::Scan { .. }
            | Command::Cursor { .. }
            | Command::Range { .. } => self.read(command),
            Command::Snapshot { name } => {
                let opened = self.opened_mut()?;
                let snapshot = opened.db.snapshot();
                opened.snapshots.insert(name.clone(), snapshot);
                Ok(Output::Done)
            }
            Command::Release { name } => {
                let held = self.opened_mut()?.snapshots.remove(name);
                held.map(|_| Output::Done).ok_or_else(|| failure::NO_SNAPSHOT.to_string())
            }
            Command::Hold { name, family } => {
                let cursor = self.family(family)?.cursor();
                let opened = self.opened_mut()?;
                opened.held.insert(name.clone(), cursor);
                opened.held_families.insert(name.clone(), family.clone());
                Ok(Output::Done)
            }
            Command::Held { name, reverse } => {
                let opened = self.opened_mut()?;
                opened.held_families.remove(name);
                match opened.held.remove(name) {
                    Some(cursor) => Ok(scan(cursor, *reverse)),
                    None => Err(failure::NO_CURSOR.to_string()),
                }
            }
            _ => self.manage(command),
        }
    }

    /// Counts a family that is about to be dropped, if something works on it.
    fn count_dropped(&mut self, name: &str) -> Answer<()> {
        let Ok(family) = self.family(name) else { return Ok(()) };
        let is_above_zero =
            |property: &str| family.property(property).is_some_and(|number| number != "0");
        let held = self.opened()?.held_families.values().any(|held| held == name);
        self.dropped.flushing += usize::from(is_above_zero("lodestore.num-immutable-mem-table"));
        self.dropped.compacting += usize::from(is_above_zero("lodestore.num-running-compactions"));
        self.dropped.held += usize::from(held);
        Ok(())
    }

    /// Families, files and background work.
    fn manage(&mut self, command: &Command) -> Answer<Output> {
        let db = self.opened()?.db.clone();
        let result = match command {
            Command::CreateFamily { name, schema } => {
                let options = config::family_options(&self.opened()?.options.family, *schema);
                let created = db.create_family(name, options).map(|_| ());
                if created.is_ok() {
                    let database = self.opened()?.name.clone();
                    let known = self.schemas.entry(database).or_default();
                    known.insert(name.clone(), *schema);
                }
                created
            }
            Command::DropFamily { name } => {
                self.count_dropped(name)?;
                let dropped = db.drop_family(name);
                if dropped.is_ok() {
                    let database = self.opened()?.name.clone();
                    self.schemas.entry(database).or_default().remove(name);
                }
                dropped
            }
            Command::Families => return Ok(family_list(db.family_names())),
            Command::Flush { family: None } => db.flush_all(),
            Command::Flush { family: Some(family) } => self.family(family)?.flush(),
            Command::Compact { family, from, to, rewrite } => {
                let (from, to) = (from.as_ref().map(Datum::bytes), to.as_ref().map(Datum::bytes));
                let family = self.family(family)?;
                match rewrite {
                    true => family.rewrite_range(from.as_deref(), to.as_deref()),
                    false => family.compact_range(from.as_deref(), to.as_deref()),
                }
            }
            Command::DeleteFiles { family, from, until } => {
                let (from, until) =
                    (from.as_ref().map(Datum::bytes), until.as_ref().map(Datum::bytes));
                let family = self.family(family)?;
                family.delete_files_in_range(from.as_deref(), until.as_deref()).map(|_| ())
            }
            Command::Ingest { tables, moved } => return self.ingest(tables, *moved),
            Command::SetOptions { family, changes } => {
                let changes: Vec<(&str, &str)> =
                    changes.iter().map(|(name, value)| (&name[..], &value[..])).collect();
                match family {
                    None => db.set_options(&changes),
                    Some(family) => self.family(family)?.set_family_options(&changes),
                }
            }
            Command::Wait => db.wait_for_background(),
            Command::Checkpoint { name } => {
                let made = db.checkpoint(self.root.join(name));
                if made.is_ok() {
                    let known = self.schemas.get(&self.opened()?.name).cloned();
                    self.schemas.insert(name.clone(), known.unwrap_or_default());
                }
                made
            }
            Command::Verify => db.verify().map(|_| ()),
            Command::SyncLog => db.sync_log(),
            Command::Resume => db.resume(),
            Command::Sequence => return Ok(Output::Text(db.latest_sequence().to_string())),
            Command::Property { name, family } => {
                let text = self.family(family)?.property(name);
                return Ok(Output::Text(text.unwrap_or_else(|| "(no such property)".to_string())));
            }
            _ => unreachable!("the other commands are answered elsewhere"),
        };
        self.done(result)
    }

    fn single(&mut self, change: &Change, sync: bool) -> Answer<Output> {
        let family = self.family(&change.family)?;
        let (options, key) = (WriteOptions { sync, ..Default::default() }, change.key.bytes());
        let result = match (&change.action, sync) {
            (Action::Put(value), true) => family.put_with(&options, &key, &value.bytes()),
            (Action::Put(value), false) => family.put(&key, &value.bytes()),
            (Action::Delete, true) => family.delete_with(&options, &key),
            (Action::Delete, false) => family.delete(&key),
            (Action::SingleDelete, true) => family.single_delete_with(&options, &key),
            (Action::SingleDelete, false) => family.single_delete(&key),
            (Action::DeleteRange(end), true) => {
                family.delete_range_with(&options, &key, &end.bytes())
            }
            (Action::DeleteRange(end), false) => family.delete_range(&key, &end.bytes()),
            (Action::Merge(operand), true) => family.merge_with(&options, &key, &operand.bytes()),
            (Action::Merge(operand), false) => family.merge(&key, &operand.bytes()),
        };
        self.done(result)
    }

    fn batch(&mut self, changes: &[Change], sync: bool) -> Answer<Output> {
        let mut batch = WriteBatch::new();
        for change in changes {
            let family = self.family(&change.family)?;
            add(&mut batch, &family, change);
        }
        let written =
            self.opened()?.db.write_with(&WriteOptions { sync, ..Default::default() }, &mut batch);
        self.check(written).map(|_| Output::Done)
    }

    /// Writes the tables beside the database and ingests them. Files that are
    /// not moved must stay, those that are moved go; in the end all are gone.
    fn ingest(&mut self, tables: &[Vec<Change>], moved: bool) -> Answer<Output> {
        let mut written = Vec::new();
        for changes in tables {
            let family = self.family(&changes[0].family)?;
            self.table_files += 1;
            let path = self.root.join(format!("ingested-{}.table", self.table_files));
            let table = self.write_table(&path, &family, changes);
            self.check(table)?;
            written.push((family, path));
        }
        let tables: Vec<(&Family, &PathBuf)> = written.iter().map(|(f, path)| (f, path)).collect();
        let options = IngestOptions { move_files: moved, ..IngestOptions::default() };
        let ingested = self.opened()?.db.ingest_together(&tables, &options);
        for (_, path) in &written {
            let gone = self.fs.length(path).is_err_and(|error| error.kind() == ErrorKind::NotFound);
            if gone != (moved && ingested.is_ok()) {
                return Err(format!("{} is gone: {gone}", path.display()));
            }
            let _ = self.fs.remove(path);
        }
        let report = self.check(ingested)?;
        self.ingested.push(report);
        Ok(Output::Done)
    }

    fn write_table(
        &self,
        path: &Path,
        family: &Family,
        changes: &[Change],
    ) -> lodestore::Result<()> {
        let opened = self.open.as_ref().expect("a family of it was found");
        let schema = self.schemas.get(&opened.name).and_then(|known| known.get(family.name()));
        let schema = schema.copied().unwrap_or_default();
        let options = config::family_options(&opened.options.family, schema);
        let mut writer = TableWriter::create(path, &opened.options, &options)?;
        for change in changes {
            let key = change.key.bytes();
            match &change.action {
                Action::Put(value) => writer.put(&key, &value.bytes())?,
                Action::Delete => writer.delete(&key)?,
                Action::SingleDelete => writer.single_delete(&key)?,
                Action::DeleteRange(end) => writer.delete_range(&key, &end.bytes())?,
                Action::Merge(operand) => writer.merge(&key, &operand.bytes())?,
            }
        }
        writer.finish().map(|_| ())
    }

    fn read(&mut self, command: &Command) -> Answer<Output> {
        match command {
            Command::Get { key, read } => {
                let (family, options) = self.view(read)?;
                let plain = read.at.is_none();
                let key = key.bytes();
                let later = family.get_later_with(&options, &key);
                let found = if plain { family.get(&key) } else { family.get_with(&options, &key) };
                let (found, later) = (self.check(found)?, self.check(later.wait())?);
                assert_eq!(found.as_deref(), later.as_deref(), "what get_later gives of {key:?}");
                check_explanation(&family, &options, &key, found.as_deref());
                Ok(Output::Value(found.map(|value| value.to_vec())))
            }
            Command::MultiGet { keys, read } => {
                let (family, options) = self.view(read)?;
                let keys: Vec<Vec<u8>> = keys.iter().map(Datum::bytes).collect();
                let found = family.multi_get_with(&options, &keys);
                let output = |found: lodestore::Result<Option<lodestore::Value>>| match found {
                    Ok(value) => Output::Value(value.map(|value| value.to_vec())),
                    Err(error) => Output::failed(kind(&error)),
                };
                Ok(Output::Values(found.into_iter().map(output).collect()))
            }
            Command::Scan { read, reverse } => {
                let (family, options) = self.view(read)?;
                Ok(scan(family.cursor_with(options), *reverse))
            }
            Command::Cursor { read, moves } => {
                let (family, options) = self.view(read)?;
                let mut cursor = family.cursor_with(options);
                let mut positions = Vec::with_capacity(moves.len());
                for to in moves {
                    positions.push(step(&mut cursor, to));
                    // The next seek would begin with a clean status.
                    self.check(cursor.status())?;
                }
                Ok(Output::Positions(positions))
            }
            Command::Range { family, from, to, inclusive, ends } => {
                let from = from.as_ref().map_or(Bound::Unbounded, |f| Bound::Included(f.bytes()));
                let to = match to.as_ref().map(Datum::bytes) {
                    None => Bound::Unbounded,
                    Some(to) if *inclusive => Bound::Included(to),
                    Some(until) => Bound::Excluded(until),
                };
                let mut range = self.family(family)?.range((from, to));
                let mut positions = Vec::new();
                for end in ends.chars() {
                    let item = if end == 'f' { range.next() } else { range.next_back() };
                    positions.push(self.check(item.transpose())?);
                }
                Ok(Output::Positions(positions))
            }
            _ => unreachable!("only reads come here"),
        }
    }

    fn view(&self, read: &Read) -> Answer<(Family, ReadOptions)> {
        let family = self.family(&read.family)?;
        let snapshot = match &read.at {
            None => None,
            Some(name) => {
                let held = self.opened()?.snapshots.get(name);
                Some(held.cloned().ok_or_else(|| failure::NO_SNAPSHOT.to_string())?)
            }
        };
        let options = ReadOptions {
            snapshot,
            lower_bound: read.lower.as_ref().map(Datum::bytes),
            upper_bound: read.upper.as_ref().map(Datum::bytes),
            prefix: read.prefix.as_ref().map(Datum::bytes),
            ..ReadOptions::default()
        };
        Ok((family, options))
    }
}

impl Surface for RustApi {
    fn run(&mut self, command: &Command) -> Output {
        self.answer(command).unwrap_or_else(Output::Failed)
    }
}

/// Names in the order of scripts: `default`, then the others sorted, as no
/// other order is promised.
fn family_list(mut names: Vec<String>) -> Output {
    names.sort_by_key(|name| (name != DEFAULT_FAMILY, name.clone()));
    Output::Text(names.join("\n"))
}

/// Adds `change` to `batch`, for the default family without naming it.
fn add(batch: &mut WriteBatch, family: &Family, change: &Change) {
    let key = change.key.bytes();
    let default = change.family == DEFAULT_FAMILY;
    match &change.action {
        Action::Put(value) if default => batch.put(&key, &value.bytes()),
        Action::Put(value) => batch.put_in(family, &key, &value.bytes()),
        Action::Delete if default => batch.delete(&key),
        Action::Delete => batch.delete_in(family, &key),
        Action::SingleDelete if default => batch.single_delete(&key),
        Action::SingleDelete => batch.single_delete_in(family, &key),
        Action::DeleteRange(end) if default => batch.delete_range(&key, &end.bytes()),
        Action::DeleteRange(end) => batch.delete_range_in(family, &key, &end.bytes()),
        Action::Merge(operand) if default => batch.merge(&key, &operand.bytes()),
        Action::Merge(operand) => batch.merge_in(family, &key, &operand.bytes()),
    };
}

/// What `explain` says of a lookup must be what the lookup gave.
///
/// # Panics
/// If it is not.
fn check_explanation(family: &Family, options: &ReadOptions, key: &[u8], found: Option<&[u8]>) {
    let told = family.explain(options, key).expect("it is explained");
    let agrees = match &told.outcome {
        Outcome::Found { value_bytes, .. } => found.map(<[u8]>::len) == Some(*value_bytes),
        // Files may be made to fail now and then.
        Outcome::Failed(_) => true,
        _ => found.is_none(),
    };
    assert!(agrees, "get gives {found:?}, and this is what is told of it: {told}");
}

fn scan(mut cursor: DbCursor, reverse: bool) -> Output {
    let mut entries = Vec::new();
    if reverse {
        cursor.last();
    } else {
        cursor.first();
    }
    while cursor.valid() {
        entries.push((cursor.key().to_vec(), cursor.value().to_vec()));
        if reverse {
            cursor.prev();
        } else {
            cursor.next();
        }
    }
    Output::Entries(entries, cursor.status().err().map(|error| kind(&error).to_string()))
}

fn step(cursor: &mut DbCursor, to: &Move) -> Option<(Vec<u8>, Vec<u8>)> {
    match to {
        Move::First => cursor.first(),
        Move::Last => cursor.last(),
        Move::Next if cursor.valid() => cursor.next(),
        Move::Prev if cursor.valid() => cursor.prev(),
        Move::Next | Move::Prev => {}
        Move::Seek(key) => cursor.seek(&key.bytes()),
        Move::SeekForPrev(key) => cursor.seek_for_prev(&key.bytes()),
    }
    cursor.valid().then(|| (cursor.key().to_vec(), cursor.value().to_vec()))
}

/// The kind of an error, in the words that every surface uses.
pub fn kind(error: &Error) -> &'static str {
    match error {
        Error::Io { .. } => "Io",
        Error::Corruption { .. } => "Corruption",
        Error::Incompatible { .. } => "Incompatible",
        Error::InvalidArgument { .. } => "InvalidArgument",
        Error::Busy { .. } => "Busy",
        Error::Stalled { .. } => "Stalled",
        Error::Missing { .. } => "Missing",
        Error::MergeFailed { .. } => "MergeFailed",
        Error::ReadOnly { .. } => "ReadOnly",
        _ => "Other",
    }
}
