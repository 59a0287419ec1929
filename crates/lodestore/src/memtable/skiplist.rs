//! A skiplist in an arena: one writer, readers that never wait.
//!
//! A node holds the first eight bytes of its key as a number, its links, key
//! and value in one piece of memory. It is complete before the release store
//! that links it; links are only ever added.

use std::cell::UnsafeCell;
use std::cmp::Ordering as Order;
use std::mem::{align_of, size_of};
use std::ptr;

use super::arena::Arena;
use crate::key::{KeyOrder, Trailer, head};
use crate::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

const HEIGHT_MAX: usize = 12;

type Link = AtomicPtr<Node>;

/// The header of an entry; `height` links, the key and the value follow it.
#[repr(C, align(8))]
pub(super) struct Node {
    trailer: Trailer,
    head: u64,
    key_bytes: u32,
    value_bytes: u32,
    height: u64,
}

impl Node {
    #[inline]
    pub(super) fn trailer(&self) -> Trailer {
        self.trailer
    }

    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        // SAFETY: `insert` wrote this many bytes behind the links.
        unsafe { std::slice::from_raw_parts(self.bytes(), self.key_bytes as usize) }
    }

    #[inline]
    pub(super) fn value(&self) -> &[u8] {
        // SAFETY: `insert` wrote this many bytes behind the key.
        unsafe {
            let start = self.bytes().add(self.key_bytes as usize);
            std::slice::from_raw_parts(start, self.value_bytes as usize)
        }
    }

    #[inline]
    fn links(&self) -> *const Link {
        ptr::from_ref(self).wrapping_add(1).cast()
    }

    #[inline]
    fn bytes(&self) -> *const u8 {
        self.links().wrapping_add(self.height as usize).cast()
    }

    #[inline]
    fn link(&self, level: usize) -> &Link {
        debug_assert!(level < self.height as usize);
        // SAFETY: `insert` initialised `height` links; a node is reached at
        // `level` only through a link of that level, so it is tall enough.
        unsafe { &*self.links().add(level) }
    }
}

/// See the module.
pub(super) struct Skiplist {
    order: KeyOrder,
    top: *const Node,
    height: AtomicUsize,
    memory_bytes: AtomicUsize,
    entries: AtomicU64,
    arena: UnsafeCell<Arena>,
}

// SAFETY: `arena` and `height` are changed only by `insert`, which one thread
// at a time may call; all else is immutable or atomic.
unsafe impl Send for Skiplist {}
// SAFETY: as above.
unsafe impl Sync for Skiplist {}

impl Skiplist {
    pub(super) fn new(order: KeyOrder) -> Skiplist {
        let memory_bytes = AtomicUsize::new(0);
        let mut arena = Arena::new();
        let top = alloc_node(&mut arena, &memory_bytes, HEIGHT_MAX, 0, b"", b"");
        let (height, entries) = (AtomicUsize::new(1), AtomicU64::new(0));
        Skiplist {
            order,
            top,
            height,
            memory_bytes,
            entries,
            arena: UnsafeCell::new(arena),
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.memory_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Adds an entry.
    ///
    /// # Safety
    /// No other call of `insert` runs at the same time.
    pub(super) unsafe fn insert(&self, random: u64, key: &[u8], trailer: Trailer, value: &[u8]) {
        let mut before = [self.top; HEIGHT_MAX];
        self.last_below(key, trailer, &mut before);
        // One node in four is taller by one.
        let height = 1 + ((random.trailing_zeros() / 2) as usize).min(HEIGHT_MAX - 1);
        // SAFETY: only the writer touches the arena, and it is the caller.
        let arena = unsafe { &mut *self.arena.get() };
        let node = alloc_node(arena, &self.memory_bytes, height, trailer, key, value);
        if height > self.height.load(Ordering::Relaxed) {
            self.height.store(height, Ordering::Relaxed);
        }
        for (level, &before) in before.iter().enumerate().take(height) {
            // SAFETY: nodes live as long as the arena.
            let (node, before) = unsafe { (&*node, &*before) };
            let after = before.link(level).load(Ordering::Relaxed);
            node.link(level).store(after, Ordering::Relaxed);
            before
                .link(level)
                .store(ptr::from_ref(node).cast_mut(), Ordering::Release);
        }
        self.entries
            .store(self.entries.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// The first entry that is not before `(key, trailer)`.
    pub(super) fn first_from(&self, key: &[u8], trailer: Trailer) -> Option<&Node> {
        let mut before = [self.top; HEIGHT_MAX];
        self.last_below(key, trailer, &mut before)
    }

    /// The last entry before `(key, trailer)`.
    pub(super) fn last_before(&self, key: &[u8], trailer: Trailer) -> Option<&Node> {
        let mut before = [self.top; HEIGHT_MAX];
        self.last_below(key, trailer, &mut before);
        self.unless_top(before[0])
    }

    pub(super) fn first(&self) -> Option<&Node> {
        // SAFETY: nodes live as long as the list.
        self.after(unsafe { &*self.top })
    }

    pub(super) fn last(&self) -> Option<&Node> {
        let mut at = self.top;
        for level in (0..self.height.load(Ordering::Relaxed)).rev() {
            // SAFETY: nodes live as long as the list.
            while let Some(next) = unsafe { follow(&*at, level) } {
                at = next;
            }
        }
        self.unless_top(at)
    }

    #[inline]
    pub(super) fn after(&self, node: &Node) -> Option<&Node> {
        // SAFETY: nodes live as long as the list.
        unsafe { follow(&*ptr::from_ref(node), 0) }
    }

    pub(super) fn order(&self) -> &KeyOrder {
        &self.order
    }

    fn unless_top(&self, node: *const Node) -> Option<&Node> {
        // SAFETY: nodes live as long as the list.
        (!ptr::eq(node, self.top)).then(|| unsafe { &*node })
    }

    /// Descends to `(key, trailer)`; notes the last node below it at each
    /// level and returns the first that is not.
    #[inline]
    fn last_below(
        &self,
        key: &[u8],
        trailer: Trailer,
        before: &mut [*const Node; HEIGHT_MAX],
    ) -> Option<&Node> {
        let head = if self.order.is_bytewise() {
            head(key)
        } else {
            0
        };
        let mut at = self.top;
        let mut after = None;
        for level in (0..self.height.load(Ordering::Relaxed)).rev() {
            // SAFETY: nodes live as long as the list.
            after = unsafe { follow(&*at, level) };
            while let Some(next) = after {
                if !self.is_below(next, head, key, trailer) {
                    break;
                }
                at = next;
                // SAFETY: as above.
                after = unsafe { follow(&*at, level) };
            }
            before[level] = at;
        }
        after
    }

    #[inline]
    fn is_below(&self, node: &Node, head: u64, key: &[u8], trailer: Trailer) -> bool {
        let order = match &self.order {
            KeyOrder::Bytewise => {
                if node.head != head {
                    return node.head < head;
                }
                node.key().cmp(key)
            }
            KeyOrder::Custom(comparator) => comparator.compare(node.key(), key),
        };
        order.then_with(|| trailer.cmp(&node.trailer)) == Order::Less
    }
}

/// The node after `node` at `level`.
///
/// # Safety
/// The result lives no longer than the arena.
#[inline]
unsafe fn follow<'a>(node: &Node, level: usize) -> Option<&'a Node> {
    // SAFETY: links are null or lead to a complete node; the acquire load
    // pairs with the release store in `insert`.
    unsafe { node.link(level).load(Ordering::Acquire).as_ref() }
}

fn alloc_node(
    arena: &mut Arena,
    total: &AtomicUsize,
    height: usize,
    trailer: Trailer,
    key: &[u8],
    value: &[u8],
) -> *const Node {
    let bytes = size_of::<Node>() + height * size_of::<Link>() + key.len() + value.len();
    let align = align_of::<Node>().max(align_of::<Link>());
    let node = arena.alloc(bytes, align, total).cast::<Node>();
    let header = Node {
        trailer,
        head: head(key),
        key_bytes: u32::try_from(key.len()).expect("a key is at most KEY_BYTES_MAX long"),
        value_bytes: u32::try_from(value.len()).expect("a value is at most VALUE_BYTES_MAX long"),
        height: height as u64,
    };
    // SAFETY: the piece is large enough for all that is written, and nobody
    // else knows it yet.
    unsafe {
        node.write(header);
        let links = node.add(1).cast::<Link>();
        for level in 0..height {
            links.add(level).write(Link::new(ptr::null_mut()));
        }
        let bytes = links.add(height).cast::<u8>();
        ptr::copy_nonoverlapping(key.as_ptr(), bytes, key.len());
        ptr::copy_nonoverlapping(value.as_ptr(), bytes.add(key.len()), value.len());
    }
    node
}
