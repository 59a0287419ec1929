//! What was read, as one number: engines that read the same have the same.
//!
//! It is taken while the clock runs, so it must be cheap: of most values only
//! the length and both ends go in, of every 64th all bytes. The checksums of
//! the engines look after the rest.

/// Every so many values go in as a whole.
const WHOLE_EVERY: u64 = 64;
const END: usize = 8;
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Takes in what is found.
#[derive(Clone, Debug, Default)]
pub struct Digest {
    found: u64,
    seen: u64,
    state: u64,
}

impl Digest {
    /// A value that was found for entry `number`. The order does not count.
    #[inline]
    pub fn add(&mut self, number: u64, value: &[u8]) {
        let whole = number.is_multiple_of(WHOLE_EVERY);
        self.found += 1;
        self.state = self.state.wrapping_add(mix(number, word(value, whole)));
    }

    /// An entry that a scan came across. The order counts.
    #[inline]
    pub fn chain(&mut self, key: &[u8], value: &[u8]) {
        let whole = self.seen.is_multiple_of(WHOLE_EVERY);
        self.seen += 1;
        self.found += 1;
        self.state = mix(self.state ^ word(key, true), word(value, whole));
    }

    /// Adds what another thread found with [`Digest::add`].
    pub fn merge(&mut self, other: &Digest) {
        self.found += other.found;
        self.state = self.state.wrapping_add(other.state);
    }

    /// Values that were found.
    pub fn found(&self) -> u64 {
        self.found
    }

    /// The number that stands for them.
    pub fn text(&self) -> String {
        format!("{:016x}", self.state)
    }
}

#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = (a ^ ODD).wrapping_add(b.rotate_left(29)).wrapping_mul(ODD);
    (product ^ (product >> 32) ^ b).wrapping_mul(ODD) ^ (product >> 29)
}

/// A number for `bytes`, of all of them or of length and ends.
#[inline]
fn word(bytes: &[u8], whole: bool) -> u64 {
    let length = bytes.len() as u64;
    let (Some(first), Some(last)) = (bytes.first_chunk::<END>(), bytes.last_chunk::<END>()) else {
        return bytes.iter().fold(length, |state, &byte| mix(state, u64::from(byte)));
    };
    let ends = mix(length ^ u64::from_le_bytes(*first), u64::from_le_bytes(*last));
    if !whole {
        return ends;
    }
    let words = bytes
        .chunks_exact(END)
        .map(|chunk| u64::from_le_bytes(chunk.try_into().expect("a chunk has eight bytes")));
    words.fold(ends, mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chained(entries: &[(&[u8], &[u8])]) -> String {
        let mut digest = Digest::default();
        entries.iter().for_each(|(key, value)| digest.chain(key, value));
        digest.text()
    }

    /// Lookups may come in any order and from several threads; what they find,
    /// and for which entry, counts.
    #[test]
    fn sums_know_what_but_not_when() {
        let of = |pairs: &[(u64, &[u8])]| {
            let mut digest = Digest::default();
            pairs.iter().for_each(|(number, value)| digest.add(*number, value));
            digest
        };
        let (a, b) = ((1, &b"the one value"[..]), (2, &b"the other one"[..]));
        assert_eq!(of(&[a, b]).text(), of(&[b, a]).text());
        assert_ne!(of(&[a, b]).text(), of(&[(2, a.1), (1, b.1)]).text());
        assert_ne!(of(&[a, b]).text(), of(&[a]).text());
        assert_ne!(of(&[a, a]).text(), of(&[a]).text());
        let mut merged = of(&[a]);
        merged.merge(&of(&[b]));
        assert_eq!((merged.text(), merged.found()), (of(&[a, b]).text(), 2));
    }

    /// The order of a scan counts, and so do keys, values and their lengths.
    #[test]
    fn chains_know_the_order() {
        let (a, b) = ((&b"a"[..], &b"1"[..]), (&b"b"[..], &b"2"[..]));
        assert_eq!(chained(&[a, b]), chained(&[a, b]));
        assert_ne!(chained(&[a, b]), chained(&[b, a]));
        assert_ne!(chained(&[a, b]), chained(&[a]));
        assert_ne!(chained(&[(b"a", b"12")]), chained(&[(b"a", b"1")]));
        assert_ne!(chained(&[(b"a", b"1")]), chained(&[(b"1", b"a")]));
    }

    /// Both ends of a value always count, its middle in every 64th.
    #[test]
    fn middles_count_now_and_then() {
        let one = |number: u64, at: usize| {
            let mut value = [7; 100];
            value[at] = 8;
            let mut digest = Digest::default();
            digest.add(number, &value);
            digest.text()
        };
        assert_ne!(one(1, 0), one(1, 99));
        assert_eq!(one(1, 50), one(1, 40));
        assert_ne!(one(64, 50), one(64, 40));
    }
}
