//! The log as a source: what was written from a sequence number on, for
//! replicas and change feeds; and pins that keep it.

use std::collections::VecDeque;
use std::path::PathBuf;

use crate::batch::WriteBatch;
use crate::error::{Error, Result};
use crate::key::SequenceNumber;
use crate::sync::{Arc, Weak};
use crate::wal::SegmentReader;

use super::engine::Engine;
use super::handle::Handle;
use super::logs::SegmentPlace;

/// Keeps log segments from a sequence number on; dropping it releases them.
#[derive(Debug)]
pub struct LogPin {
    pub(crate) sequence: SequenceNumber,
    pub(crate) engine: Weak<Engine>,
}

impl LogPin {
    /// The first sequence number that is kept.
    pub fn sequence(&self) -> SequenceNumber {
        self.sequence
    }
}

impl Drop for LogPin {
    fn drop(&mut self) {
        if let Some(engine) = self.engine.upgrade() {
            engine.logs.unpin(self.sequence);
            engine.logs.retire(engine.versions.log_number_min());
        }
    }
}

/// Batches in the order in which they were committed. Batches of several
/// writers that were committed together come as one. Where tables were
/// ingested, the iteration ends with [`Error::Missing`]: the log does not hold
/// them, and what follows would not make the same database.
pub struct Updates {
    /// Keeps the segments that are still to be read.
    _pin: LogPin,
    /// Batches that end before this are passed over.
    from: SequenceNumber,
    /// Where the iteration ends: what was visible at its start.
    until: SequenceNumber,
    /// Numbers of ingested tables that are still to be passed.
    gaps: VecDeque<(SequenceNumber, SequenceNumber)>,
    segments: VecDeque<SegmentPlace>,
    reader: Option<(PathBuf, SegmentReader)>,
    done: bool,
    /// Keeps the database open: another opener would remove the segments. Dropped
    /// last: see [`Handle`].
    handle: Arc<Handle>,
}

impl std::fmt::Debug for Updates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Updates").field("from", &self.from).field("until", &self.until).finish()
    }
}

impl Updates {
    pub(crate) fn since(handle: &Arc<Handle>, from: SequenceNumber) -> Result<Updates> {
        let engine = &handle.engine;
        if !engine.logging {
            return Err(Error::invalid("updates come from the log, which is off"));
        }
        let pin = engine.logs.pin(engine, from);
        // Under the commit lock the log stands still: what it holds up to here
        // must be found whole.
        let (until, kept_from, segments, gaps) = {
            let commit = engine.commit.lock();
            let (kept_from, mut segments) = engine.logs.segments_since(from);
            if let (Some(live), Some(log)) = (segments.last_mut(), &commit.log) {
                live.sealed_bytes.get_or_insert(log.bytes());
            }
            (commit.last_sequence, kept_from, segments, engine.logs.gaps_since(from))
        };
        if from <= until && kept_from > from.max(1) {
            let kept = match kept_from {
                SequenceNumber::MAX => "nothing of it is kept".to_string(),
                _ => format!("it is kept from {kept_from} on"),
            };
            return Err(Error::missing(format!("the log from sequence number {from}: {kept}")));
        }
        Ok(Updates {
            _pin: pin,
            handle: Arc::clone(handle),
            from,
            until,
            gaps,
            segments: segments.into(),
            reader: None,
            done: false,
        })
    }

    fn open(&self, segment: &SegmentPlace) -> Result<SegmentReader> {
        let fs = &*self.handle.engine.shared.fs;
        let mut reader = SegmentReader::open(fs, &segment.path, segment.number)?;
        if let Some(bytes) = segment.sealed_bytes {
            reader.set_limit(bytes);
        }
        Ok(reader)
    }

    /// The next batch, unless tables were ingested before it: whoever applied
    /// the batches after that would lack what they hold.
    fn next_batch(&mut self) -> Result<Option<(SequenceNumber, WriteBatch)>> {
        let next = self.next_logged()?;
        let next_first = next.as_ref().map_or(SequenceNumber::MAX, |(first, _)| *first);
        match self.gaps.front() {
            Some((first, last)) if *first < next_first => Err(Error::missing(format!(
                "the log of sequence numbers {first} to {last}: they are those of ingested \
                 tables, which no log holds. Begin with a checkpoint made after that"
            ))),
            _ => Ok(next),
        }
    }

    fn next_logged(&mut self) -> Result<Option<(SequenceNumber, WriteBatch)>> {
        loop {
            let Some((path, reader)) = &mut self.reader else {
                let Some(segment) = self.segments.pop_front() else { return Ok(None) };
                self.reader = Some((segment.path.clone(), self.open(&segment)?));
                continue;
            };
            let Some((offset, payload)) = reader.next()? else {
                self.reader = None;
                continue;
            };
            let batch = WriteBatch::from_bytes(payload.to_vec())
                .map_err(|undecodable| undecodable.at(path, offset))?;
            let first = batch.sequence();
            let last = first + u64::from(batch.sequence_count()).max(1) - 1;
            if first > self.until {
                return Ok(None);
            }
            if last >= self.from {
                return Ok(Some((first, batch)));
            }
        }
    }
}

impl Iterator for Updates {
    type Item = Result<(SequenceNumber, WriteBatch)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let item = self.next_batch().transpose();
        self.done = !matches!(item, Some(Ok(_)));
        item
    }
}
