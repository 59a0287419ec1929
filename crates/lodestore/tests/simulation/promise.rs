//! What a database promised during a life, and what of it must be there.

use crate::tables;
use lodestore::SequenceNumber;
use testkit::load::{Contents, Expected, Writer};

/// Writers of a life; each incarnation has some of them at work.
pub const WRITERS: u8 = 4;
const FAMILY: &str = "extra-";

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The files stay as they were written.
    Kill,
    /// Unsynced bytes and names may be lost.
    PowerLoss,
}

/// Something that was acknowledged, in the order of acknowledgements.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A batch.
    Batch { writer: u8, index: u64, sequence: SequenceNumber },
    /// Everything up to this number survives anything from now on.
    Lasting { sequence: SequenceNumber },
    /// A call that took in tables.
    Ingested { number: u64, sequence: SequenceNumber },
    /// A family was created.
    Created { family: u64 },
    /// A family is about to be dropped: from now on it may be gone.
    Dropping { family: u64 },
    /// A family was dropped.
    Dropped { family: u64 },
}

/// The writer `id` of the life of `seed`.
pub fn writer(seed: u64, id: u8) -> Writer {
    Writer { seed, id, value_bytes_max: 300 }
}

/// The name of the n-th family that comes and goes.
pub fn family_name(number: u64) -> String {
    format!("{FAMILY}{number}")
}

/// What a database holds: so many batches of each writer, and what they give.
#[derive(Clone, Debug, Default)]
pub struct State {
    kept: [u64; WRITERS as usize],
    expected: Expected,
    /// Calls that took in tables.
    pub calls: u64,
}

impl State {
    /// Batches of one writer.
    pub fn batches_of(&self, id: u8) -> u64 {
        self.kept[usize::from(id)]
    }

    /// Goes on to the state with so many batches of each writer.
    ///
    /// # Panics
    /// If it has more of them already: time went back.
    pub fn go_on_to(&mut self, seed: u64, kept: [u64; WRITERS as usize]) {
        for id in 0..WRITERS {
            let (from, to) = (self.batches_of(id), kept[usize::from(id)]);
            assert!(from <= to, "writer {id} had {from} batches and has {to}");
            let writer = writer(seed, id);
            (from + 1..=to).for_each(|index| self.expected.apply(&writer, index));
        }
        self.kept = kept;
    }

    /// True if as much was kept as in `other`.
    pub fn is_as(&self, other: &State) -> bool {
        self.kept == other.kept && self.calls == other.calls
    }

    /// The first difference from what was found, in words.
    pub fn difference(&self, found: &Contents) -> Option<String> {
        self.expected.difference(found)
    }

    /// The entries that one of the writers' families must have.
    pub fn entries(&self, family: &str) -> Option<&std::collections::BTreeMap<Vec<u8>, Vec<u8>>> {
        self.expected.entries(family)
    }
}

/// All that was promised since the state `sure`, which lasts.
#[derive(Clone, Debug, Default)]
pub struct Promises {
    /// What no crash may take away.
    pub sure: State,
    /// What was acknowledged since.
    pub events: Vec<Event>,
    /// False without a log: a killed process then loses what was not flushed.
    pub is_logged: bool,
}

impl Promises {
    /// Judges what was found after a crash; the state that it is.
    ///
    /// # Panics
    /// If it is not what it must be, saying how.
    pub fn judge(&self, seed: u64, crash: Crash, found: &Contents) -> State {
        let mut state = self.sure.clone();
        let kept = std::array::from_fn(|id| writer(seed, id as u8).batches_in(found));
        state.go_on_to(seed, kept);
        assert_eq!(state.difference(found), None, "with {kept:?} batches of the writers");
        self.check_batches(crash, &state);
        state.calls = tables::judge(found, self.calls());
        self.check_families(found);
        state
    }

    fn check_batches(&self, crash: Crash, state: &State) {
        let durable = self.events.iter().filter_map(Event::lasting).max().unwrap_or(0);
        let (mut last_kept, mut first_lost) = (0, SequenceNumber::MAX);
        for event in &self.events {
            let (sequence, is_kept) = match *event {
                Event::Batch { writer, index, sequence } => {
                    (sequence, index <= state.batches_of(writer))
                }
                Event::Ingested { sequence, .. } => (sequence, true),
                _ => continue,
            };
            if is_kept {
                last_kept = last_kept.max(sequence);
                continue;
            }
            assert!(sequence > durable, "{event:?} is lost, but all up to {durable} lasts");
            let may_go = crash == Crash::PowerLoss || !self.is_logged;
            assert!(may_go, "acknowledged and lost by a kill: {event:?}");
            first_lost = first_lost.min(sequence);
        }
        assert!(last_kept < first_lost, "{first_lost} is lost, but {last_kept}, after it, is not");
    }

    fn calls(&self) -> u64 {
        let number = |event: &Event| match event {
            Event::Ingested { number, .. } => Some(*number),
            _ => None,
        };
        self.events.iter().filter_map(number).max().unwrap_or(0).max(self.sure.calls)
    }

    /// Families are created and dropped one after another, and durably.
    fn check_families(&self, found: &Contents) {
        let mut there = None;
        for event in &self.events {
            match *event {
                Event::Created { family } => there = Some(family),
                Event::Dropping { family } if there == Some(family) => there = None,
                Event::Dropped { family } => {
                    let name = family_name(family);
                    assert!(!found.contains_key(&name), "{name} was dropped and is back");
                }
                _ => {}
            }
        }
        if let Some(family) = there {
            let name = family_name(family);
            assert!(found.contains_key(&name), "{name} was created and is gone");
        }
    }

    /// What is promised from `state` on, which a crash has left.
    pub fn after(mut self, crash: Crash, state: &State) -> Promises {
        if crash == Crash::PowerLoss {
            self.events.clear();
            self.sure = state.clone();
            return self;
        }
        let is_there = |event: &Event| match *event {
            Event::Batch { writer, index, .. } => index <= state.batches_of(writer),
            _ => true,
        };
        self.events.retain(is_there);
        self
    }
}

impl Event {
    /// The number up to which everything lasts since.
    fn lasting(&self) -> Option<SequenceNumber> {
        match *self {
            Event::Lasting { sequence } | Event::Ingested { sequence, .. } => Some(sequence),
            _ => None,
        }
    }
}
