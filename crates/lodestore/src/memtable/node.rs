//! Nodes of the tree: sorted words that one thread adds to while others read.
//!
//! A word holds four key bytes (the head) and a reference: to an entry in a
//! leaf, to a child in an inner node. The four bytes are those that follow the
//! prefix of the node, which is chosen when the node is built. Keys outside of
//! the prefix get the smallest or the largest head, so heads always ascend
//! with keys and "equal" only means that the keys must be asked.
//!
//! Words move to the right only: the writer copies each word one place
//! up, from the right end down to the gap, then fills the gap. At
//! any instant every word is there, one perhaps twice in neighbouring places.
//! So what one place holds only ever becomes smaller, and a reader that has
//! seen a word below its target at one place, and later one that is not at the
//! next place, has missed nothing that was there when it began.
//!
//! When a leaf gives its upper half to a new neighbour, it first lowers its
//! upper bound, then empties the places from the right end on. Words below the
//! bound stay as described; who looks for more must ask for the bound after
//! it has looked at the words.

use std::mem::MaybeUninit;

use super::arena::Arena;
use super::entry::EntryRef;
use crate::budget::Charge;
use crate::key::common_prefix_bytes;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Set in the reference of an inner node's word if all keys with its head
/// belong to this child or a later one.
pub(super) const HEAD_DECIDES: u32 = 1 << 31;

/// Words in a node. Simulations split more often.
pub(super) const WIDTH: usize = if cfg!(simulation) { 8 } else { 64 };

/// A word of a place that is not used; larger than every other word.
pub(super) const EMPTY: u64 = u64::MAX;

/// Prefixes up to this length are kept in the node itself.
const PREFIX_INLINE_BYTES_MAX: usize = 24;

/// Equal heads beyond which keys are searched by halves.
const TIES_MAX: usize = 4;

/// Where a node begins or ends: nowhere, or before an entry. All but the
/// first bytes of the entry's key may be left out if what remains still parts
/// the keys on both sides.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Bound(u64);

/// What a [`Bound`] says about its entry.
pub(super) struct BoundAt {
    pub(super) entry: EntryRef,
    /// Bytes of the key that count; all if the key is shorter.
    pub(super) key_bytes: usize,
    /// All versions of the key lie above the bound; otherwise it parts them
    /// at the entry's own trailer.
    pub(super) whole_key: bool,
}

impl Bound {
    pub(super) const NONE: Bound = Bound(u64::MAX);
    const WHOLE: u64 = 1 << 63;
    const KEY_BYTES_MAX: u64 = (1 << 31) - 1;

    /// Before all keys from the first `key_bytes` of the entry's key on.
    /// Where those are too many to be noted, the whole key is as good.
    pub(super) fn before_key_of(entry: EntryRef, key_bytes: usize) -> Bound {
        let key_bytes = (key_bytes as u64).min(Self::KEY_BYTES_MAX);
        Bound(Self::WHOLE | key_bytes << 32 | u64::from(entry))
    }

    /// Before this very entry; older and newer versions are parted.
    pub(super) fn before(entry: EntryRef) -> Bound {
        Bound(Self::KEY_BYTES_MAX << 32 | u64::from(entry))
    }

    #[inline]
    pub(super) fn get(self) -> Option<BoundAt> {
        let key_bytes = match self.0 >> 32 & Self::KEY_BYTES_MAX {
            Self::KEY_BYTES_MAX => usize::MAX,
            bytes => bytes as usize,
        };
        let whole_key = self.0 & Self::WHOLE != 0;
        (self != Bound::NONE).then_some(BoundAt { entry: self.0 as u32, key_bytes, whole_key })
    }
}

#[inline]
pub(super) fn word(head: u32, reference: u32) -> u64 {
    u64::from(head) << 32 | u64::from(reference)
}

#[inline]
pub(super) fn head_of(word: u64) -> u32 {
    (word >> 32) as u32
}

#[inline]
pub(super) fn reference_of(word: u64) -> u32 {
    word as u32
}

/// The bytes that all keys of a node were thought to begin with when it was
/// built.
#[derive(Clone, Copy)]
pub(super) struct Prefix<'a>(pub(super) &'a [u8]);

impl Prefix<'_> {
    /// The head of `key`: see the module.
    #[inline]
    pub(super) fn head(self, key: &[u8]) -> u32 {
        match key.split_at_checked(self.0.len()) {
            Some((start, rest)) if same_bytes(start, self.0) => first_four(rest),
            _ => self.head_outside(key),
        }
    }

    /// True if every key with the same head as `low` is at or above it, so
    /// that the head alone decides.
    pub(super) fn head_decides(self, low: &[u8]) -> bool {
        // Zeros at the end look like absent bytes, and a head of zero may
        // belong to a key below the prefix.
        low.len() > self.0.len()
            && low.len() <= self.0.len() + 4
            && low.starts_with(self.0)
            && low.last() != Some(&0)
    }

    #[cold]
    fn head_outside(self, key: &[u8]) -> u32 {
        if key < self.0 { 0 } else { u32::MAX }
    }
}

#[inline]
fn first_four(bytes: &[u8]) -> u32 {
    match bytes.first_chunk::<4>() {
        Some(bytes) => u32::from_be_bytes(*bytes),
        None => {
            bytes.iter().enumerate().fold(0, |head, (i, &b)| head | u32::from(b) << (24 - 8 * i))
        }
    }
}

/// Equality of short strings of equal length, without a call.
#[inline]
fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    debug_assert_eq!(a.len(), b.len());
    if a.len() > 16 {
        return a == b;
    }
    let eight = |s: &[u8], at: usize| u64::from_ne_bytes(s[at..at + 8].try_into().expect("eight"));
    if a.len() >= 8 {
        let last = a.len() - 8;
        return eight(a, 0) == eight(b, 0) && eight(a, last) == eight(b, last);
    }
    a.iter().zip(b).all(|(x, y)| x == y)
}

/// A node; see the module.
#[repr(C, align(64))]
pub(super) struct Node {
    low: Bound,
    high: AtomicU64,
    /// Places in use; only the writer reads it.
    used: AtomicUsize,
    prefix: *const u8,
    prefix_bytes: u32,
    level: u32,
    prefix_inline: MaybeUninit<[u8; PREFIX_INLINE_BYTES_MAX]>,
    words: [AtomicU64; WIDTH],
}

/// What [`Node::search`] found.
pub(super) struct Found {
    /// Words below the target.
    pub(super) index: usize,
    /// The word just below the target; `EMPTY` if there is none.
    pub(super) below: u64,
    /// The first word not below the target; `EMPTY` if there is none.
    pub(super) at: u64,
}

impl Node {
    /// Zero for a leaf.
    #[inline]
    pub(super) fn level(&self) -> u32 {
        self.level
    }

    /// No entry below this node is before it.
    #[inline]
    pub(super) fn low(&self) -> Bound {
        self.low
    }

    /// All entries below this node are before it.
    #[inline]
    pub(super) fn high(&self) -> Bound {
        Bound(self.high.load(Ordering::Acquire))
    }

    /// Lowers the upper bound: what is above it has moved, and can be found.
    pub(super) fn set_high(&self, high: Bound) {
        self.high.store(high.0, Ordering::Release);
    }

    #[inline]
    pub(super) fn prefix(&self) -> Prefix<'_> {
        // SAFETY: the pointer leads to this many bytes, in this node or in an
        // entry, and both live as long as the tree and never move.
        Prefix(unsafe { std::slice::from_raw_parts(self.prefix, self.prefix_bytes as usize) })
    }

    #[inline]
    pub(super) fn load(&self, index: usize) -> u64 {
        self.words[index].load(Ordering::Acquire)
    }

    /// The word at `index`, `EMPTY` behind the last place.
    #[inline]
    pub(super) fn load_or_empty(&self, index: usize) -> u64 {
        self.words.get(index).map_or(EMPTY, |word| word.load(Ordering::Acquire))
    }

    /// Places in use, as the writer knows them.
    #[inline]
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.used() == WIDTH
    }

    /// Has all cache lines fetched at once; a search would meet them one
    /// after the other.
    #[inline]
    pub(super) fn prefetch(node: *const Node) {
        for line in 0..size_of::<Node>() / 64 {
            crate::prefetch::prefetch(node.cast::<u8>().wrapping_add(64 * line));
        }
    }

    /// Finds the place of a target with head `head`. Of words with the same
    /// head, `is_below` tells whether they are below the target.
    #[inline]
    pub(super) fn search(&self, head: u32, is_below: impl Fn(u32) -> bool) -> Found {
        let mut index = self.below_head(head);
        let tied = |word: u64| word != EMPTY && head_of(word) == head;
        if tied(self.load_or_empty(index + TIES_MAX)) {
            index = self.narrow(index, head, &is_below);
        }
        let mut below = if index > 0 { self.load(index - 1) } else { EMPTY };
        loop {
            let at = self.load_or_empty(index);
            let passed = at != EMPTY
                && (head_of(at) < head || head_of(at) == head && is_below(reference_of(at)));
            if !passed {
                return Found { index, below, at };
            }
            below = at;
            index += 1;
        }
    }

    /// The last word, and its place.
    pub(super) fn last(&self) -> Option<(usize, u64)> {
        let mut index = WIDTH - self.words.iter().rev().take_while(|w| is_empty(w)).count();
        let mut last = if index > 0 { self.load(index - 1) } else { EMPTY };
        loop {
            let at = self.load_or_empty(index);
            if at == EMPTY {
                return index.checked_sub(1).map(|i| (i, last));
            }
            last = at;
            index += 1;
        }
    }

    /// Words with a smaller head, by halving without branches.
    #[inline]
    fn below_head(&self, head: u32) -> usize {
        let target = word(head, 0);
        let mut index = 0;
        let mut step = WIDTH / 2;
        while step > 0 {
            index += step * usize::from(self.load(index + step - 1) < target);
            step /= 2;
        }
        index + usize::from(self.load(index) < target)
    }

    /// Moves up from `index` among many equal heads, by halving after a look
    /// at the first. Every place below the result was seen to be below the
    /// target.
    #[cold]
    fn narrow(&self, index: usize, head: u32, is_below: &impl Fn(u32) -> bool) -> usize {
        let (mut from, mut to) = (index, WIDTH);
        // The newest version of a key is its first, and what is mostly wanted.
        let mut middle = index;
        while from < to {
            let at = self.load(middle);
            let passed = at != EMPTY
                && (head_of(at) < head || head_of(at) == head && is_below(reference_of(at)));
            if passed {
                from = middle + 1
            } else {
                to = middle
            }
            middle = from.midpoint(to);
        }
        from
    }

    /// Puts `word` at `index`; what is there and above moves up. Only the
    /// writer may call this, and only if there is room.
    #[inline]
    pub(super) fn insert(&self, index: usize, word: u64) {
        let used = self.used();
        let mut at = used;
        while at > index {
            let moved = self.words[at - 1].load(Ordering::Relaxed);
            self.words[at].store(moved, Ordering::Release);
            at -= 1;
        }
        self.words[index].store(word, Ordering::Release);
        self.used.store(used + 1, Ordering::Relaxed);
    }

    /// Empties the places from `kept` on. Only the writer may call this, after
    /// it has lowered the upper bound.
    pub(super) fn truncate(&self, kept: usize) {
        for at in (kept..self.used()).rev() {
            self.words[at].store(EMPTY, Ordering::Release);
        }
        self.used.store(kept, Ordering::Relaxed);
    }

    /// Replaces the word at `index` by one for the same bound. Only the writer
    /// may call this.
    pub(super) fn replace(&self, index: usize, word: u64) {
        self.words[index].store(word, Ordering::Release);
    }

    /// The words in use. Only the writer may call this.
    pub(super) fn to_vec(&self) -> Vec<u64> {
        self.words[..self.used()].iter().map(|word| word.load(Ordering::Relaxed)).collect()
    }
}

fn is_empty(word: &AtomicU64) -> bool {
    word.load(Ordering::Acquire) == EMPTY
}

/// The home of nodes.
pub(super) struct Nodes {
    arena: Arena<{ size_of::<Node>() }, 12>,
}

impl Nodes {
    pub(super) fn new(memory: &Charge) -> Nodes {
        Nodes { arena: Arena::new(memory) }
    }

    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.arena.bytes()
    }

    /// See [`Arena::seal`].
    ///
    /// # Safety
    /// Only the writer may call this.
    pub(super) unsafe fn seal(&self) {
        // SAFETY: the caller is the writer.
        unsafe { self.arena.seal() };
    }

    /// The node that `reference` names.
    ///
    /// # Safety
    /// `reference` came from `add` and was received as the arena demands.
    #[inline]
    pub(super) unsafe fn get(&self, reference: u32) -> &Node {
        // SAFETY: `add` built the node completely; it never moves.
        unsafe { &*self.arena.at(reference).cast::<Node>() }
    }

    /// Builds a node with `words`, in order, whose heads follow `prefix`.
    ///
    /// # Safety
    /// No other thread adds at the same time, and `prefix` lies in an entry or
    /// a node of the same tree.
    pub(super) unsafe fn add(
        &self,
        level: u32,
        (low, high): (Bound, Bound),
        prefix: Prefix<'_>,
        words: &[u64],
    ) -> u32 {
        // SAFETY: the caller is the only one to take.
        let (reference, piece) = unsafe { self.arena.take(size_of::<Node>()) };
        let node = piece.cast::<Node>();
        let mut inline = [0; PREFIX_INLINE_BYTES_MAX];
        let mut start = prefix.0.as_ptr();
        if let Some(inline) = inline.get_mut(..prefix.0.len()) {
            inline.copy_from_slice(prefix.0);
            start = piece.wrapping_add(std::mem::offset_of!(Node, prefix_inline));
        }
        let built = Node {
            low,
            high: AtomicU64::new(high.0),
            used: AtomicUsize::new(words.len()),
            prefix: start,
            prefix_bytes: prefix.0.len() as u32,
            level,
            prefix_inline: MaybeUninit::new(inline),
            words: std::array::from_fn(|i| AtomicU64::new(words.get(i).copied().unwrap_or(EMPTY))),
        };
        // SAFETY: the piece has the size and alignment of a node.
        unsafe { node.write(built) };
        debug_assert_eq!(reference & HEAD_DECIDES, 0, "the arena gives out fewer references");
        reference
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        if std::mem::needs_drop::<Node>() {
            // SAFETY: every unit given out is a node, and nobody reads now.
            unsafe { self.arena.for_each_unit(|unit| unit.cast::<Node>().drop_in_place()) };
        }
    }
}

/// The prefix that tells the most about keys from `first` to `last`.
pub(super) fn shared_prefix<'a>(first: &'a [u8], last: &[u8]) -> Prefix<'a> {
    Prefix(&first[..common_prefix_bytes(first, last)])
}
