//! The filter of a memtable: which keys are surely not in it.
//!
//! A key sets three bits of one word, so that asking is one cache miss where a
//! search of the tree is several. The filter grows in layers, each four times
//! the last: a key goes into the newest, and is looked for in all. So a small
//! memtable stays small, and no key is hashed again.
//!
//! The writer would wait for the word of its key, which is far away. So it fetches
//! it and sets the bits with the next key; until then readers find the hash itself
//! in `newest`. Whoever knows a published number sees its key's hash there, or a
//! later one, and behind that all bits of the keys before it.

use crate::budget::{Charge, Item, Reservation};
use crate::prefetch::prefetch;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, OnceLock, StepAtomicU64};

const LAYER_BYTES_MIN: usize = 2 << 10;
const GROWTH: usize = 4;
/// Enough for 44 million keys; of more than that, more and more pass.
const LAYERS_MAX: usize = 8;
/// A full layer lets one absent key of 18 pass.
const BITS_PER_KEY: usize = 8;

/// See the module.
pub(super) struct Filter {
    /// The hash of the newest key; 0 at first. Released after the bits of all others
    /// are set, which are relaxed.
    newest: AtomicU64,
    layers: [OnceLock<Box<[StepAtomicU64]>>; LAYERS_MAX],
    bytes: AtomicUsize,
    memory: Mutex<Reservation>,
}

/// Where the writer of a [`Filter`] is.
#[derive(Default)]
pub(super) struct FilterHand {
    /// The hash of the newest key, whose bits are not set yet.
    newest: Option<u64>,
    /// Layers that there are.
    layers: usize,
    /// Keys that the newest of them still takes.
    left: usize,
}

impl Filter {
    /// A filter without keys, whose memory is charged to `memory`.
    pub(super) fn new(memory: &Charge) -> Filter {
        Filter {
            newest: AtomicU64::new(0),
            layers: Default::default(),
            bytes: AtomicUsize::new(0),
            memory: Mutex::new(memory.reserve(0)),
        }
    }

    /// Takes in a key by its hash. There is one `hand` for each filter.
    #[inline]
    pub(super) fn insert(&self, hand: &mut FilterHand, hash: u64) {
        if let Some(before) = hand.newest.replace(hash) {
            self.set_bits(hand, before);
        }
        self.newest.store(hash, Ordering::Release);
        if let Some(words) = self.layers[hand.layers.saturating_sub(1)].get() {
            prefetch(std::ptr::from_ref(&words[index(words, hash)]).cast());
        }
    }

    #[inline]
    fn set_bits(&self, hand: &mut FilterHand, hash: u64) {
        if hand.left == 0 && hand.layers < LAYERS_MAX {
            self.add_layer(hand);
        }
        let words = self.layers[hand.layers - 1].get().expect("the hand counts layers");
        let (word, bits) = (&words[index(words, hash)], bits(hash));
        let there = word.load(Ordering::Relaxed);
        if there & bits != bits {
            word.store(there | bits, Ordering::Relaxed);
            hand.left = hand.left.saturating_sub(1);
        }
    }

    /// False only if no key of this hash was inserted.
    #[inline]
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        if self.newest.load(Ordering::Acquire) == hash {
            return true;
        }
        let bits = bits(hash);
        let layers = self.layers.iter().map_while(OnceLock::get);
        let mut words = layers.map(|words| words[index(words, hash)].load(Ordering::Relaxed));
        words.any(|word| word & bits == bits)
    }

    /// Memory that the filter takes.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Counts the memory as that of a memtable that takes no more entries.
    pub(super) fn seal(&self) {
        self.memory.lock().move_to(Item::SealedMemtables);
    }

    #[cold]
    fn add_layer(&self, hand: &mut FilterHand) {
        let bytes = LAYER_BYTES_MIN * GROWTH.pow(hand.layers as u32);
        let words = std::iter::repeat_with(StepAtomicU64::default).take(bytes / 8).collect();
        assert!(self.layers[hand.layers].set(words).is_ok(), "one hand adds layers");
        self.memory.lock().grow(bytes);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        hand.layers += 1;
        hand.left = bytes * 8 / BITS_PER_KEY;
    }
}

/// The word of a key in a layer: by the upper bits of its hash.
#[inline]
fn index(words: &[StepAtomicU64], hash: u64) -> usize {
    ((u128::from(hash) * words.len() as u128) >> 64) as usize
}

/// The bits of a key in its word: by the lower bits of its hash.
#[inline]
fn bits(hash: u64) -> u64 {
    1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63)
}

#[cfg(all(test, not(simulation)))]
mod tests {
    use super::*;
    use crate::budget::Account;
    use crate::key::hash;

    /// Over several layers all keys are found, few others are, and memory is
    /// counted under the item that it belongs to.
    #[test]
    fn keys_pass_and_few_others_do() {
        let account = Account::unlimited();
        let filter = Filter::new(&Charge::new(&account, Item::Memtables));
        let mut hand = FilterHand::default();
        let hash_of = |number: u64| hash(&number.to_le_bytes());
        assert!(!filter.may_contain(hash_of(0)));
        assert_eq!(filter.bytes(), 0);
        const KEYS: u64 = 100_000;
        for number in 0..KEYS {
            filter.insert(&mut hand, hash_of(number));
            assert!(filter.may_contain(hash_of(number)));
        }
        assert!((0..KEYS).all(|number| filter.may_contain(hash_of(number))));
        let passed = (KEYS..2 * KEYS).filter(|&number| filter.may_contain(hash_of(number)));
        let passed = passed.count() as u64;
        assert!(passed < KEYS / 6, "{passed} of {KEYS} absent keys pass");
        assert_eq!(filter.bytes(), (2 + 8 + 32 + 128) << 10);
        assert_eq!(account.used(Item::Memtables), filter.bytes());
        filter.seal();
        assert_eq!(account.used(Item::SealedMemtables), filter.bytes());
        drop(filter);
        assert_eq!(account.used(Item::SealedMemtables), 0);
    }

    /// One key over and over takes no room of others.
    #[test]
    fn versions_of_a_key_count_once() {
        let filter = Filter::new(&Charge::new(&Account::unlimited(), Item::Memtables));
        let mut hand = FilterHand::default();
        assert!(!filter.may_contain(7));
        (0..100_000).for_each(|_| filter.insert(&mut hand, 7));
        assert!(filter.may_contain(7));
        assert_eq!(filter.bytes(), LAYER_BYTES_MIN);
    }
}
