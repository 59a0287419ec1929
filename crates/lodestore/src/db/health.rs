//! Whether writing goes on: the first failure after which it must not is kept
//! until `resume`.

use std::io::ErrorKind;

use crate::error::{Error, Result};
use crate::events::{Event, Events};
use crate::fs::is_out_of_descriptors;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};

/// The failure that makes the database read-only, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Health {
    failed: AtomicBool,
    cause: Mutex<Option<Error>>,
    events: Events,
}

impl Health {
    pub(crate) fn new(events: &Events) -> Health {
        Health { events: events.clone(), ..Health::default() }
    }

    /// # Errors
    /// `ReadOnly` with the failure that caused it.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if !self.failed.load(Ordering::Acquire) {
            return Ok(());
        }
        match &*self.cause.lock() {
            Some(cause) => Err(Error::ReadOnly { cause: Box::new(cause.clone()) }),
            None => Ok(()),
        }
    }

    /// Makes the database read-only because of `cause`; the first one stays.
    pub(crate) fn fail(&self, cause: Error) {
        let mut kept = self.cause.lock();
        if kept.is_none() {
            self.events.tell(Event::BecameReadOnly { error: &cause });
            *kept = Some(cause);
        }
        self.failed.store(true, Ordering::Release);
    }

    /// [`Health::fail`], unless the failure may pass by itself.
    pub(crate) fn take(&self, error: &Error) {
        if !may_pass(error) {
            self.fail(error.clone());
        }
    }

    /// Lets writing go on.
    pub(crate) fn clear(&self) {
        // Under the lock: a failure that comes meanwhile is not to be unsaid.
        let mut kept = self.cause.lock();
        *kept = None;
        self.failed.store(false, Ordering::Release);
    }
}

/// True for failures that may go away without anybody's doing: space returns,
/// descriptors are closed. Everything else needs `resume`.
pub(crate) fn may_pass(error: &Error) -> bool {
    let Error::Io { source, during, .. } = error else { return false };
    // Nothing was synced, nor tried: there was no descriptor to do it with.
    if is_out_of_descriptors(source) {
        return true;
    }
    // After a failed sync nothing is known of what is on disk, whatever the
    // reason given.
    let is_sync = during.contains("sync");
    !is_sync && matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

#[cfg(all(test, simulation))]
mod simulation;
