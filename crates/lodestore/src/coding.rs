//! Integers as bytes: fixed little-endian, and varints (seven bits a byte, low
//! bits first, as in LevelDB's formats).

/// Bytes that the longest varint of 64 bits takes.
pub(crate) const VARINT64_BYTES_MAX: usize = 10;

/// No database counts files or edits this far. A stored number beyond it is
/// refused, so that adding to a counter never overflows.
pub(crate) const COUNTER_MAX: u64 = u64::MAX >> 1;

pub(crate) fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_u128(out: &mut Vec<u8>, value: u128) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends `value` as a varint of 1 to 10 bytes.
#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the length of `bytes` as a varint, then `bytes`.
#[inline]
pub(crate) fn put_slice(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Bytes that `put_varint` appends for `value`.
pub(crate) fn varint_bytes(value: u64) -> usize {
    (70 - (value | 1).leading_zeros() as usize) / 7
}

/// Reads integers and slices from the front of a byte string. Every method
/// returns `None`, and consumes nothing that matters, when the bytes end too
/// early or are not canonical for the type.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// What was not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `count` bytes.
    #[inline]
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.bytes(1).map(|b| b[0])
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn u128(&mut self) -> Option<u128> {
        self.array().map(u128::from_le_bytes)
    }

    /// A varint of up to 64 bits.
    #[inline]
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for (i, &byte) in self.rest.iter().enumerate().take(VARINT64_BYTES_MAX) {
            let bits = u64::from(byte & 0x7f);
            if i == VARINT64_BYTES_MAX - 1 && bits > 1 {
                return None;
            }
            value |= bits << (7 * i);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[i + 1..];
                return Some(value);
            }
        }
        None
    }

    /// A slice written by [`put_slice`]. The length is checked against the
    /// bytes present before anything is made of it.
    #[inline]
    pub(crate) fn slice(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        self.bytes(length)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N).map(|b| b.try_into().expect("bytes(N) has N bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was written is read back, at the edges of each length.
    #[test]
    fn varints_round_trip_at_every_length() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1u64 << shift) - 1, u64::MAX >> shift] {
                let mut out = Vec::new();
                put_varint(&mut out, value);
                assert_eq!(out.len(), varint_bytes(value), "length of {value}");
                let mut reader = Reader::new(&out);
                assert_eq!(reader.varint(), Some(value));
                assert!(reader.is_empty());
            }
        }
    }

    /// Bytes that end early or overflow 64 bits are refused, never misread.
    #[test]
    fn broken_varints_are_refused() {
        assert_eq!(Reader::new(&[]).varint(), None);
        assert_eq!(Reader::new(&[0x80]).varint(), None);
        assert_eq!(Reader::new(&[0xff; 11]).varint(), None);
        let mut too_large = [0xff; 10];
        too_large[9] = 2;
        assert_eq!(Reader::new(&too_large).varint(), None);
    }

    /// A length field larger than the bytes present gives nothing.
    #[test]
    fn slice_length_is_checked_before_use() {
        let mut out = Vec::new();
        put_varint(&mut out, u64::MAX);
        assert_eq!(Reader::new(&out).slice(), None);
        out.clear();
        put_slice(&mut out, b"abc");
        assert_eq!(Reader::new(&out).slice(), Some(&b"abc"[..]));
        assert_eq!(Reader::new(&out[..3]).slice(), None);
    }
}
