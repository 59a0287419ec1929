//! Random keys, values and changes of them.

use super::Generator;
use crate::command::{Action, Change, Command, DEFAULT_FAMILY, Form, Operator, Read};
use crate::model::says_nothing;
use crate::text::Datum;

impl Generator {
    pub(super) fn key(&mut self) -> Datum {
        Datum::Literal(self.random.pick(&self.keys).clone())
    }

    /// A bound: none, a key, or something between keys.
    pub(super) fn bound(&mut self) -> Option<Datum> {
        match self.random.below(4) {
            0 | 1 => None,
            2 => Some(self.key()),
            _ => {
                let mut key = self.random.pick(&self.keys).clone();
                key.push(self.random.word() as u8);
                Some(Datum::Literal(key))
            }
        }
    }

    pub(super) fn change(&mut self) -> Change {
        let family = self.family();
        if self.random.one_in(60) {
            return self.range(&family);
        }
        let key = self.key();
        self.entry(family, key)
    }

    /// A change of one key.
    pub(super) fn entry(&mut self, family: String, key: Datum) -> Change {
        let operator = self.schema_of(&family).operator;
        let past = self.past.get(&(family.clone(), key.bytes())).copied().unwrap_or_default();
        let action = match self.random.below(20) {
            0..=2 => Action::Delete,
            3..=5 if past.puts <= 1 && !past.mixed => Action::SingleDelete,
            7..=9 if operator == Operator::Add => Action::Merge(self.number()),
            7..=9 if operator == Operator::Append => {
                let length = self.random.below(20);
                Action::Merge(Datum::Generated { length, seed: self.random.word() >> 40 })
            }
            _ if operator == Operator::Add => Action::Put(self.number()),
            _ => Action::Put(self.value()),
        };
        let change = Change { family, key, action };
        self.remember(&change);
        change
    }

    /// A range to delete: mostly a few neighbouring keys.
    pub(super) fn range(&mut self, family: &str) -> Change {
        let order = self.schema_of(family).order;
        let mut keys = self.keys.clone();
        keys.sort_by(|a, b| order.compare(a, b));
        let first = self.random.below(keys.len());
        let wide = self.random.one_in(6);
        let last = first + self.random.below(if wide { keys.len() } else { 8 });
        let end = match keys.get(last) {
            Some(key) => key.clone(),
            None => keys[keys.len() - 1].clone(),
        };
        let (key, action) =
            (Datum::Literal(keys[first].clone()), Action::DeleteRange(Datum::Literal(end)));
        let change = Change { family: family.to_string(), key, action };
        self.remember(&change);
        change
    }

    /// So many puts and deletes of the default family that they are inserted in
    /// another order than theirs.
    pub(super) fn plain_batch(&mut self) -> Command {
        let entries = self.random.between(1000, 1200);
        let is_number = self.schema_of(DEFAULT_FAMILY).operator == Operator::Add;
        let changes = (0..entries).map(|_| {
            let action = match self.random.one_in(3) {
                true => Action::Delete,
                false if is_number => Action::Put(self.number()),
                false => Action::Put(Datum::Literal(self.random.word().to_string().into_bytes())),
            };
            let change = Change { family: DEFAULT_FAMILY.to_string(), key: self.key(), action };
            self.remember(&change);
            change
        });
        Command::Write { changes: changes.collect(), form: Form::Batch, sync: false }
    }

    /// Deletes most keys of a family one by one and walks over where they were,
    /// again and again, while some come back. Now and then a range was deleted
    /// before, over what was flushed, and some walks are of that state.
    pub(super) fn delete_run(&mut self) -> Command {
        let family = self.family();
        let mut commands = Vec::new();
        if self.random.one_in(3) {
            commands.push(Command::Flush { family: Some(family.clone()) });
            let range = self.range(&family);
            let start = range.key.clone();
            let back = self.entry(family.clone(), start);
            let changes = vec![range, back];
            commands.push(Command::Write { changes, form: Form::Batch, sync: false });
            commands.push(self.snapshot());
        }
        let keys: Vec<Vec<u8>> = self.keys.iter().skip(self.random.below(8)).cloned().collect();
        let deleted = keys.into_iter().map(|key| {
            let change =
                Change { family: family.clone(), key: Datum::Literal(key), action: Action::Delete };
            self.remember(&change);
            change
        });
        let changes = deleted.collect();
        commands.push(Command::Write { changes, form: Form::Batch, sync: false });
        let walk = |generator: &mut Generator| {
            let read = match generator.random.below(4) {
                0 => generator.read(),
                1 => Read { at: generator.at(), ..Read::of(&family) },
                _ => Read::of(&family),
            };
            match generator.random.one_in(3) {
                true => generator.cursor_over(read),
                false => Command::Scan { read, reverse: generator.random.one_in(2) },
            }
        };
        commands.extend([walk(self), walk(self)]);
        for _ in 0..self.random.between(0, 3) {
            commands.push(self.write(1));
            commands.push(walk(self));
        }
        commands.reverse();
        let first = commands.pop().expect("there are some");
        self.following.extend(commands);
        first
    }

    /// Notes what a change means for single deletes.
    pub(super) fn remember(&mut self, change: &Change) {
        let key = change.key.bytes();
        if let Action::DeleteRange(end) = &change.action {
            let (order, end) = (self.schema_of(&change.family).order, end.bytes());
            self.past.retain(|(family, k), _| {
                let within = order.compare(&key, k).is_le() && order.compare(k, &end).is_lt();
                *family != change.family || !within
            });
            return;
        }
        let past = self.past.entry((change.family.clone(), key)).or_default();
        match change.action {
            Action::Put(_) => past.puts += 1,
            Action::SingleDelete => past.puts = 0,
            _ => past.mixed = true,
        }
    }

    /// One to three tables; now and then the last is not as it has to be, so
    /// that none must come in.
    pub(super) fn ingest(&mut self) -> Command {
        let before = self.past.clone();
        let count = self.random.between(1, 3);
        let mut tables: Vec<Vec<Change>> = (0..count).map(|_| self.table()).collect();
        let mut refused = tables.iter().any(|table| says_nothing(table));
        if self.random.one_in(12) {
            let table = tables.last_mut().expect("there is one");
            let key = table.last().expect("it has a change").key.clone();
            let family = table[0].family.clone();
            for _ in 0..2 {
                let (family, key) = (family.clone(), key.clone());
                table.push(Change { family, key, action: Action::Delete });
            }
            refused = true;
        }
        if refused {
            self.past = before;
        }
        Command::Ingest { tables, moved: self.random.one_in(2) }
    }

    /// A table's changes: of a few neighbouring keys, or of many.
    pub(super) fn table(&mut self) -> Vec<Change> {
        let family = self.family();
        let order = self.schema_of(&family).order;
        let mut keys = self.keys.clone();
        keys.sort_by(|a, b| order.compare(a, b));
        keys.dedup();
        let first = self.random.below(keys.len());
        let wide = self.random.one_in(3);
        let span = self.random.below(if wide { keys.len() } else { 8 });
        let mut changes = Vec::new();
        // These delete what was there before, not what the table holds.
        if self.random.one_in(4) {
            changes.push(self.range(&family));
        }
        for key in &keys[first..(first + span + 1).min(keys.len())] {
            if !self.random.one_in(4) {
                changes.push(self.entry(family.clone(), Datum::Literal(key.clone())));
            }
        }
        if changes.is_empty() {
            changes.push(self.entry(family, Datum::Literal(keys[first].clone())));
        }
        changes
    }

    pub(super) fn number(&mut self) -> Datum {
        let number = if self.random.one_in(9) { u64::MAX } else { self.random.word() >> 50 };
        Datum::Literal(number.to_le_bytes().to_vec())
    }

    pub(super) fn value(&mut self) -> Datum {
        if self.records && !self.random.one_in(8) {
            return self.record();
        }
        let length = match self.random.below(20) {
            0 => 0,
            1..=8 => self.random.below(30),
            9..=17 => self.random.below(400),
            18 => self.random.below(2000),
            _ => self.random.below(5000),
        };
        Datum::Generated { length, seed: self.random.word() >> 40 }
    }

    /// What a program may keep: one form, small differences.
    pub(super) fn record(&mut self) -> Datum {
        let r = &mut self.random;
        let (state, amount) = (*r.pick(&["open", "settled"]), r.below(100_000));
        let text =
            format!("account:{:06}/state:{state}/amount:{amount}/currency:EUR", r.below(999));
        Datum::Literal(text.into_bytes())
    }
}
