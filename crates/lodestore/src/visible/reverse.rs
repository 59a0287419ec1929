//! Going to smaller keys: all versions of a key are met, oldest first, before it
//! is known what it is.

use crate::cursor::Cursor;
use crate::gaps::Direction;
use crate::key::{Kind, kind_of, sequence_of};

use super::passing::Run;
use super::{HIDDEN_STEPS_MAX, Place, VisibleCursor, unreadable_kind};

impl VisibleCursor {
    /// From where the inner cursor is, finds the key before that exists.
    pub(super) fn settle_reverse(&mut self) {
        let mut run = Run::new();
        self.walk_reverse(&mut run);
        if let Some(steps) = run.long() {
            self.end_run(steps, Direction::Reverse);
        }
    }

    fn walk_reverse(&mut self, run: &mut Run) {
        let mut absent = 0_usize;
        while self.inner.valid() {
            if self.is_before_lower() {
                return self.stop();
            }
            if self.resolve_key_in_reverse() {
                return;
            }
            absent += 1;
            if absent.is_multiple_of(HIDDEN_STEPS_MAX) && !self.pass_hidden(Direction::Reverse) {
                return;
            }
            self.pass_reverse(run);
        }
        self.stop();
    }

    fn is_before_lower(&self) -> bool {
        match &self.bounds.lower {
            Some(lower) => self.order.compare(self.inner.user_key(), lower).is_lt(),
            None => false,
        }
    }

    /// Walks over all versions of the key here, oldest first. True if the walk
    /// ends: the key exists and is kept, or something failed.
    fn resolve_key_in_reverse(&mut self) -> bool {
        self.long_run.saw_newer_value = false;
        self.key.clear();
        self.key.extend_from_slice(self.inner.user_key());
        let mut exists = false;
        let mut operands: Vec<Vec<u8>> = Vec::new();
        loop {
            let trailer = self.inner.trailer();
            self.long_run.saw_newer_value |= self.is_newer_value(trailer);
            let is_seen = match sequence_of(trailer) <= self.sequence {
                true => self.is_hidden().map(|hidden| !hidden),
                false => Ok(false),
            };
            if let Err(error) = is_seen {
                self.fail(error);
                return true;
            }
            if matches!(is_seen, Ok(true)) {
                if !self.order.is_bytewise() {
                    // Equal keys may have other bytes: the newest's count, as
                    // on the way forward.
                    self.key.clear();
                    self.key.extend_from_slice(self.inner.user_key());
                }
                match kind_of(trailer) {
                    Some(Kind::Put) => {
                        exists = true;
                        operands.clear();
                        self.value.clear();
                        self.value.extend_from_slice(self.inner.value());
                    }
                    Some(Kind::Delete | Kind::SingleDelete) => {
                        exists = false;
                        operands.clear();
                    }
                    Some(Kind::Merge) => operands.push(self.inner.value().to_vec()),
                    _ => {
                        self.fail(unreadable_kind(trailer));
                        return true;
                    }
                }
            }
            self.inner.prev();
            if !self.inner.valid() || !self.is_at_key() {
                break;
            }
        }
        if self.inner.status().is_err() {
            self.stop();
            return true;
        }
        if !operands.is_empty() {
            let base = exists.then(|| std::mem::take(&mut self.value));
            self.keep_merged(base, &operands, Direction::Reverse);
            return true;
        }
        if exists {
            self.place = Place::Kept(Direction::Reverse);
        }
        exists
    }
}
