//! Going to smaller keys: all versions of a key are met, oldest first, before it
//! is known what it is.

use crate::coverage::Coverage;
use crate::cursor::Cursor;
use crate::gaps::Direction;
use crate::key::{Kind, kind_of, sequence_of};

use super::passing::Run;
use super::{HIDDEN_STEPS_MAX, Place, VisibleCursor, unreadable_kind};

/// What the versions of a key come to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Resolved {
    /// The walk ends: the key exists and is kept, or something failed.
    End,
    /// A range delete hides the newest version that is not too new, so nothing
    /// is there.
    Hidden,
    /// Nothing is there for another reason. Where all versions are too new,
    /// nobody has asked for range deletes here.
    Absent,
}

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
        let mut hidden = 0;
        while self.inner.valid() {
            if self.is_before_lower() {
                return self.stop();
            }
            match self.resolve_key_in_reverse() {
                Resolved::End => return,
                Resolved::Hidden => {
                    hidden += 1;
                    self.pass_hidden_reverse(hidden);
                }
                Resolved::Absent => {}
            }
            self.pass_reverse(run);
        }
        self.stop();
    }

    /// After `count` keys that range deletes hide, at the last of them: passes
    /// over what is deleted with it.
    fn pass_hidden_reverse(&mut self, count: usize) {
        let gap = self.coverage.as_ref().and_then(Coverage::gap);
        if let Some(gap) = gap.filter(|_| count.is_multiple_of(HIDDEN_STEPS_MAX)) {
            self.inner.pass_reverse(gap.older_from, gap.start);
        }
    }

    fn is_before_lower(&self) -> bool {
        match &self.bounds.lower {
            Some(lower) => self.order.compare(self.inner.user_key(), lower).is_lt(),
            None => false,
        }
    }

    /// Walks over all versions of the key here, oldest first.
    fn resolve_key_in_reverse(&mut self) -> Resolved {
        self.long_run.saw_newer_value = false;
        self.key.clear();
        self.key.extend_from_slice(self.inner.user_key());
        let (mut exists, mut is_hidden) = (false, false);
        let mut operands: Vec<Vec<u8>> = Vec::new();
        loop {
            let trailer = self.inner.trailer();
            self.long_run.saw_newer_value |= self.is_newer_value(trailer);
            let is_old = sequence_of(trailer) <= self.sequence;
            if is_old {
                match self.is_hidden() {
                    Ok(hidden) => is_hidden = hidden,
                    Err(error) => {
                        self.fail(error);
                        return Resolved::End;
                    }
                }
            }
            if is_old && !is_hidden {
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
                        return Resolved::End;
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
            return Resolved::End;
        }
        if !operands.is_empty() {
            let base = exists.then(|| std::mem::take(&mut self.value));
            self.keep_merged(base, &operands, Direction::Reverse);
            return Resolved::End;
        }
        if exists {
            self.place = Place::Kept(Direction::Reverse);
            return Resolved::End;
        }
        if is_hidden { Resolved::Hidden } else { Resolved::Absent }
    }
}
