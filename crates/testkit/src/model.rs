//! The oracle: what a database must answer, kept as plainly as possible.
//!
//! Every family maps each key to all of its versions, oldest first, and has a
//! list of all range deletes. Nothing is ever dropped or merged early: a read
//! looks for the newest version that it may see, so there is nothing here that
//! a flush, a compaction, an option or a reopening could change.

use crate::command::{
    Action, Change, Command, DEFAULT_FAMILY, Form, Move, Operator, Output, Read, Schema, Settings,
};
use crate::surface::{Surface, failure};
use crate::text::Datum;
use std::collections::BTreeMap;

type Key = Vec<u8>;
type Value = Vec<u8>;
type Entry = (Key, Value);

/// All databases of a test, and the one that is open.
#[derive(Clone, Debug, Default)]
pub struct Model {
    databases: BTreeMap<String, Database>,
    open: Option<Opened>,
}

#[derive(Clone, Debug)]
struct Opened {
    name: String,
    read_only: bool,
    snapshots: BTreeMap<String, u64>,
    /// What cursors that are kept see.
    held: BTreeMap<String, Output>,
}

/// One database: its families, and how many records were ever written.
#[derive(Clone, Debug)]
pub struct Database {
    families: BTreeMap<String, Family>,
    sequence: u64,
    /// Single deletes of keys that may not be removed by one.
    single_deletes_amiss: usize,
}

impl Default for Database {
    fn default() -> Database {
        let families = BTreeMap::from([(DEFAULT_FAMILY.to_string(), Family::default())]);
        Database { families, sequence: 0, single_deletes_amiss: 0 }
    }
}

#[derive(Clone, Debug, Default)]
struct Family {
    schema: Schema,
    keys: BTreeMap<Key, Vec<(u64, Stored)>>,
    /// Sequence number, first key, end key (exclusive), oldest first.
    range_deletes: Vec<(u64, Key, Key)>,
}

#[derive(Clone, Debug)]
enum Stored {
    Put(Value),
    Delete,
    SingleDelete,
    Merge(Value),
}

/// A failure, by its kind.
type Answer<T> = Result<T, String>;

impl Database {
    /// A database whose default family has this schema.
    pub fn with_default_schema(schema: Schema) -> Database {
        let mut database = Database::default();
        database.families.insert(DEFAULT_FAMILY.to_string(), Family::new(schema));
        database
    }

    /// Adds an empty family; the caller has checked that there is none.
    pub fn create_family(&mut self, name: &str, schema: Schema) {
        self.families.insert(name.to_string(), Family::new(schema));
    }

    /// Removes a family with all that it holds.
    pub fn drop_family(&mut self, name: &str) {
        self.families.remove(name);
    }

    /// Names of the families, `default` first.
    pub fn family_names(&self) -> Vec<String> {
        let others = self.families.keys().filter(|name| *name != DEFAULT_FAMILY);
        std::iter::once(DEFAULT_FAMILY.to_string()).chain(others.cloned()).collect()
    }

    /// Records written so far.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Applies a batch, or nothing of it.
    pub fn write(&mut self, changes: &[Change]) -> Answer<()> {
        self.check(changes)?;
        for change in changes {
            self.sequence += 1;
            self.apply(change);
        }
        Ok(())
    }

    /// Ingests tables, or none: everything in one has one number.
    pub fn ingest(&mut self, tables: &[Vec<Change>]) -> Answer<()> {
        let invalid = || Err("InvalidArgument".to_string());
        for changes in tables {
            self.check(changes)?;
            let order = self.family(&changes[0].family)?.schema.order;
            let is_entry = |change: &&Change| !matches!(change.action, Action::DeleteRange(_));
            let keys: Vec<Key> = changes.iter().filter(is_entry).map(|c| c.key.bytes()).collect();
            if !keys.is_sorted_by(|a, b| order.compare(a, b).is_lt()) || says_nothing(changes) {
                return invalid();
            }
        }
        for changes in tables {
            self.sequence += 1;
            changes.iter().for_each(|change| self.apply(change));
        }
        Ok(())
    }

    fn check(&self, changes: &[Change]) -> Answer<()> {
        for change in changes {
            let merges = matches!(change.action, Action::Merge(_));
            if merges && self.family(&change.family)?.schema.operator == Operator::None {
                return Err("InvalidArgument".to_string());
            }
            let order = self.family(&change.family)?.schema.order;
            if let Action::DeleteRange(end) = &change.action
                && order.compare(&change.key.bytes(), &end.bytes()).is_gt()
            {
                return Err("InvalidArgument".to_string());
            }
        }
        Ok(())
    }

    /// Notes a change that was checked, with the number that is the last now.
    fn apply(&mut self, Change { family, key, action }: &Change) {
        let family = self.families.get_mut(family).expect("it was checked");
        let stored = match action {
            Action::Put(value) => Stored::Put(value.bytes()),
            Action::Delete => Stored::Delete,
            Action::SingleDelete => {
                self.single_deletes_amiss += usize::from(!family.may_single_delete(&key.bytes()));
                Stored::SingleDelete
            }
            Action::Merge(operand) => Stored::Merge(operand.bytes()),
            Action::DeleteRange(end) => {
                let range = (self.sequence, key.bytes(), end.bytes());
                family.range_deletes.push(range);
                return;
            }
        };
        family.keys.entry(key.bytes()).or_default().push((self.sequence, stored));
    }

    /// Every entry of a family, in its order; `None` if there is no family.
    pub fn entries(&self, family: &str) -> Option<Vec<Entry>> {
        let read = Read::of(family);
        Some(self.families.get(family)?.entries(&read, self.sequence).expect("values make sense"))
    }

    fn family(&self, name: &str) -> Answer<&Family> {
        self.families.get(name).ok_or_else(|| "Missing".to_string())
    }
}

impl Family {
    fn new(schema: Schema) -> Family {
        Family { schema, ..Family::default() }
    }

    /// The value of `key` as of `sequence`.
    fn get(&self, key: &[u8], sequence: u64) -> Answer<Option<Value>> {
        let Some(versions) = self.keys.get(key) else {
            return Ok(None);
        };
        let visible = &versions[..versions.partition_point(|(at, _)| *at <= sequence)];
        let deleted_at = self.deleted_at(key, sequence);
        let visible = &visible[visible.partition_point(|(at, _)| *at < deleted_at)..];
        // A put or a delete makes everything older meaningless, also operands
        // that make no sense.
        let merges = |stored: &Stored| matches!(stored, Stored::Merge(_));
        let start = visible.iter().rposition(|(_, stored)| !merges(stored)).unwrap_or(0);
        visible[start..].iter().try_fold(None, |value, (_, stored)| match stored {
            Stored::Put(value) => Ok(Some(value.clone())),
            Stored::Delete | Stored::SingleDelete => Ok(None),
            Stored::Merge(operand) => merge(self.schema.operator, value, operand).map(Some),
        })
    }

    /// True if `key` was put at most once, and not merged or deleted otherwise,
    /// since a range delete or a single delete removed it: with anything else
    /// the meaning of a single delete is open.
    fn may_single_delete(&self, key: &[u8]) -> bool {
        let versions = self.keys.get(key).map_or(&[][..], Vec::as_slice);
        let deleted_at = self.deleted_at(key, u64::MAX);
        let recent = versions.iter().rev().take_while(|(at, stored)| {
            *at >= deleted_at && !matches!(stored, Stored::SingleDelete)
        });
        let mut recent = recent.map(|(_, stored)| stored);
        recent.next().is_none_or(|last| matches!(last, Stored::Put(_))) && recent.next().is_none()
    }

    /// The number of the newest range delete of `key` as of `sequence`, or 0.
    fn deleted_at(&self, key: &[u8], sequence: u64) -> u64 {
        let order = self.schema.order;
        let newest_first = self.range_deletes.iter().rev();
        let mut visible = newest_first.filter(|(at, ..)| *at <= sequence);
        let found = visible.find(|(_, start, end)| {
            order.compare(start, key).is_le() && order.compare(key, end).is_lt()
        });
        found.map_or(0, |(at, ..)| *at)
    }

    /// Entries within the bounds, in the family's order. After a value that
    /// cannot be computed nothing follows but the error.
    fn entries(&self, read: &Read, sequence: u64) -> Result<Vec<Entry>, (Vec<Entry>, String)> {
        let order = self.schema.order;
        let bytes = |datum: &Option<Datum>| datum.as_ref().map(Datum::bytes);
        let (lower, upper) = (bytes(&read.lower), bytes(&read.upper));
        let prefix = bytes(&read.prefix).unwrap_or_default();
        let within = |key: &Key| {
            lower.as_ref().is_none_or(|lower| order.compare(key, lower).is_ge())
                && upper.as_ref().is_none_or(|upper| order.compare(key, upper).is_lt())
                && key.starts_with(&prefix)
        };
        let mut keys: Vec<&Key> = self.keys.keys().filter(|key| within(key)).collect();
        keys.sort_by(|a, b| order.compare(a, b));
        let mut entries = Vec::new();
        for key in keys {
            match self.get(key, sequence) {
                Ok(Some(value)) => entries.push((key.clone(), value)),
                Ok(None) => {}
                Err(kind) => return Err((entries, kind)),
            }
        }
        Ok(entries)
    }
}

pub(crate) fn merge(operator: Operator, value: Option<Value>, operand: &[u8]) -> Answer<Value> {
    let number = |bytes: &[u8]| {
        bytes.try_into().map(u64::from_le_bytes).map_err(|_| "MergeFailed".to_string())
    };
    match (operator, value) {
        (Operator::None, _) => Err("InvalidArgument".to_string()),
        (Operator::Add, value) => {
            let start = value.map_or(Ok(0), |value| number(&value))?;
            Ok(start.wrapping_add(number(operand)?).to_le_bytes().to_vec())
        }
        (Operator::Append, None) => Ok(operand.to_vec()),
        (Operator::Append, Some(value)) => Ok([&value, operand].join(&b',')),
    }
}

impl Surface for Model {
    fn run(&mut self, command: &Command) -> Output {
        self.answer(command).unwrap_or_else(Output::Failed)
    }
}

/// True for changes that are no table: deletes of empty ranges.
pub(crate) fn says_nothing(changes: &[Change]) -> bool {
    changes.iter().all(|change| match &change.action {
        Action::DeleteRange(end) => end.bytes() == change.key.bytes(),
        _ => false,
    })
}

/// True if every single delete of `history` is of a key that was put at most
/// once since it was last removed for good, as their contract has it.
pub fn keeps_the_contract(history: &[Command]) -> bool {
    let mut model = Model::default();
    history.iter().all(|command| {
        model.run(command);
        model.databases.values().all(|database| database.single_deletes_amiss == 0)
    })
}

impl Model {
    fn answer(&mut self, command: &Command) -> Answer<Output> {
        match command {
            Command::Open { name, settings } => self.open(name, settings),
            Command::Close => {
                self.open = None;
                Ok(Output::Done)
            }
            Command::Destroy { name } => {
                self.databases.remove(name);
                Ok(Output::Done)
            }
            Command::ListFamilies { name } => {
                let database = self.databases.get(name).ok_or("Missing")?;
                Ok(Output::Text(database.family_names().join("\n")))
            }
            Command::OpenAgain => {
                self.current()?;
                Err("Busy".to_string())
            }
            Command::Get { .. }
            | Command::MultiGet { .. }
            | Command::Scan { .. }
            | Command::Cursor { .. }
            | Command::Range { .. } => self.read(command),
            Command::Snapshot { name } => {
                let sequence = self.current()?.sequence;
                let opened = self.open.as_mut().expect("there is a current database");
                opened.snapshots.insert(name.clone(), sequence);
                Ok(Output::Done)
            }
            Command::Release { name } => {
                self.current()?;
                let opened = self.open.as_mut().expect("there is a current database");
                let held = opened.snapshots.remove(name);
                held.map(|_| Output::Done).ok_or_else(|| failure::NO_SNAPSHOT.to_string())
            }
            Command::Hold { name, family } => {
                let read = Command::Scan { read: Read::of(family), reverse: false };
                let seen = self.read(&read)?;
                let opened = self.open.as_mut().expect("there is a current database");
                opened.held.insert(name.clone(), seen);
                Ok(Output::Done)
            }
            Command::Held { name, reverse } => {
                self.current()?;
                let opened = self.open.as_mut().expect("there is a current database");
                match (opened.held.remove(name), reverse) {
                    (None, _) => Err(failure::NO_CURSOR.to_string()),
                    (Some(Output::Entries(mut entries, None)), true) => {
                        entries.reverse();
                        Ok(Output::Entries(entries, None))
                    }
                    (Some(seen), _) => Ok(seen),
                }
            }
            Command::Families => Ok(Output::Text(self.current()?.family_names().join("\n"))),
            Command::Sequence => Ok(Output::Text(self.current()?.sequence.to_string())),
            Command::Verify | Command::Wait => self.current().map(|_| Output::Done),
            // Nothing that a reader sees.
            Command::SetOptions { family, .. } => {
                let database = self.current()?;
                family.as_ref().map_or(Ok(()), |name| database.family(name).map(|_| ()))?;
                Ok(Output::Done)
            }
            Command::Property { .. } => Err("NotInModel".to_string()),
            _ => self.change(command),
        }
    }

    /// Commands that need a database open for writing.
    fn change(&mut self, command: &Command) -> Answer<Output> {
        if let Command::Write { changes, form: Form::Single, .. } = command {
            self.current()?.family(&changes[0].family)?;
        }
        if let Command::Flush { family: Some(family) }
        | Command::Compact { family, .. }
        | Command::DeleteFiles { family, .. } = command
        {
            self.current()?.family(family)?;
        }
        let name = self.writable()?;
        let database = self.databases.get_mut(&name).expect("the open database is known");
        match command {
            Command::Write { changes, .. } => database.write(changes)?,
            Command::Ingest { tables, .. } => database.ingest(tables)?,
            Command::CreateFamily { name, schema } => {
                if database.families.contains_key(name) {
                    return Err("InvalidArgument".to_string());
                }
                database.create_family(name, *schema);
            }
            Command::DropFamily { name } => {
                if name == DEFAULT_FAMILY {
                    return Err("InvalidArgument".to_string());
                }
                database.family(name)?;
                database.drop_family(name);
            }
            Command::Checkpoint { name: target } => {
                let copy = database.clone();
                if self.databases.contains_key(target) {
                    return Err("InvalidArgument".to_string());
                }
                self.databases.insert(target.clone(), copy);
            }
            // Flush, compact, sync-log, resume: nothing that a reader sees; and
            // histories delete files only where all keys are deleted.
            _ => {}
        }
        Ok(Output::Done)
    }

    fn open(&mut self, name: &str, settings: &Settings) -> Answer<Output> {
        self.open = None;
        let invalid = || "InvalidArgument".to_string();
        let stated = |family: &str| {
            settings.schemas.iter().find(|(known, _)| known == family).map(|(_, schema)| *schema)
        };
        match self.databases.get(name) {
            None if !settings.create || settings.read_only => return Err("Missing".to_string()),
            None => {
                let schema = stated(DEFAULT_FAMILY).unwrap_or_default();
                self.databases.insert(name.to_string(), Database::with_default_schema(schema));
            }
            Some(_) if settings.exclusive => return Err(invalid()),
            Some(database) => {
                for (family, known) in &database.families {
                    if stated(family).is_some_and(|schema| schema != known.schema) {
                        return Err(invalid());
                    }
                }
            }
        }
        let (name, read_only) = (name.to_string(), settings.read_only);
        let (snapshots, held) = (BTreeMap::new(), BTreeMap::new());
        self.open = Some(Opened { name, read_only, snapshots, held });
        Ok(Output::Done)
    }

    fn current(&self) -> Answer<&Database> {
        let opened = self.open.as_ref().ok_or(failure::CLOSED)?;
        Ok(&self.databases[&opened.name])
    }

    fn writable(&self) -> Answer<String> {
        let opened = self.open.as_ref().ok_or(failure::CLOSED)?;
        if opened.read_only { Err("ReadOnly".to_string()) } else { Ok(opened.name.clone()) }
    }

    fn read(&self, command: &Command) -> Answer<Output> {
        Ok(match command {
            Command::Get { key, read } => {
                let (family, sequence) = self.view(read)?;
                Output::Value(family.get(&key.bytes(), sequence)?)
            }
            Command::MultiGet { keys, read } => {
                let (family, sequence) = self.view(read)?;
                let get = |key: &Datum| match family.get(&key.bytes(), sequence) {
                    Ok(value) => Output::Value(value),
                    Err(kind) => Output::Failed(kind),
                };
                Output::Values(keys.iter().map(get).collect())
            }
            Command::Scan { read, reverse } => {
                let (family, sequence) = self.view(read)?;
                match family.entries(read, sequence) {
                    Ok(mut entries) => {
                        if *reverse {
                            entries.reverse();
                        }
                        Output::Entries(entries, None)
                    }
                    Err((entries, kind)) => Output::Entries(entries, Some(kind)),
                }
            }
            Command::Cursor { read, moves } => {
                let (family, sequence) = self.view(read)?;
                let entries = family.entries(read, sequence).map_err(|(_, kind)| kind)?;
                Output::Positions(walk(family, &entries, moves))
            }
            Command::Range { family, from, to, inclusive, ends } => {
                self.range(family, from.as_ref(), to.as_ref(), *inclusive, ends)?
            }
            _ => unreachable!("only reads come here"),
        })
    }

    fn range(
        &self,
        family: &str,
        from: Option<&Datum>,
        to: Option<&Datum>,
        inclusive: bool,
        ends: &str,
    ) -> Answer<Output> {
        let read = Read { lower: from.cloned(), ..Read::of(family) };
        let (family, sequence) = self.view(&read)?;
        let mut entries = family.entries(&read, sequence).map_err(|(_, kind)| kind)?;
        if let Some(to) = to.map(Datum::bytes) {
            let order = family.schema.order;
            entries.retain(|(key, _)| {
                let ordering = order.compare(key, &to);
                ordering.is_lt() || inclusive && ordering.is_eq()
            });
        }
        let mut rest = entries.into_iter();
        let take = |end| if end == 'f' { rest.next() } else { rest.next_back() };
        Ok(Output::Positions(ends.chars().map(take).collect()))
    }

    /// The family to read, and the newest sequence number to see.
    fn view(&self, read: &Read) -> Answer<(&Family, u64)> {
        let database = self.current()?;
        let family = database.family(&read.family)?;
        let sequence = match &read.at {
            None => database.sequence,
            Some(name) => {
                let opened = self.open.as_ref().expect("there is a current database");
                *opened.snapshots.get(name).ok_or(failure::NO_SNAPSHOT)?
            }
        };
        Ok((family, sequence))
    }
}

/// Where each move leads a cursor over `entries`.
fn walk(family: &Family, entries: &[Entry], moves: &[Move]) -> Vec<Option<Entry>> {
    let order = family.schema.order;
    let mut at: Option<usize> = None;
    let step = |to: &Move| {
        at = match to {
            Move::First => Some(0),
            Move::Last => entries.len().checked_sub(1),
            Move::Next => at.map(|i| i + 1),
            Move::Prev => at.and_then(|i| i.checked_sub(1)),
            Move::Seek(key) => {
                let key = key.bytes();
                Some(entries.partition_point(|(k, _)| order.compare(k, &key).is_lt()))
            }
            Move::SeekForPrev(key) => {
                let key = key.bytes();
                entries.partition_point(|(k, _)| order.compare(k, &key).is_le()).checked_sub(1)
            }
        };
        at = at.filter(|i| *i < entries.len());
        at.map(|i| entries[i].clone())
    };
    moves.iter().map(step).collect()
}
