//! The lead, taken, awaited, handed over and given up at the same time.

use super::{CommitQueue, Ticket};
use crate::batch::WriteBatch;
use crate::options::WriteOptions;
use crate::sync::atomic::Ordering;
use crate::sync::{Arc, StepAtomicU64, thread};
use testkit::explore::{explore, explore_all};

/// What a test's threads share.
#[derive(Default)]
struct Place {
    queue: CommitQueue,
    leaders: StepAtomicU64,
    committed: StepAtomicU64,
}

impl Place {
    /// Does `work` as the only leader.
    fn alone(&self, work: impl FnOnce()) {
        assert_eq!(self.leaders.fetch_add(1, Ordering::Relaxed), 0, "two lead");
        thread::yield_now();
        work();
        self.leaders.fetch_sub(1, Ordering::Relaxed);
    }

    fn commit(&self, writes: usize) {
        self.committed.fetch_add(writes as u64, Ordering::Relaxed);
    }

    /// One write, as `Engine::write` does it.
    fn write(&self) {
        let new = || Ticket::new(WriteOptions::default(), WriteBatch::new());
        let Some(ticket) = self.queue.lead_or_join(new) else {
            self.alone(|| self.commit(1));
            return self.queue.hand_over();
        };
        if ticket.wait().is_none() {
            self.commit_group_of(&ticket);
        }
    }

    /// Commits the group whose first writer was given the lead.
    fn commit_group_of(&self, first: &Arc<Ticket>) {
        self.alone(|| {
            let group = self.queue.take_group();
            assert!(Arc::ptr_eq(&group[0], first), "who leads is the first of the group");
            self.commit(group.len());
            group.iter().for_each(|ticket| ticket.finish(WriteBatch::new(), Ok(0)));
        });
        self.queue.hand_over();
    }

    /// A write that may not wait: it goes if nobody has taken it.
    fn write_at_once(&self) {
        let new = || Ticket::new(WriteOptions::default(), WriteBatch::new());
        match self.queue.lead_or_join(new) {
            None => {
                self.alone(|| self.commit(1));
                self.queue.hand_over();
            }
            Some(ticket) if self.queue.withdraw(&ticket) => self.commit(1),
            Some(ticket) if ticket.wait().is_some() => {}
            Some(ticket) => self.commit_group_of(&ticket),
        }
    }

    /// The lead alone, without a write.
    fn lead(&self) {
        self.queue.take_lead();
        self.alone(|| {});
        self.queue.hand_over();
    }
}

fn together(place: &Arc<Place>, first: fn(&Place), others: &[fn(&Place)]) {
    let start = |&work: &fn(&Place)| {
        let place = Arc::clone(place);
        thread::spawn("works", move || work(&place))
    };
    let threads: Vec<_> = others.iter().map(start).collect();
    first(place);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    // Nobody is left behind, and the lead is free.
    assert!(place.queue.waiting.lock().is_empty());
    assert!(place.queue.lead_or_join(|| panic!("somebody leads")).is_none());
}

/// Of two writers each is committed once, by one leader at a time, in every schedule.
#[test]
fn two_writers_are_committed_once() {
    explore_all("two writers", || {
        let place = Arc::new(Place::default());
        together(&place, Place::write, &[Place::write]);
        assert_eq!(place.committed.load(Ordering::Relaxed), 2);
    });
}

/// As much holds for more of them, beside one who wants only the lead.
#[test]
fn writers_and_who_takes_the_lead_come_to_their_ends() {
    explore("writers and a lead", |_| {
        let place = Arc::new(Place::default());
        together(&place, Place::write, &[Place::lead, Place::write, Place::write]);
        assert_eq!(place.committed.load(Ordering::Relaxed), 3);
    });
}

/// A writer that goes while others wait keeps nobody waiting.
#[test]
fn a_writer_that_gives_up_leaves_the_lead_to_others() {
    explore("a writer that gives up", |_| {
        let place = Arc::new(Place::default());
        together(&place, Place::write, &[Place::write_at_once, Place::write]);
        assert_eq!(place.committed.load(Ordering::Relaxed), 3, "one that gave up counts");
    });
}
