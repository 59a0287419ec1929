//! Who commits: one writer at a time, and who waits for it.
//!
//! A word says whether anybody leads and whether anybody waits for the leader, so
//! that a writer who is alone takes the lead and gives it back by one atomic step
//! each. The list of those who wait has a lock.
//! Invariants: only who holds that lock makes the word `AWAITED`, or frees it
//! afterwards; while it is `AWAITED`, the leader finds the list when it is done.

use crate::batch::WriteBatch;
use crate::error::Result;
use crate::key::SequenceNumber;
use crate::options::WriteOptions;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Arc, Condvar, Mutex};

/// A group is closed at this size, so that its first writer does not wait
/// long for the last.
pub(crate) const GROUP_BYTES_MAX: usize = 1 << 20;

/// Nobody leads, and nobody waits.
const FREE: u32 = 0;
/// Somebody leads; nobody waits.
const LED: u32 = 1;
/// Somebody leads, and somebody waits or has waited.
const AWAITED: u32 = 2;

/// Writers waiting for the leader.
#[derive(Default)]
pub(crate) struct CommitQueue {
    state: AtomicU32,
    waiting: Mutex<Vec<Arc<Ticket>>>,
}

/// A waiting writer: its batch goes in, its outcome and the batch come back.
pub(crate) struct Ticket {
    pub(crate) state: Mutex<TicketState>,
    pub(crate) changed: Condvar,
}

pub(crate) struct TicketState {
    pub(crate) batch: WriteBatch,
    pub(crate) options: WriteOptions,
    /// Set when the leader is done and this writer is to lead.
    pub(crate) leads: bool,
    /// It brings no batch: it waits for the lead only.
    wants_lead: bool,
    pub(crate) outcome: Option<Result<SequenceNumber>>,
}

impl Ticket {
    pub(crate) fn new(options: WriteOptions, batch: WriteBatch) -> Arc<Ticket> {
        let state = TicketState { batch, options, leads: false, wants_lead: false, outcome: None };
        Arc::new(Ticket { state: Mutex::new(state), changed: Condvar::new() })
    }

    fn for_the_lead() -> Arc<Ticket> {
        let ticket = Ticket::new(WriteOptions::default(), WriteBatch::new());
        ticket.state.lock().wants_lead = true;
        ticket
    }

    /// Waits for an outcome or the lead; `None` means the lead.
    pub(crate) fn wait(&self) -> Option<Result<SequenceNumber>> {
        let mut state = self.state.lock();
        while state.outcome.is_none() && !state.leads {
            state = self.changed.wait(state);
        }
        state.outcome.take()
    }

    pub(crate) fn finish(&self, batch: WriteBatch, outcome: Result<SequenceNumber>) {
        let mut state = self.state.lock();
        state.batch = batch;
        state.outcome = Some(outcome);
        self.changed.notify_one();
    }
}

impl CommitQueue {
    /// Makes the caller the leader, or the last of those who wait for the leader,
    /// with the ticket that it is given then.
    #[inline]
    pub(crate) fn lead_or_join(&self, ticket: impl FnOnce() -> Arc<Ticket>) -> Option<Arc<Ticket>> {
        if self.try_lead() { None } else { self.join(ticket) }
    }

    /// Makes the caller the leader if there is none. Others who wait are before it: where
    /// any do, somebody leads.
    #[inline]
    fn try_lead(&self) -> bool {
        self.state.compare_exchange(FREE, LED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn join(&self, ticket: impl FnOnce() -> Arc<Ticket>) -> Option<Arc<Ticket>> {
        let mut waiting = self.waiting.lock();
        loop {
            let relaxed = Ordering::Relaxed;
            match self.state.compare_exchange(LED, AWAITED, relaxed, relaxed) {
                Ok(_) | Err(AWAITED) => {
                    let ticket = ticket();
                    waiting.push(Arc::clone(&ticket));
                    return Some(ticket);
                }
                // The leader has gone meanwhile, and another may have come.
                Err(_) if self.try_lead() => return None,
                Err(_) => {}
            }
        }
    }

    /// Ends the caller's lead; the first of those who wait has it then.
    #[inline]
    pub(crate) fn hand_over(&self) {
        let freed = self.state.compare_exchange(LED, FREE, Ordering::Release, Ordering::Relaxed);
        if freed.is_err() {
            self.hand_over_to_first();
        }
    }

    #[cold]
    fn hand_over_to_first(&self) {
        let waiting = self.waiting.lock();
        match waiting.first() {
            None => self.state.store(FREE, Ordering::Release),
            Some(ticket) => {
                ticket.state.lock().leads = true;
                ticket.changed.notify_one();
            }
        }
    }

    /// Waits for the lead, and takes it.
    pub(crate) fn take_lead(&self) {
        let Some(ticket) = self.lead_or_join(Ticket::for_the_lead) else { return };
        let outcome = ticket.wait();
        assert!(outcome.is_none(), "a leader takes only batches out of the queue");
        self.waiting.lock().retain(|other| !Arc::ptr_eq(other, &ticket));
    }

    /// Takes a waiting writer out; false if a leader has it, or it leads.
    pub(crate) fn withdraw(&self, ticket: &Arc<Ticket>) -> bool {
        let mut waiting = self.waiting.lock();
        let place = waiting.iter().position(|other| Arc::ptr_eq(other, ticket));
        match place {
            Some(place) if !ticket.state.lock().leads => {
                waiting.remove(place);
                true
            }
            _ => false,
        }
    }

    /// The writers at the front of the queue, up to the size of a group.
    pub(crate) fn take_group(&self) -> Vec<Arc<Ticket>> {
        let mut waiting = self.waiting.lock();
        let mut bytes = 0;
        let mut count = 0;
        for ticket in waiting.iter() {
            let state = ticket.state.lock();
            bytes += state.batch.bytes();
            if count > 0 && (bytes > GROUP_BYTES_MAX || state.wants_lead) {
                break;
            }
            count += 1;
        }
        waiting.drain(..count).collect()
    }
}

#[cfg(all(test, simulation))]
mod simulation;
