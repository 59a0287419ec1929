//! Writing the format: every flush and compaction does, most of the time that a large
//! value takes.
//!
//! Copies are matches of at least four bytes, found by a table of the places where four
//! bytes of some hash were seen last. The content is taken in fragments of 64 KiB, of
//! which the table knows one at a time: places have two bytes then, and so have distances.

use std::ptr;

use crate::coding::VARINT64_BYTES_MAX;

use super::{COPY_1, COPY_2, LITERAL, LITERAL_BYTES_IN_TAG};

const FRAGMENT_BYTES: usize = 1 << 16;
/// 32 KiB: more find few matches more, and miss the first cache.
const TABLE_BITS_MAX: u32 = 14;
const TABLE_BITS_MIN: u32 = 8;
/// Matches are looked for where so many bytes follow.
const MARGIN_BYTES: usize = 16;
/// Literals of 17 bytes up to so many are copied as so many, whatever their length.
const STRIDE_BYTES: usize = 64;
/// After 2^7 places in a row without a match every second one is looked at, after half
/// as many again every third, and so on: what does not compress is soon done with. The
/// values of a block follow each other, and one that repeats within itself may begin with
/// its own length of what was never seen: 2^5, the library's, gave up on half of such
/// blocks.
const PATIENCE_BITS: u32 = 7;
/// Large values are more of the same, so that a match that is passed over is met again.
const PATIENCE_BITS_LARGE: u32 = 4;
const LARGE_BYTES: usize = 32 << 10;

/// The longest that a block of so many bytes gets, with room for a stride.
pub(crate) fn encoded_bytes_max(content_bytes: usize) -> usize {
    // A literal takes a byte more than its content, which the copy behind it saves; from
    // 61 bytes on two or three. Behind the last of a fragment there is no copy.
    let heads = content_bytes / 32 + 3 * content_bytes.div_ceil(FRAGMENT_BYTES);
    VARINT64_BYTES_MAX + content_bytes + heads + STRIDE_BYTES
}

/// Keeps the table's memory between blocks.
#[derive(Debug)]
pub(crate) struct Encoder {
    places: Vec<u16>,
}

impl Encoder {
    pub(crate) fn new() -> Encoder {
        Encoder { places: Vec::new() }
    }

    /// Writes `content` as a block to `out`, which has [`encoded_bytes_max`] bytes; gives
    /// the block's length.
    ///
    /// # Panics
    /// If `out` is shorter, or `content` has 4 GiB or more.
    pub(crate) fn encode(&mut self, content: &[u8], out: &mut [u8]) -> usize {
        assert!(
            content.len() <= u32::MAX as usize && out.len() >= encoded_bytes_max(content.len())
        );
        let mut writer = Writer { out, end: 0 };
        // SAFETY: see `encoded_bytes_max`.
        unsafe { writer.varint(content.len()) };
        for fragment in content.chunks(FRAGMENT_BYTES) {
            self.encode_fragment(fragment, &mut writer);
        }
        writer.end
    }

    /// `content` as a block.
    pub(crate) fn encode_to_vec(&mut self, content: &[u8]) -> Vec<u8> {
        let mut out = vec![0; encoded_bytes_max(content.len())];
        let length = self.encode(content, &mut out);
        out.truncate(length);
        out
    }

    fn encode_fragment(&mut self, content: &[u8], out: &mut Writer<'_>) {
        let mut done = 0;
        if content.len() > MARGIN_BYTES {
            let bits = content.len().next_power_of_two().trailing_zeros();
            let bits = bits.clamp(TABLE_BITS_MIN, TABLE_BITS_MAX);
            self.places.clear();
            self.places.resize(1 << bits, 0);
            let is_large = content.len() > LARGE_BYTES;
            let patience_bits = if is_large { PATIENCE_BITS_LARGE } else { PATIENCE_BITS };
            let places = &mut self.places[..];
            let mut finder = Finder { content, places, shift: 32 - bits, patience_bits };
            let mut next = finder.find(1);
            while let Some((at, place)) = next {
                // SAFETY: see `encoded_bytes_max`.
                unsafe { out.literal(content, done, at) };
                let bytes = finder.match_bytes(at, place);
                // SAFETY: see `encoded_bytes_max`.
                unsafe { out.copy(at - place, bytes) };
                done = at + bytes;
                next = finder.find_after(done);
            }
        }
        if done < content.len() {
            // SAFETY: see `encoded_bytes_max`.
            unsafe { out.literal(content, done, content.len()) };
        }
    }
}

/// Finds matches in a fragment of more than [`MARGIN_BYTES`]. The table has 2^(32 - shift)
/// places, each before the one that is looked at, so that more than a margin follows it.
struct Finder<'a> {
    content: &'a [u8],
    places: &'a mut [u16],
    shift: u32,
    patience_bits: u32,
}

impl Finder<'_> {
    /// The first place from `at` on, of those that it looks at, whose four bytes were
    /// there before, and where.
    #[inline(always)]
    fn find(&mut self, mut at: usize) -> Option<(usize, usize)> {
        let limit = self.content.len() - MARGIN_BYTES;
        let mut looked = 1 << self.patience_bits;
        while at + 4 <= limit && looked < 3 << (self.patience_bits - 1) {
            // SAFETY: a margin follows `at + 4`.
            let word = unsafe { self.word(at) };
            for i in 0..4 {
                let four = (word >> (8 * i)) as u32;
                if let Some(place) = self.seen(four, at + i) {
                    return Some((at + i, place));
                }
            }
            at += 4;
            looked += 4;
        }
        while at <= limit {
            // SAFETY: a margin follows `at`.
            let four = unsafe { self.word(at) } as u32;
            if let Some(place) = self.seen(four, at) {
                return Some((at, place));
            }
            let step = looked >> self.patience_bits;
            at += step;
            looked += step;
        }
        None
    }

    /// As [`Finder::find`], behind a match that ends at `at`.
    #[inline(always)]
    fn find_after(&mut self, at: usize) -> Option<(usize, usize)> {
        if at > self.content.len() - MARGIN_BYTES {
            return None;
        }
        // SAFETY: a margin follows `at`.
        let word = unsafe { self.word(at - 1) };
        self.replace(word as u32, at - 1);
        match self.seen((word >> 8) as u32, at) {
            Some(place) => Some((at, place)),
            None => self.find(at + 1),
        }
    }

    /// How many bytes at `at` and at `place` before it are the same; four are.
    #[inline(always)]
    fn match_bytes(&self, at: usize, place: usize) -> usize {
        let mut bytes = 4;
        while at + bytes + 8 <= self.content.len() {
            // SAFETY: it was compared, and `place` is before `at`.
            let differs = unsafe { self.word(at + bytes) ^ self.word(place + bytes) };
            if differs != 0 {
                return bytes + differs.trailing_zeros() as usize / 8;
            }
            bytes += 8;
        }
        let (rest, before) = (&self.content[at + bytes..], &self.content[place + bytes..]);
        bytes + rest.iter().zip(before).take_while(|(a, b)| a == b).count()
    }

    /// Writes down that these four bytes are at `at`; gives where they were last, unless
    /// others of their hash were since.
    #[inline(always)]
    fn seen(&mut self, four: u32, at: usize) -> Option<usize> {
        let place = self.replace(four, at);
        // SAFETY: a margin follows each place of the table.
        (unsafe { self.word(place) } as u32 == four).then_some(place)
    }

    /// The place that the table had for these four bytes, which are at `at` from now on.
    #[inline(always)]
    fn replace(&mut self, four: u32, at: usize) -> usize {
        let hash = (four.wrapping_mul(0x1e35_a7bd) >> self.shift) as usize;
        debug_assert!(hash < self.places.len());
        // SAFETY: the table has 2^(32 - shift) entries.
        let slot = unsafe { self.places.get_unchecked_mut(hash) };
        usize::from(std::mem::replace(slot, at as u16))
    }

    /// # Safety
    /// Eight bytes follow `at`.
    #[inline(always)]
    unsafe fn word(&self, at: usize) -> u64 {
        debug_assert!(at + 8 <= self.content.len());
        // SAFETY: the caller's.
        u64::from_le(unsafe { self.content.as_ptr().add(at).cast::<u64>().read_unaligned() })
    }
}

/// Elements are written without a comparison each: what they can come to was compared
/// before the first.
struct Writer<'a> {
    out: &'a mut [u8],
    end: usize,
}

impl Writer<'_> {
    /// # Safety
    /// `out` has room for the longest.
    unsafe fn varint(&mut self, mut number: usize) {
        // SAFETY: the caller's.
        unsafe {
            while number >= 1 << 7 {
                self.byte(number as u8 | 1 << 7);
                number >>= 7;
            }
            self.byte(number as u8);
        }
    }

    /// Adds `content[from..to]` as a literal, if there is anything of it.
    ///
    /// # Safety
    /// `out` has room for it, its head and a stride.
    #[inline(always)]
    unsafe fn literal(&mut self, content: &[u8], from: usize, to: usize) {
        let bytes = to - from;
        let Some(stored) = bytes.checked_sub(1) else { return };
        debug_assert!(self.end + 3 + bytes.max(STRIDE_BYTES) <= self.out.len());
        // SAFETY: the caller's; a stride is read only where there is one.
        unsafe {
            if bytes <= LITERAL_BYTES_IN_TAG {
                self.byte((stored as u8) << 2 | LITERAL);
                if from + STRIDE_BYTES <= content.len() {
                    let (from, to) =
                        (content.as_ptr().add(from), self.out.as_mut_ptr().add(self.end));
                    ptr::copy_nonoverlapping(from, to, 16);
                    if bytes > 16 {
                        ptr::copy_nonoverlapping(from.add(16), to.add(16), STRIDE_BYTES - 16);
                    }
                    self.end += bytes;
                    return;
                }
            } else if stored < 1 << 8 {
                self.byte((LITERAL_BYTES_IN_TAG as u8) << 2 | LITERAL);
                self.byte(stored as u8);
            } else {
                self.byte((LITERAL_BYTES_IN_TAG as u8 + 1) << 2 | LITERAL);
                self.two_bytes(stored as u16);
            }
            let room = self.out.as_mut_ptr().add(self.end);
            ptr::copy_nonoverlapping(content[from..to].as_ptr(), room, bytes);
        }
        self.end += bytes;
    }

    /// Adds copies from `distance` before the end, which add `bytes` bytes, four or more.
    ///
    /// # Safety
    /// `out` has room for as many bytes.
    #[inline(always)]
    unsafe fn copy(&mut self, distance: usize, mut bytes: usize) {
        // SAFETY: the caller's.
        unsafe {
            // The last copy has four bytes at least, so that it can be a short one.
            while bytes >= 68 {
                self.copy_2(distance, 64);
                bytes -= 64;
            }
            if bytes > 64 {
                self.copy_2(distance, 60);
                bytes -= 60;
            }
            if bytes <= 11 && distance < 1 << 11 {
                self.byte((distance >> 8 << 5 | (bytes - 4) << 2) as u8 | COPY_1);
                self.byte(distance as u8);
            } else {
                self.copy_2(distance, bytes);
            }
        }
    }

    #[inline(always)]
    unsafe fn copy_2(&mut self, distance: usize, bytes: usize) {
        // SAFETY: the caller's.
        unsafe {
            self.byte(((bytes - 1) << 2) as u8 | COPY_2);
            self.two_bytes(distance as u16);
        }
    }

    #[inline(always)]
    unsafe fn byte(&mut self, byte: u8) {
        debug_assert!(self.end < self.out.len());
        // SAFETY: the caller's.
        unsafe { *self.out.as_mut_ptr().add(self.end) = byte };
        self.end += 1;
    }

    #[inline(always)]
    unsafe fn two_bytes(&mut self, number: u16) {
        debug_assert!(self.end + 2 <= self.out.len());
        // SAFETY: the caller's.
        unsafe {
            let to = self.out.as_mut_ptr().add(self.end).cast::<[u8; 2]>();
            to.write_unaligned(number.to_le_bytes());
        }
        self.end += 2;
    }
}

#[cfg(test)]
mod tests {
    use testkit::random::Random;

    use crate::unpack::testing;

    use super::*;

    fn assert_comes_back(encoder: &mut Encoder, content: &[u8]) {
        let block = encoder.encode_to_vec(content);
        assert!(block.len() + STRIDE_BYTES <= encoded_bytes_max(content.len()));
        let found = snap::raw::Decoder::new().decompress_vec(&block);
        assert!(found.as_deref() == Ok(content), "{} bytes", content.len());
    }

    /// The library reads what is written here, whatever the lengths of literals, matches
    /// and distances, of the last fragment, and of what a table had before.
    #[test]
    fn the_library_decompresses_it() {
        let mut encoder = Encoder::new();
        let mut random = Random::new(1);
        for round in 0..3_000 {
            let most = if round % 100 == 0 { 200_000 } else { 3_000 };
            assert_comes_back(&mut encoder, &testing::repetitive(&mut random, most));
        }
    }

    /// Literals and matches as short as they may be for the heads that they have are the
    /// longest blocks.
    #[test]
    fn no_block_is_longer_than_was_said() {
        let mut encoder = Encoder::new();
        for literal in [1, 2, 57, 61, 62, 256, 257, 300] {
            let mut random = Random::new(literal as u64);
            let mut content: Vec<u8> = b"same".to_vec();
            content.extend((0..3_000).map(|_| random.word() as u8));
            while content.len() < 150_000 {
                content.extend((0..literal).map(|_| random.word() as u8));
                content.extend_from_slice(b"same");
            }
            assert_comes_back(&mut encoder, &content);
        }
        for length in (0..200).chain([1 << 16, (1 << 16) + 1, (2 << 16) + 7]) {
            assert_comes_back(&mut encoder, &vec![7; length]);
            let mut random = Random::new(length as u64);
            let noise: Vec<u8> = (0..length).map(|_| random.word() as u8).collect();
            assert_comes_back(&mut encoder, &noise);
        }
    }

    /// Forty values of 100 bytes, cut out of `pool`.
    fn cut_values(random: &mut Random, pool: &[u8]) -> Vec<u8> {
        let mut cut = || {
            let at = random.below(pool.len() - 100);
            &pool[at..at + 100]
        };
        (0..40).flat_map(|_| cut()).copied().collect()
    }

    /// Random pieces of 50 bytes, each twice.
    fn doubled_pieces(random: &mut Random, length: usize) -> Vec<u8> {
        let mut content = Vec::new();
        while content.len() < length {
            let piece: Vec<u8> = (0..50).map(|_| random.word() as u8).collect();
            content.extend(piece.iter().chain(&piece));
        }
        content
    }

    /// Blocks are about as short as the library's: of small values, cut out of anything
    /// anywhere, as of db_bench's, and of large ones.
    #[test]
    fn blocks_are_as_short_as_the_librarys() {
        let mut random = Random::new(5);
        let pool = doubled_pieces(&mut random, 1 << 20);
        let small = cut_values(&mut random, &pool);
        let large = doubled_pieces(&mut random, 100_000);
        for (content, percent_max) in [(small, 100), (large, 101)] {
            let ours = Encoder::new().encode_to_vec(&content).len();
            let library = snap::raw::Encoder::new().compress_vec(&content).expect("it fits");
            assert!(ours * 100 <= library.len() * percent_max, "{ours} of {}", library.len());
        }
    }

    /// Of a block of small values that repeat within themselves, the repetitions are found
    /// in all of it, not only up to where there was none for a while.
    #[test]
    fn small_values_are_not_given_up() {
        let mut random = Random::new(6);
        let pool = doubled_pieces(&mut random, 1 << 20);
        let mut encoder = Encoder::new();
        for _ in 0..1_000 {
            let content = cut_values(&mut random, &pool);
            let length = encoder.encode_to_vec(&content).len();
            assert!(length < content.len() * 9 / 10, "{length} of {}", content.len());
        }
    }
}
