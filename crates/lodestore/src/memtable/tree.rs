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

use std::cmp::Ordering as Order;

use super::entry::{Entries, Entry, EntryRef};
use super::node::{
    Bound, EMPTY, Found, HEAD_DECIDES, Node, Nodes, Prefix, WIDTH, head_of, reference_of,
    shared_prefix, word,
};
use crate::key::{KeyOrder, TRAILER_NEWEST, Trailer, common_prefix_bytes};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Nodes are at least half full but for the outermost, so 2^32 references
/// give a far smaller height.
const HEIGHT_MAX: usize = 16;

/// Entries that a walk has fetched ahead.
const PREFETCH_ENTRIES: usize = 6;

/// See the module.
pub(super) struct Tree {
    order: KeyOrder,
    entries: Entries,
    nodes: Nodes,
    root: AtomicU32,
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

/// The inner nodes from the root to a leaf, and the places of the children
/// that were taken.
struct Path<'a> {
    steps: [Option<(&'a Node, usize)>; HEIGHT_MAX],
    length: usize,
}

impl<'a> Path<'a> {
    fn push(&mut self, node: &'a Node, index: usize) {
        self.steps[self.length] = Some((node, index));
        self.length += 1;
    }

    fn pop(&mut self) -> Option<(&'a Node, usize)> {
        self.length = self.length.checked_sub(1)?;
        self.steps[self.length]
    }
}

// Reading.
impl Tree {
    pub(super) fn new(order: KeyOrder) -> Tree {
        let nodes = Nodes::new();
        // SAFETY: nobody else knows these nodes yet.
        let root = unsafe { nodes.add(0, (Bound::NONE, Bound::NONE), Prefix(b""), &[]) };
        Tree {
            order,
            entries: Entries::new(),
            nodes,
            root: AtomicU32::new(root),
            count: AtomicU64::new(0),
            splits: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(super) fn order(&self) -> &KeyOrder {
        &self.order
    }

    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.entries.bytes() + self.nodes.bytes()
    }

    #[inline]
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn entry(&self, at: Position<'_>) -> Entry<'_> {
        self.read(reference_of(at.word))
    }

    /// True if the entry's key is `key`; asks the entry only if it may be.
    #[inline]
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

    /// The last entry of the leaf that ends at `high`.
    fn last_before(&self, high: Bound) -> Option<Position<'_>> {
        let (key, trailer) = self.target_of(high)?;
        loop {
            let leaf = self.leaf_of(key, trailer, Order::is_lt);
            let (index, word) = leaf.last()?;
            for ahead in 1..PREFETCH_ENTRIES {
                self.prefetch_at(leaf, index.wrapping_sub(ahead));
            }
            if leaf.high() == high {
                return Some(Position { leaf, index, word });
            }
        }
    }

    /// Searches the leaf that holds the place of `(key, trailer)`. A word is
    /// below if it compares with the target as `is_below` wants.
    #[inline]
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
    #[inline]
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

    #[inline]
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

// Writing. One thread at a time may be in these functions.
impl Tree {
    /// Adds an entry.
    ///
    /// # Safety
    /// No other insertion runs at the same time, and `hand` was always passed
    /// to insertions into this tree.
    #[inline]
    pub(super) unsafe fn insert(
        &self,
        hand: &mut Hand,
        key: &[u8],
        trailer: Trailer,
        value: &[u8],
    ) {
        // SAFETY: this is the only thread that adds.
        let entry = unsafe { self.entries.add(key, trailer, value) };
        if !self.insert_at_hand(hand, key, trailer, entry) {
            self.insert_from_root(hand, key, trailer, entry);
        }
        self.count.store(self.count.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// Inserts just behind the last insertion, if the entry belongs there.
    #[inline]
    fn insert_at_hand(
        &self,
        hand: &mut Hand,
        key: &[u8],
        trailer: Trailer,
        entry: EntryRef,
    ) -> bool {
        let Some((leaf, index)) = hand.0 else {
            return false;
        };
        let node = self.node(leaf);
        let head = self.head(node, key);
        let (last, next) = (node.load(index), node.load_or_empty(index + 1));
        let below_next =
            if next == EMPTY { node.high() == Bound::NONE } else { head < head_of(next) };
        let fits = below_next
            && !node.is_full()
            && (head > head_of(last)
                || head == head_of(last)
                    && self.compare_entry(reference_of(last), key, trailer).is_lt());
        if fits {
            node.insert(index + 1, word(head, entry));
            hand.0 = Some((leaf, index + 1));
        }
        fits
    }

    fn insert_from_root(&self, hand: &mut Hand, key: &[u8], trailer: Trailer, entry: EntryRef) {
        let mut path = Path { steps: [None; HEIGHT_MAX], length: 0 };
        let mut reference = self.root.load(Ordering::Relaxed);
        let mut node = self.node(reference);
        while node.level() > 0 {
            let found = self.search_inner(node, key, trailer, Order::is_le);
            path.push(node, found.index - 1);
            reference = reference_of(found.below) & !HEAD_DECIDES;
            node = self.descend(node, found.below);
        }
        let head = self.head(node, key);
        let found = node.search(head, |other| self.compare_entry(other, key, trailer).is_lt());
        if node.is_full() {
            hand.0 = None;
            self.split(&mut path, node, found.index, word(head, entry), None);
        } else {
            node.insert(found.index, word(head, entry));
            hand.0 = Some((reference, found.index));
        }
    }

    /// Splits the full `node` while `new` goes to `index`; the word before it
    /// is replaced by `replaced` if there is one.
    fn split(
        &self,
        path: &mut Path<'_>,
        node: &Node,
        index: usize,
        new: u64,
        replaced: Option<u64>,
    ) {
        let mut words = node.to_vec();
        if let Some(replaced) = replaced {
            words[index - 1] = replaced;
        }
        words.insert(index, new);
        // What ascends leaves full nodes behind; a child that was split in the
        // middle does not.
        let ascends = node.level() == 0 || self.child(reference_of(new)).used() == 1;
        let appends = index == WIDTH && replaced.is_none() && ascends;
        let cut = match index {
            _ if appends => WIDTH,
            0 => 1, // a descending load leaves full nodes behind
            _ => self.cut_of(node, &words),
        };
        let bound = self.bound_at(node, &words, cut);
        if node.level() == 0
            && index > 0
            && !appends
            && self.split_in_place(path, node, (index, new), (cut, bound), &words)
        {
            return;
        }
        if appends {
            let right = self.build(node, (bound, node.high()), &words[cut..]);
            self.install(path, None, right);
            self.lower_high(node, bound);
        } else {
            let left = self.build(node, (node.low(), bound), &words[..cut]);
            let right = self.build(node, (bound, node.high()), &words[cut..]);
            self.install(path, Some(left), right);
        }
    }

    /// Gives the words of a leaf from `cut` on to a new neighbour, unless the
    /// leaf had better be built anew with other heads.
    fn split_in_place(
        &self,
        path: &mut Path<'_>,
        leaf: &Node,
        (index, new): (usize, u64),
        (cut, bound): (usize, Bound),
        words: &[u64],
    ) -> bool {
        if self.order.is_bytewise()
            && heads_decide_little(&words[..cut])
            && self.best_prefix(leaf, &words[..cut]).0 != leaf.prefix().0
        {
            return false;
        }
        let right = self.build(leaf, (bound, leaf.high()), &words[cut..]);
        self.install(path, None, right);
        self.lower_high(leaf, bound);
        if index < cut {
            leaf.truncate(cut - 1);
            leaf.insert(index, new);
        } else {
            leaf.truncate(cut);
        }
        true
    }

    fn lower_high(&self, node: &Node, high: Bound) {
        self.splits.store(self.splits.load(Ordering::Relaxed) + 1, Ordering::Release);
        node.set_high(high);
    }

    /// The place nearest to the middle that parts no versions of one key.
    fn cut_of(&self, node: &Node, words: &[u64]) -> usize {
        let middle = words.len() / 2;
        if node.level() > 0 {
            return middle;
        }
        (0..middle - 1)
            .flat_map(|away| [middle - away, middle + away])
            .find(|&cut| self.keys_differ(words[cut - 1], words[cut]))
            .unwrap_or(middle)
    }

    /// The shortest bound between the words on both sides of `cut`.
    fn bound_at(&self, node: &Node, words: &[u64], cut: usize) -> Bound {
        let (left, right) = (reference_of(words[cut - 1]), reference_of(words[cut]));
        if node.level() > 0 {
            return self.child(right).low();
        }
        let (below, above) = (self.read(left).key, self.read(right).key);
        if self.order.compare(below, above) == Order::Equal {
            Bound::before(right)
        } else if self.order.is_bytewise() {
            Bound::before_key_of(right, common_prefix_bytes(below, above) + 1)
        } else {
            Bound::before_key_of(right, usize::MAX)
        }
    }

    fn keys_differ(&self, a: u64, b: u64) -> bool {
        let key = |word| self.read(reference_of(word)).key;
        head_of(a) != head_of(b) || self.order.compare(key(a), key(b)) != Order::Equal
    }

    /// Makes the parent of a node that was split know its halves. Without
    /// `left` the node itself remains as the left one.
    fn install(&self, path: &mut Path<'_>, left: Option<u32>, right: u32) {
        let Some((parent, index)) = path.pop() else {
            return self.add_root(left, right);
        };
        let new = self.separator(parent.prefix(), right);
        let left = left.map(|left| self.separator(parent.prefix(), left));
        if parent.is_full() {
            self.split(path, parent, index + 1, new, left);
        } else if self.wants_prefix(parent, index, new) {
            self.rebuild(path, parent, index, new, left);
        } else {
            // A reader between the two stores finds the old node, in which
            // nothing is missing, or the right half.
            parent.insert(index + 1, new);
            if let Some(left) = left {
                parent.replace(index, left);
            }
        }
    }

    /// The word for `child` in a parent with this prefix.
    fn separator(&self, prefix: Prefix<'_>, child: u32) -> u64 {
        match self.target_of(self.node(child).low()) {
            Some((low, trailer)) if self.order.is_bytewise() => {
                let decides = trailer == TRAILER_NEWEST && prefix.head_decides(low);
                word(prefix.head(low), if decides { child | HEAD_DECIDES } else { child })
            }
            _ => word(0, child),
        }
    }

    fn add_root(&self, left: Option<u32>, right: u32) {
        let left = left.unwrap_or_else(|| self.root.load(Ordering::Relaxed));
        let prefix = Prefix(b"");
        let words = [self.separator(prefix, left), self.separator(prefix, right)];
        let level = self.node(right).level() + 1;
        // SAFETY: this is the only thread that adds.
        let root = unsafe { self.nodes.add(level, (Bound::NONE, Bound::NONE), prefix, &words) };
        self.root.store(root, Ordering::Release);
    }

    /// True if the head of `new` decides little in `node`, and might decide
    /// more after a better prefix.
    fn wants_prefix(&self, node: &Node, index: usize, new: u64) -> bool {
        if !self.order.is_bytewise() || reference_of(new) & HEAD_DECIDES != 0 {
            return false;
        }
        let mut words = node.to_vec();
        words.insert(index + 1, new);
        self.best_prefix(node, &words).0 != node.prefix().0
    }

    /// Puts a new node in the place of `node`, with `new` behind `index`.
    fn rebuild(
        &self,
        path: &mut Path<'_>,
        node: &Node,
        index: usize,
        new: u64,
        replaced: Option<u64>,
    ) {
        let mut words = node.to_vec();
        if let Some(replaced) = replaced {
            words[index] = replaced;
        }
        words.insert(index + 1, new);
        let built = self.build(node, (node.low(), node.high()), &words);
        match path.pop() {
            Some((parent, i)) => parent.replace(i, self.separator(parent.prefix(), built)),
            None => self.root.store(built, Ordering::Release),
        }
    }

    /// Builds a node of the level of `old` with some of its words.
    fn build(&self, old: &Node, bounds: (Bound, Bound), words: &[u64]) -> u32 {
        let mut prefix = old.prefix();
        let mut heads_anew = Vec::new();
        let mut words = words;
        if self.order.is_bytewise() && (old.level() > 0 || heads_decide_little(words)) {
            prefix = self.best_prefix(old, words);
        }
        if prefix.0 != old.prefix().0 {
            heads_anew.extend(words.iter().map(|&at| {
                let reference = reference_of(at);
                if old.level() == 0 {
                    word(prefix.head(self.read(reference).key), reference)
                } else {
                    self.separator(prefix, reference & !HEAD_DECIDES)
                }
            }));
            words = &heads_anew;
        }
        // SAFETY: this is the only thread that adds, and keys lie in entries.
        unsafe { self.nodes.add(old.level(), bounds, prefix, words) }
    }

    /// The bytes that all keys at `words` begin with; for a single word,
    /// those that it shares with all of the node that it leaves, because as
    /// wide a range of keys is likely to follow.
    fn best_prefix<'a>(&'a self, old: &'a Node, words: &[u64]) -> Prefix<'a> {
        let key_at = |word| self.key_at(old, word);
        let (first, last) = (words[0], words[words.len() - 1]);
        let Some(last) = key_at(last) else { return Prefix(b"") };
        if words.len() > 1 {
            let first = key_at(first).or_else(|| key_at(words[1]));
            return first.map_or(Prefix(b""), |first| shared_prefix(last, first));
        }
        [old.load(0), old.load(old.used() - 1)]
            .into_iter()
            .filter_map(key_at)
            .map(|end| shared_prefix(last, end))
            .min_by_key(|prefix| prefix.0.len())
            .unwrap_or(Prefix(b""))
    }

    /// The key that `word` stands for in a node of the level of `node`.
    fn key_at(&self, node: &Node, word: u64) -> Option<&[u8]> {
        if word == EMPTY {
            None
        } else if node.level() == 0 {
            Some(self.read(reference_of(word)).key)
        } else {
            self.lowest_key(reference_of(word) & !HEAD_DECIDES)
        }
    }

    fn lowest_key(&self, node: u32) -> Option<&[u8]> {
        self.target_of(self.node(node).low()).map(|(key, _)| key)
    }
}

/// True if the heads of a leaf's words tell few of them apart. To ask the
/// entries for better ones is dear, because most are far from the cache.
fn heads_decide_little(words: &[u64]) -> bool {
    let spread = head_of(words[0]) ^ head_of(words[words.len() - 1]);
    let ties = words.windows(2).filter(|pair| head_of(pair[0]) == head_of(pair[1])).count();
    spread >> 16 == 0 || spread >> 24 == 0 && ties > words.len() / 8
}
