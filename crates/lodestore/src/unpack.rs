//! The content of a block, as a decoder of Snappy or LZ4 puts it together: of literals,
//! which stand in the block, and of copies of content that is there already.
//!
//! Both are short, and a processor that cannot foresee how short waits at each branch on
//! it: so up to 16, 64 or 128 bytes are copied as so many, and the next one writes over
//! what was too much. What is read soon after it was written is at hand only if it was
//! written as a whole: so copies from nearby end where they end, since the next one often
//! is of this one's end. A block may be anything: each is checked.

use std::mem::MaybeUninit;
use std::ptr;

use crate::sync::Arc;

/// Room behind the content, which may be written to.
pub(crate) const SLACK_BYTES: usize = 16;

/// Literals of more than [`STEP_BYTES`] up to so many are copied as so many.
const STRIDE_BYTES: usize = 64;
/// And those of more, up to so many.
const LONG_STRIDE_BYTES: usize = 128;
const STEP_BYTES: usize = SLACK_BYTES;
/// Copies of up to so many from at least as far back are as many steps, whatever their
/// length.
const FAR_BYTES: usize = 3 * STEP_BYTES;
/// A step of copies from less than [`STEP_BYTES`] back.
const NEAR_BYTES: usize = 8;

/// A shared buffer of `content_bytes` bytes, which `decode` fills, with [`SLACK_BYTES`]
/// zeros behind them. `None` if `decode` gives `None`, or has not filled all.
pub(crate) fn shared(
    content_bytes: usize,
    decode: impl FnOnce(Room<'_>) -> Option<Room<'_>>,
) -> Option<Arc<[u8]>> {
    let mut buffer = Arc::new_uninit_slice(content_bytes.checked_add(SLACK_BYTES)?);
    let bytes = Arc::get_mut(&mut buffer).expect("a new Arc has one owner");
    let filled = decode(Room::new(bytes))?.filled;
    if filled != content_bytes {
        return None;
    }
    bytes[filled..].fill(MaybeUninit::new(0));
    // SAFETY: `decode` can only give back the room that it was given, whose first `filled`
    // bytes are initialized; the others were just now.
    Some(unsafe { buffer.assume_init() })
}

/// Replaces what is in `out` by what `decode` fills it with, as [`shared`].
pub(crate) fn owned(
    content_bytes: usize,
    out: &mut Vec<u8>,
    decode: impl FnOnce(Room<'_>) -> Option<Room<'_>>,
) -> Option<()> {
    out.clear();
    out.reserve(content_bytes.checked_add(SLACK_BYTES)?);
    let room = Room::new(&mut out.spare_capacity_mut()[..content_bytes + SLACK_BYTES]);
    if decode(room)?.filled != content_bytes {
        return None;
    }
    // SAFETY: as in `shared`; there is room for as many.
    unsafe { out.set_len(content_bytes) };
    Some(())
}

/// Room for the content. Its first `filled` bytes are initialized, and the content is never
/// longer than all but the slack.
pub(crate) struct Room<'r> {
    bytes: &'r mut [MaybeUninit<u8>],
    filled: usize,
}

impl<'r> Room<'r> {
    fn new(bytes: &'r mut [MaybeUninit<u8>]) -> Room<'r> {
        assert!(bytes.len() >= SLACK_BYTES);
        Room { bytes, filled: 0 }
    }

    /// Adds the first `count` bytes of `from`; `None` if they are not there, or too many.
    #[inline(always)]
    pub(crate) fn literal(&mut self, from: &[u8], count: usize) -> Option<()> {
        if count > self.left() {
            return None;
        }
        let strode = self.stride::<STEP_BYTES>(from, count)
            || self.stride::<STRIDE_BYTES>(from, count)
            || self.stride::<LONG_STRIDE_BYTES>(from, count);
        if !strode {
            add_literal(&mut self.bytes[self.filled..], from.get(..count)?);
        }
        self.filled += count;
        Some(())
    }

    /// Copies the first `BYTES` of `from` to the end if that are `count` or more, and if
    /// they are there and have room, with the slack; says whether it did.
    #[inline(always)]
    fn stride<const BYTES: usize>(&mut self, from: &[u8], count: usize) -> bool {
        let fits = count <= BYTES && BYTES <= self.left() + SLACK_BYTES && BYTES <= from.len();
        if fits {
            // SAFETY: it was compared, and nobody else has the room's.
            unsafe { ptr::copy_nonoverlapping(from.as_ptr().cast(), self.end(), BYTES) };
        }
        fits
    }

    /// Adds `count` bytes, each the one `distance` before it; `None` if that is nowhere, or
    /// they are too many.
    #[inline(always)]
    pub(crate) fn copy(&mut self, distance: usize, count: usize) -> Option<()> {
        let left = self.left();
        if distance > self.filled || count > left {
            return None;
        }
        if count <= FAR_BYTES && FAR_BYTES <= distance && FAR_BYTES <= left + SLACK_BYTES {
            // SAFETY: `distance` bytes are before the end, and so many behind it, with the slack.
            unsafe { copy_far(self.end(), distance) };
        } else if distance < NEAR_BYTES {
            repeat(self.bytes, self.filled, distance, count)?;
        } else {
            // SAFETY: `distance` bytes are before the end, and `count` and the slack, which
            // is as long as a step, behind it.
            unsafe { copy_from(self.end(), distance, count) };
        }
        self.filled += count;
        Some(())
    }

    /// How many bytes the content may grow by.
    #[inline(always)]
    fn left(&self) -> usize {
        self.bytes.len() - SLACK_BYTES - self.filled
    }

    /// Where the next byte goes; what is before it may be read from there, too.
    #[inline(always)]
    fn end(&mut self) -> *mut MaybeUninit<u8> {
        self.bytes.as_mut_ptr().wrapping_add(self.filled)
    }
}

// What is called takes the room's parts, not the room: what others have the address of is
// not kept in registers.

/// [`Room::literal`], of any length, at the start of `to`, which has the room.
#[inline(never)]
fn add_literal(to: &mut [MaybeUninit<u8>], from: &[u8]) {
    let to = &mut to[..from.len()];
    // SAFETY: they are as long, and nobody else has `to`.
    unsafe { ptr::copy_nonoverlapping(from.as_ptr().cast(), to.as_mut_ptr(), to.len()) };
}

/// [`Room::copy`] from nearer than [`NEAR_BYTES`].
#[inline(never)]
fn repeat(
    bytes: &mut [MaybeUninit<u8>],
    filled: usize,
    distance: usize,
    count: usize,
) -> Option<()> {
    if distance == 0 {
        return None;
    }
    let first = count.min(NEAR_BYTES);
    for i in filled..filled + first {
        bytes[i] = bytes[i - distance];
    }
    // A multiple of the distance is a distance, too, for those that are now that far behind.
    let far = distance * NEAR_BYTES.div_ceil(distance);
    let (filled, rest) = (filled + first, count - first);
    if rest > 0 {
        assert!(far <= filled && filled + rest + SLACK_BYTES <= bytes.len());
        // SAFETY: it was compared.
        unsafe { copy_from(bytes.as_mut_ptr().add(filled), far, rest) };
    }
    Some(())
}

/// Copies [`FAR_BYTES`] from `distance` before `to`.
///
/// # Safety
/// `distance`, no less than that, bytes are before `to`, and that many behind.
#[inline(always)]
unsafe fn copy_far(to: *mut MaybeUninit<u8>, distance: usize) {
    for at in (0..FAR_BYTES).step_by(STEP_BYTES) {
        // SAFETY: the caller's; what is read is before `to`, and what is written is not.
        unsafe {
            let from = to.add(at).sub(distance).cast_const();
            ptr::copy_nonoverlapping(from, to.add(at), STEP_BYTES);
        }
    }
}

/// Copies `count` bytes, or up to a step, from `distance` before `to`.
///
/// # Safety
/// `distance`, [`NEAR_BYTES`] or more, bytes are before `to`, and `count` and a step behind.
#[inline(always)]
unsafe fn copy_from(to: *mut MaybeUninit<u8>, distance: usize, count: usize) {
    // SAFETY: the caller's; no piece is longer than the distance. What is copied from
    // beyond `count` need not be initialized, nor is it said to be.
    unsafe {
        let piece = |at: usize, bytes: usize| {
            let to = to.add(at);
            ptr::copy_nonoverlapping(to.sub(distance).cast_const(), to, bytes);
        };
        if count <= NEAR_BYTES {
            piece(0, NEAR_BYTES);
        } else if count <= 2 * NEAR_BYTES {
            piece(0, NEAR_BYTES);
            piece(NEAR_BYTES, NEAR_BYTES);
        } else if distance >= STEP_BYTES {
            for at in (0..count - STEP_BYTES).step_by(STEP_BYTES) {
                piece(at, STEP_BYTES);
            }
            piece(count - STEP_BYTES, STEP_BYTES);
        } else {
            for at in (0..count).step_by(NEAR_BYTES) {
                piece(at, NEAR_BYTES);
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
