//! A B+tree of entries that one thread adds to while others read.
//!
//! Within a node, words move as `node` says. A full leaf gives its upper half
//! to a new neighbour, which the parent learns of first. A full inner node,
//! and a leaf that needs other heads, is never changed again: new nodes take
//! its place, and whoever still reads the old one finds in it all that was
//! there when it was current. Nodes stay until the tree goes, so a reader
//! pins nothing and waits for nothing.
//!
//! There are no links between leaves: a reader that reaches the end of a leaf
//! descends to the leaf that begins where this one ends. Bounds never vanish,
//! so this is right from an old leaf too.

mod grow;

use std::cmp::Ordering as Order;

use super::entry::{Entries, Entry, EntryRef};
use super::node::{
    Bound, EMPTY, Found, HEAD_DECIDES, Node, Nodes, Prefix, WIDTH, head_of, reference_of,
};
use crate::budget::Charge;
use crate::key::{KeyOrder, TRAILER_NEWEST, Trailer};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Entries that a walk has fetched ahead.
const PREFETCH_ENTRIES: usize = 6;

/// See the module.
pub(super) struct Tree {
    order: KeyOrder,
    entries: Entries,
    nodes: Nodes,
    root: AtomicU32,
    /// Whoever knows a published number sees all that were counted before it.
    count: AtomicU64,
    /// How often an upper bound was about to be lowered. A search that meets
    /// two different numbers may have come too late to its leaf.
    splits: AtomicU64,
}

/// What a search in the leaf that holds the target's place found.
struct Landing<'a> {
    leaf: &'a Node,
    found: Found,
    high: Bound,
}

/// An entry's place: its word, and where that was when it was last seen.
#[derive(Clone, Copy)]
pub(super) struct Position<'a> {
    leaf: &'a Node,
    index: usize,
    word: u64,
}

/// Where the writer inserted last: an ascending load goes on there.
#[derive(Clone, Copy, Default)]
pub(super) struct Hand(Option<(u32, usize)>);

impl Tree {
    pub(super) fn new(order: KeyOrder, memory: &Charge) -> Tree {
        let nodes = Nodes::new(memory);
        // SAFETY: nobody else knows these nodes yet.
        let root = unsafe { nodes.add(0, (Bound::NONE, Bound::NONE), Prefix(b""), &[]) };
        Tree {
            order,
            entries: Entries::new(memory),
            nodes,
            root: AtomicU32::new(root),
            count: AtomicU64::new(0),
            splits: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.entries.bytes() + self.nodes.bytes()
    }

    /// Counts the memory as that of a memtable that takes no more entries.
    ///
    /// # Safety
    /// Only the writer may call this.
    pub(super) unsafe fn seal(&self) {
        // SAFETY: the caller is the writer.
        unsafe {
            self.entries.seal();
            self.nodes.seal();
        }
    }

    #[inline]
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn entry(&self, at: Position<'_>) -> Entry<'_> {
        self.read(reference_of(at.word))
    }

    /// True if the entry's key is `key`; asks the entry only if it may be. Always
    /// within the search that needs it: it is small, and a call of its own takes
    /// 4 % of a lookup.
    #[inline(always)]
    pub(super) fn is_version_of(&self, at: Position<'_>, key: &[u8]) -> bool {
        head_of(at.word) == self.head(at.leaf, key)
            && self.order.compare(self.entry(at).key, key) == Order::Equal
    }

    /// The first entry that is not before `(key, trailer)`.
    #[inline]
    pub(super) fn seek(&self, key: &[u8], trailer: Trailer) -> Option<Position<'_>> {
        let Landing { leaf, found, high } = self.land(key, trailer, Order::is_lt);
        if found.at == EMPTY {
            return self.first_from(high);
        }
        Some(Position { leaf, index: found.index, word: found.at })
    }

    /// The last entry that is not after `(key, trailer)`.
    pub(super) fn seek_for_prev(&self, key: &[u8], trailer: Trailer) -> Option<Position<'_>> {
        let Landing { leaf, found, .. } = self.land(key, trailer, Order::is_le);
        match found.index.checked_sub(1) {
            Some(index) => Some(Position { leaf, index, word: found.below }),
            None => self.last_before(leaf.low()),
        }
    }

    pub(super) fn first(&self) -> Option<Position<'_>> {
        let mut leaf = self.root();
        while leaf.level() > 0 {
            leaf = self.child(reference_of(leaf.load(0)));
        }
        let word = leaf.load(0);
        (word != EMPTY).then_some(Position { leaf, index: 0, word })
    }

    pub(super) fn last(&self) -> Option<Position<'_>> {
        loop {
            let mut node = self.root();
            while node.level() > 0 {
                let (_, word) = node.last().expect("an inner node has children");
                node = self.child(reference_of(word));
            }
            let last = node.last();
            if node.high() == Bound::NONE {
                return last.map(|(index, word)| Position { leaf: node, index, word });
            }
        }
    }

    /// The entry after `at`.
    #[inline]
    pub(super) fn next<'a>(&'a self, mut at: Position<'a>) -> Option<Position<'a>> {
        loop {
            let word = at.leaf.load_or_empty(at.index + 1);
            if at.leaf.load(at.index) != at.word {
                at = self.find_again(at);
            } else if word == at.word {
                at.index += 1; // on its way to the right
            } else if word != EMPTY {
                self.prefetch_at(at.leaf, at.index + PREFETCH_ENTRIES);
                return Some(Position { leaf: at.leaf, index: at.index + 1, word });
            } else {
                let high = at.leaf.high();
                let here = self.entry(at);
                if self.is_below_bound(here.key, here.trailer, high) {
                    return self.first_from(high);
                }
                at = self.find_again(at); // about to be given away
            }
        }
    }

    /// The entry before `at`.
    #[inline]
    pub(super) fn prev<'a>(&'a self, mut at: Position<'a>) -> Option<Position<'a>> {
        loop {
            let before = at.index.checked_sub(1).map(|i| at.leaf.load(i));
            if at.leaf.load(at.index) != at.word {
                at = self.find_again(at);
                continue;
            }
            let Some(word) = before else { return self.last_before(at.leaf.low()) };
            at.index -= 1;
            if word != at.word {
                self.prefetch_at(at.leaf, at.index.wrapping_sub(PREFETCH_ENTRIES));
                return Some(Position { leaf: at.leaf, index: at.index, word });
            }
        }
    }

    /// Where the word of `at` is now: to the right of where it was, or in
    /// another leaf.
    #[cold]
    fn find_again<'a>(&'a self, at: Position<'a>) -> Position<'a> {
        let here = self.entry(at);
        if self.is_below_bound(here.key, here.trailer, at.leaf.high()) {
            for index in at.index..WIDTH {
                if at.leaf.load(index) == at.word {
                    return Position { index, ..at };
                }
            }
        }
        self.seek(here.key, here.trailer).expect("entries never vanish")
    }

    /// The first entry of the leaf that begins at `low`.
    fn first_from(&self, low: Bound) -> Option<Position<'_>> {
        let (key, trailer) = self.target_of(low)?;
        let leaf = self.leaf_of(key, trailer, Order::is_le);
        for ahead in 1..PREFETCH_ENTRIES {
            self.prefetch_at(leaf, ahead);
        }
        // A leaf keeps its first word, and only the first leaf begins empty.
        Some(Position { leaf, index: 0, word: leaf.load(0) })
    }

    /// The last entry before `high`.
    fn last_before(&self, mut high: Bound) -> Option<Position<'_>> {
        loop {
            let (key, trailer) = self.target_of(high)?;
            let leaf = self.leaf_of(key, trailer, Order::is_lt);
            // The last word will not do: while the leaf is being split, words
            // from `high` on are still there.
            let found = self.search_leaf(leaf, key, trailer, Order::is_lt);
            let own = leaf.high();
            if own != high && !self.is_below_bound(key, trailer, own) {
                continue; // split again below `high`: what was given away counts too
            }
            let Some(index) = found.index.checked_sub(1) else {
                // This leaf is being replaced by two, of which the lower one has
                // nothing but the entry that is being added.
                high = leaf.low();
                continue;
            };
            for ahead in 1..PREFETCH_ENTRIES {
                self.prefetch_at(leaf, index.wrapping_sub(ahead));
            }
            return Some(Position { leaf, index, word: found.below });
        }
    }

    /// Searches the leaf that holds the place of `(key, trailer)`. A word is
    /// below if it compares with the target as `is_below` wants.
    #[inline(always)] // here and below: with comparisons that are known it is half as long
    fn land(&self, key: &[u8], trailer: Trailer, is_below: fn(Order) -> bool) -> Landing<'_> {
        loop {
            let splits = self.splits.load(Ordering::Acquire);
            let leaf = self.leaf_of(key, trailer, Order::is_le);
            let found = self.search_leaf(leaf, key, trailer, is_below);
            let high = leaf.high();
            // Whoever sees an emptied place sees the number that was stored
            // before, and the lowered bound.
            if self.splits.load(Ordering::Acquire) == splits
                || self.is_below_bound(key, trailer, high)
            {
                return Landing { leaf, found, high };
            }
        }
    }

    #[inline]
    fn is_below_bound(&self, key: &[u8], trailer: Trailer, high: Bound) -> bool {
        high == Bound::NONE || self.compare_bound(high, key, trailer).is_gt()
    }

    /// The last leaf whose lower bound compares with the target as `accepts`
    /// wants.
    #[inline(always)]
    fn leaf_of(&self, key: &[u8], trailer: Trailer, accepts: fn(Order) -> bool) -> &Node {
        let mut node = self.root();
        while node.level() > 0 {
            let found = self.search_inner(node, key, trailer, accepts);
            node = self.descend(node, found.below);
        }
        node
    }

    #[inline]
    fn search_inner(
        &self,
        node: &Node,
        key: &[u8],
        trailer: Trailer,
        accepts: impl Fn(Order) -> bool,
    ) -> Found {
        node.search(self.head(node, key), |child| {
            // With equal heads the order is "less" or "equal"; which of them
            // matters only to those who refuse "equal".
            child & HEAD_DECIDES != 0 && accepts(Order::Equal)
                || accepts(self.compare_bound(self.child(child).low(), key, trailer))
        })
    }

    #[inline(always)]
    fn search_leaf(
        &self,
        leaf: &Node,
        key: &[u8],
        trailer: Trailer,
        accepts: impl Fn(Order) -> bool,
    ) -> Found {
        leaf.search(self.head(leaf, key), |entry| accepts(self.compare_entry(entry, key, trailer)))
    }

    #[inline]
    fn descend(&self, parent: &Node, word: u64) -> &Node {
        let child = self.child(reference_of(word));
        if parent.level() == 1 {
            Node::prefetch(child);
        }
        child
    }

    #[inline]
    fn compare_entry(&self, entry: EntryRef, key: &[u8], trailer: Trailer) -> Order {
        let entry = self.read(entry);
        self.order.compare_entries((entry.key, entry.trailer), (key, trailer))
    }

    /// How a lower bound compares with a target.
    #[inline]
    fn compare_bound(&self, low: Bound, key: &[u8], trailer: Trailer) -> Order {
        match self.target_of(low) {
            Some(low) => self.order.compare_entries(low, (key, trailer)),
            None => Order::Less,
        }
    }

    #[inline]
    fn target_of(&self, bound: Bound) -> Option<(&[u8], Trailer)> {
        let bound = bound.get()?;
        let entry = self.read(bound.entry);
        let key = entry.key.get(..bound.key_bytes).unwrap_or(entry.key);
        Some((key, if bound.whole_key { TRAILER_NEWEST } else { entry.trailer }))
    }

    #[inline]
    fn head(&self, node: &Node, key: &[u8]) -> u32 {
        if self.order.is_bytewise() { node.prefix().head(key) } else { 0 }
    }

    #[inline]
    fn root(&self) -> &Node {
        self.node(self.root.load(Ordering::Acquire))
    }

    /// The node that the reference in an inner node's word names.
    #[inline]
    fn child(&self, reference: u32) -> &Node {
        self.node(reference & !HEAD_DECIDES)
    }

    #[inline]
    fn node(&self, reference: u32) -> &Node {
        // SAFETY: references to nodes are kept only in the root, which is
        // stored with release and loaded with acquire, and in words of inner
        // nodes, which are too.
        unsafe { self.nodes.get(reference) }
    }

    #[inline]
    fn read(&self, entry: EntryRef) -> Entry<'_> {
        // SAFETY: as for nodes; bounds are written before the node that has
        // them is published, or stored with release.
        unsafe { self.entries.read(entry) }
    }

    #[inline]
    fn prefetch_at(&self, leaf: &Node, index: usize) {
        let word = leaf.load_or_empty(index);
        if word != EMPTY {
            // SAFETY: as in `read`.
            unsafe { self.entries.prefetch(reference_of(word)) };
        }
    }
}
