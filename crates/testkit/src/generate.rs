//! Histories from a seed: commands that are likely to collide, to reach odd
//! states, and to be read again after everything moved.

mod entries;
mod options;

pub use options::with_other_options;

use crate::command::{
    Action, Change, Command, DEFAULT_FAMILY, Form, Move, Operator, Read, Schema, Settings,
};
use crate::orders::Order;
use crate::random::Random;
use crate::text::Datum;
use std::collections::BTreeMap;

/// What a history may contain.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Different keys.
    pub keys_max: usize,
    /// Orders other than bytewise may be used.
    pub custom_orders: bool,
    /// The database may be closed and opened again.
    pub reopening: bool,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape { keys_max: 160, custom_orders: true, reopening: true }
    }
}

/// An endless history. It begins with opening a new database.
pub struct Generator {
    random: Random,
    shape: Shape,
    keys: Vec<Vec<u8>>,
    /// Families that are there now, with their schemas.
    families: Vec<(String, Schema)>,
    snapshots: Vec<String>,
    /// Cursors that are kept.
    held: Vec<String>,
    /// By family and key.
    past: BTreeMap<(String, Vec<u8>), Past>,
    /// Commands that must follow at once, the next one last.
    following: Vec<Command>,
    named: usize,
    opened: bool,
    /// Values have much in common.
    records: bool,
    /// There is a limit on memory, which decides how large the cache is.
    memory_is_limited: bool,
}

/// What decides whether a key may be removed by a single delete.
#[derive(Clone, Copy, Default)]
struct Past {
    /// Since the key was last removed by a single delete or with a range.
    puts: usize,
    /// True if it was merged, or removed in another way, since then.
    mixed: bool,
}

/// By name; the keys have prefixes by all of them.
pub const PREFIX_EXTRACTORS: [&str; 6] =
    ["default", "none", "fixed:2", "capped:4", "delimiter:0x2f", "fixed:15"];

#[derive(Clone, Copy)]
enum What {
    Write,
    BigBatch,
    Get,
    Scan,
    Cursor,
    Range,
    Snapshot,
    Hold,
    Family,
    Flush,
    Compact,
    DeleteRange,
    DeleteRun,
    Ingest,
    Checkpoint,
    Options,
    Reopen,
    Rare,
}

impl Generator {
    /// The history of `seed`.
    pub fn new(seed: u64, shape: Shape) -> Generator {
        let mut random = Random::new(seed);
        let keys = keys(&mut random, shape.keys_max);
        let mut generator = Generator {
            random,
            shape,
            keys,
            families: Vec::new(),
            snapshots: Vec::new(),
            held: Vec::new(),
            past: BTreeMap::new(),
            following: Vec::new(),
            named: 0,
            opened: false,
            records: false,
            memory_is_limited: false,
        };
        generator.records = generator.random.one_in(3);
        let schema = generator.schema();
        generator.families.push((DEFAULT_FAMILY.to_string(), schema));
        generator
    }

    fn command(&mut self) -> Command {
        match self.random.weighted(&[
            (24, What::Write),
            (12, What::BigBatch),
            (22, What::Get),
            (10, What::Scan),
            (10, What::Cursor),
            (4, What::Range),
            (5, What::Snapshot),
            (2, What::Hold),
            (3, What::Family),
            (3, What::Flush),
            (2, What::Compact),
            (4, What::DeleteRange),
            (3, What::DeleteRun),
            (4, What::Ingest),
            (1, What::Checkpoint),
            (3, What::Options),
            (2, What::Reopen),
            (2, What::Rare),
        ]) {
            What::Write => self.write(1),
            What::BigBatch => {
                let records = self.random.between(0, 60);
                if self.random.one_in(100) { self.plain_batch() } else { self.write(records) }
            }
            What::Get => self.get(),
            What::Scan => Command::Scan { read: self.read(), reverse: self.random.one_in(2) },
            What::Cursor => self.cursor(),
            What::Range => self.walk_range(),
            What::Snapshot => self.snapshot(),
            What::Hold => self.hold(),
            What::Family => self.change_families(),
            What::Flush => {
                let all = self.random.one_in(3);
                Command::Flush { family: if all { None } else { Some(self.family()) } }
            }
            What::Compact => self.compact(),
            What::DeleteRange => self.delete_range(),
            What::DeleteRun => self.delete_run(),
            What::Ingest => self.ingest(),
            What::Checkpoint if self.shape.reopening => self.checkpoint(),
            What::Checkpoint => Command::Checkpoint { name: self.name("copy") },
            What::Options => self.change_options(),
            What::Reopen if self.shape.reopening => self.open(),
            What::Reopen => Command::Wait,
            What::Rare => self.rare(),
        }
    }

    /// Opens the database, the first time or again, with other knobs. Schemas
    /// are stated the first time only: the surface remembers them.
    fn open(&mut self) -> Command {
        self.snapshots.clear();
        self.held.clear();
        let schemas = if self.opened { Vec::new() } else { self.families.clone() };
        let settings =
            Settings { create: true, knobs: self.knobs(), schemas, ..Settings::default() };
        self.opened = true;
        Command::Open { name: "db".to_string(), settings }
    }

    /// A checkpoint that is opened, compared, written to and destroyed; then
    /// the database again, which must not have changed.
    fn checkpoint(&mut self) -> Command {
        let name = self.name("copy");
        let knobs = self.knobs();
        let settings = Settings { knobs, ..Settings::default() };
        let mut commands = vec![Command::Open { name: name.clone(), settings }, Command::Verify];
        commands.extend(self.look_at_everything());
        // What is written there must not count here.
        let before = self.past.clone();
        for _ in 0..self.random.between(1, 4) {
            let records = self.random.between(1, 40);
            commands.push(self.write(records));
        }
        commands.push(self.compact());
        commands.extend(self.look_at_everything());
        self.past = before;
        commands.push(self.open());
        commands.push(Command::Destroy { name: name.clone() });
        commands.extend(self.look_at_everything());
        self.following.extend(commands.into_iter().rev());
        Command::Checkpoint { name }
    }

    fn look_at_everything(&mut self) -> Vec<Command> {
        let names: Vec<String> = self.families.iter().map(|(name, _)| name.clone()).collect();
        let scan = |name: String| {
            let read = Read::of(&name);
            Command::Scan { read, reverse: self.random.one_in(2) }
        };
        let scans: Vec<Command> = names.into_iter().map(scan).collect();
        std::iter::once(Command::Families).chain(scans).collect()
    }

    /// Keeps a cursor, or looks through one that was kept.
    fn hold(&mut self) -> Command {
        if self.held.len() >= 3 || !self.held.is_empty() && self.random.one_in(2) {
            let at = self.random.below(self.held.len());
            return Command::Held { name: self.held.remove(at), reverse: self.random.one_in(2) };
        }
        let name = self.name("c");
        self.held.push(name.clone());
        Command::Hold { name, family: self.family() }
    }

    fn schema(&mut self) -> Schema {
        let r = &mut self.random;
        let custom = self.shape.custom_orders && r.one_in(5);
        let order = if custom { *r.pick(&Order::ALL) } else { Order::Bytewise };
        let operators = [Operator::None, Operator::Add, Operator::Append, Operator::Append];
        Schema { order, operator: *r.pick(&operators) }
    }

    fn family(&mut self) -> String {
        self.random.pick(&self.families).0.clone()
    }

    fn schema_of(&self, family: &str) -> Schema {
        let known = self.families.iter().find(|(name, _)| name == family);
        known.map_or_else(Schema::default, |(_, schema)| *schema)
    }

    /// Deletes a range, now and then with the files in it. That takes older
    /// states away too, so that it is done only while there is no snapshot.
    fn delete_range(&mut self) -> Command {
        let family = self.family();
        let change = self.range(&family);
        if let Action::DeleteRange(end) = &change.action
            && self.snapshots.is_empty()
            && self.random.one_in(2)
        {
            let (from, until) = (Some(change.key.clone()), Some(end.clone()));
            self.following.push(Command::DeleteFiles { family: family.clone(), from, until });
            if self.random.one_in(2) {
                self.following.push(Command::Flush { family: Some(family) });
            }
        }
        Command::Write { changes: vec![change], form: Form::Single, sync: self.random.one_in(12) }
    }

    fn write(&mut self, records: usize) -> Command {
        let changes: Vec<Change> = (0..records).map(|_| self.change()).collect();
        let single = changes.len() == 1 && self.random.one_in(2);
        let form = if single { Form::Single } else { Form::Batch };
        Command::Write { changes, form, sync: self.random.one_in(12) }
    }

    fn read(&mut self) -> Read {
        let family = self.family();
        let at = self.at();
        // Keys with one prefix are neighbours only where the order is bytewise.
        let bytewise = self.schema_of(&family).order == Order::Bytewise;
        let prefix = if bytewise && self.random.one_in(4) {
            let key = self.random.pick(&self.keys).clone();
            let length = self.random.below(key.len() + 1);
            Some(Datum::Literal(key[..length].to_vec()))
        } else {
            None
        };
        Read { family, at, lower: self.bound(), upper: self.bound(), prefix }
    }

    fn at(&mut self) -> Option<String> {
        let use_one = !self.snapshots.is_empty() && self.random.one_in(2);
        use_one.then(|| self.random.pick(&self.snapshots).clone())
    }

    fn get(&mut self) -> Command {
        let read = Read { at: self.at(), ..Read::of(&self.family()) };
        if self.random.one_in(4) {
            let keys = (0..self.random.between(0, 30)).map(|_| self.key()).collect();
            return Command::MultiGet { keys, read };
        }
        Command::Get { key: self.key(), read }
    }

    fn cursor(&mut self) -> Command {
        let read = self.read();
        self.cursor_over(read)
    }

    fn cursor_over(&mut self, read: Read) -> Command {
        let mut moves = Vec::new();
        for _ in 0..self.random.between(1, 25) {
            moves.push(match self.random.below(12) {
                0 => Move::First,
                1 => Move::Last,
                2..=3 => Move::Seek(self.bound().unwrap_or(Datum::Literal(Vec::new()))),
                4..=5 => Move::SeekForPrev(self.bound().unwrap_or(Datum::Literal(vec![0xff]))),
                6..=8 => Move::Next,
                _ => Move::Prev,
            });
        }
        Command::Cursor { read, moves }
    }

    fn walk_range(&mut self) -> Command {
        let ends = (0..self.random.between(1, 20))
            .map(|_| if self.random.one_in(2) { 'f' } else { 'b' })
            .collect();
        let (from, to) = (self.bound(), self.bound());
        let inclusive = to.is_some() && self.random.one_in(2);
        Command::Range { family: self.family(), from, to, inclusive, ends }
    }

    fn snapshot(&mut self) -> Command {
        let full = self.snapshots.len() >= 4;
        if full || !self.snapshots.is_empty() && self.random.one_in(3) {
            let at = self.random.below(self.snapshots.len());
            return Command::Release { name: self.snapshots.remove(at) };
        }
        let name = self.name("s");
        self.snapshots.push(name.clone());
        Command::Snapshot { name }
    }

    fn change_families(&mut self) -> Command {
        let droppable = self.families.len() - 1;
        if droppable > 0 && (droppable >= 3 || self.random.one_in(3)) {
            let at = 1 + self.random.below(droppable);
            if self.random.one_in(2) {
                return self.drop_under_load(at);
            }
            return self.drop_family(at);
        }
        // A few names only, so that one comes back after it was dropped.
        let names = ["a", "b", "c", "users", "\u{e9}t\u{e9}"];
        let name = self.random.pick(&names).to_string();
        let schema = self.schema();
        if !self.families.iter().any(|(known, _)| *known == name) {
            self.families.push((name.clone(), schema));
        }
        Command::CreateFamily { name, schema }
    }

    fn drop_family(&mut self, at: usize) -> Command {
        let name = self.families.remove(at).0;
        self.past.retain(|(family, _), _| *family != name);
        Command::DropFamily { name }
    }

    /// Fills the memtables of a family several times and drops it at once,
    /// under a cursor that is read afterwards.
    fn drop_under_load(&mut self, at: usize) -> Command {
        let family = self.families[at].0.clone();
        let held = self.name("c");
        let mut commands = Vec::new();
        for round in 0..3 {
            let mut changes = Vec::new();
            for _ in 0..60 {
                let key = self.key();
                let length = self.random.between(100, 1500);
                let value = Datum::Generated { length, seed: self.random.word() >> 40 };
                let operator = self.schema_of(&family).operator;
                let value = if operator == Operator::Add { self.number() } else { value };
                changes.push(Change { family: family.clone(), key, action: Action::Put(value) });
            }
            commands.push(Command::Write { changes, form: Form::Batch, sync: false });
            if round == 1 {
                let name = held.clone();
                commands.push(Command::Hold { name, family: family.clone() });
            }
        }
        commands.push(self.drop_family(at));
        commands.push(Command::Held { name: held, reverse: self.random.one_in(2) });
        commands.reverse();
        let first = commands.pop().expect("there are some");
        self.following.extend(commands);
        first
    }

    fn compact(&mut self) -> Command {
        let family = self.family();
        let order = self.schema_of(&family).order;
        let (mut from, mut to) = (self.bound(), self.bound());
        if let (Some(a), Some(b)) = (&from, &to)
            && order.compare(&a.bytes(), &b.bytes()).is_gt()
        {
            std::mem::swap(&mut from, &mut to);
        }
        let rewrite = self.random.below(4) == 0;
        Command::Compact { family, from, to, rewrite }
    }

    fn rare(&mut self) -> Command {
        match self.random.below(7) {
            0 => Command::Wait,
            1 => Command::Verify,
            2 => Command::SyncLog,
            3 => Command::Families,
            4 => Command::OpenAgain,
            5 => Command::Sequence,
            _ => Command::Resume,
        }
    }

    fn name(&mut self, kind: &str) -> String {
        self.named += 1;
        format!("{kind}{}", self.named)
    }
}

impl Iterator for Generator {
    type Item = Command;

    fn next(&mut self) -> Option<Command> {
        if let Some(command) = self.following.pop() {
            return Some(command);
        }
        Some(if self.opened { self.command() } else { self.open() })
    }
}

/// Keys that are prefixes of each other, that differ late, that are empty, all
/// zeros or all ones, and some of the kinds that users have.
fn keys(random: &mut Random, keys_max: usize) -> Vec<Vec<u8>> {
    let odd: [&[u8]; 12] = [
        b"",
        b"\0",
        b"\0\0",
        b"\0\x01",
        b"\xff",
        b"\xff\xff",
        b"\xff\0",
        b"a",
        b"a\0",
        b"ab",
        b"abc",
        b"b",
    ];
    let mut keys: Vec<Vec<u8>> = odd.iter().map(|key| key.to_vec()).collect();
    for i in 0..random.between(4, keys_max) {
        keys.push(match random.below(8) {
            0 => (0..random.below(4)).map(|_| *random.pick(b"\0\x01ab\xfe\xff")).collect(),
            1..=3 => format!("{:016}", i * 7 % 1000).into_bytes(),
            4 => crate::random::bytes(random.between(1, 40), random.word()),
            5 => format!("the/same/long/beginning/{i:03}").into_bytes(),
            6 => vec![b'p'; random.below(20)],
            _ if random.one_in(6) => vec![b'l'; random.between(200, 1200)],
            _ => random.word().to_be_bytes().to_vec(),
        });
    }
    keys
}
