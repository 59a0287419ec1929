//! How the tree grows: insertion and the splitting of nodes. One thread at a
//! time may be in these functions.
//!
//! entry -> at hand, or down from the root -> room in the leaf: one word moves
//! in; none: `split` -> `install` in the parent, which may split in turn.

use std::cmp::Ordering as Order;

use super::super::entry::EntryRef;
use super::super::node::{
    Bound, EMPTY, HEAD_DECIDES, Node, Prefix, WIDTH, head_of, reference_of, shared_prefix, word,
};
use super::{Hand, Tree};
use crate::key::{TRAILER_NEWEST, Trailer, common_prefix_bytes};
use crate::sync::atomic::Ordering;

/// Nodes are at least half full but for the outermost, so 2^32 references
/// give a far smaller height.
const HEIGHT_MAX: usize = 16;

/// Pairs with equal heads, spread over a leaf, of which one must have
/// different keys for the leaf to get other heads.
const TIES_ASKED: usize = 4;

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

impl Tree {
    /// Adds an entry.
    ///
    /// # Safety
    /// No other insertion runs at the same time, and `hand` was always passed
    /// to insertions into this tree.
    #[inline]
    pub(in super::super) unsafe fn insert(
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
            && self.heads_decide_little(&words[..cut])
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
        if self.order.is_bytewise() && (old.level() > 0 || self.heads_decide_little(words)) {
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

    /// True if the heads of a leaf's words tell few keys apart, and others
    /// would tell more. To ask the entries for better ones is dear, because
    /// most are far from the cache, and leaves an old node behind.
    fn heads_decide_little(&self, words: &[u64]) -> bool {
        if words.len() == 1 {
            return true; // it says nothing about what will follow it
        }
        let spread = head_of(words[0]) ^ head_of(words[words.len() - 1]);
        if spread >> 24 != 0 {
            return false;
        }
        let tied = |pair: &&[u64]| head_of(pair[0]) == head_of(pair[1]);
        let ties = words.windows(2).filter(tied).count();
        // Versions of one key stay tied whatever the prefix.
        let mut asked = words.windows(2).filter(tied).step_by(ties / TIES_ASKED + 1);
        ties > words.len() / 8 && asked.any(|pair| self.keys_differ(pair[0], pair[1]))
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

#[cfg(all(test, not(simulation)))]
mod tests {
    use super::*;
    use crate::budget::{Account, Charge, Item};
    use crate::key::KeyOrder;

    /// A reader that walks backwards out of a new leaf, while the old one still
    /// has the words that were given away, meets every entry once, in order,
    /// and does not wait for the writer.
    #[test]
    fn walks_are_exact_in_the_middle_of_a_split() {
        let tree =
            Tree::new(KeyOrder::Bytewise, &Charge::new(&Account::unlimited(), Item::Memtables));
        let mut hand = Hand::default();
        for i in 0..WIDTH as u64 {
            // SAFETY: this thread alone inserts, always with this hand.
            unsafe { tree.insert(&mut hand, &i.to_be_bytes(), 1, b"") };
        }
        let leaf = tree.root();
        let (words, cut) = (leaf.to_vec(), WIDTH / 2);
        let bound = tree.bound_at(leaf, &words, cut);
        let right = tree.build(leaf, (bound, leaf.high()), &words[cut..]);
        tree.install(&mut Path { steps: [None; HEIGHT_MAX], length: 0 }, None, right);
        assert_walks_are_exact(&tree);
        tree.lower_high(leaf, bound);
        assert_walks_are_exact(&tree);
        leaf.truncate(cut);
        assert_walks_are_exact(&tree);
    }

    fn assert_walks_are_exact(tree: &Tree) {
        let keys: Vec<_> = (0..WIDTH as u64).map(|i| i.to_be_bytes()).collect();
        let forward = std::iter::successors(tree.first(), |&at| tree.next(at));
        assert!(forward.map(|at| tree.entry(at).key).eq(&keys));
        let backward = std::iter::successors(tree.last(), |&at| tree.prev(at));
        assert!(backward.map(|at| tree.entry(at).key).eq(keys.iter().rev()));
    }
}
