//! Bytes as text: hexadecimal, and an escaped form that is always one line.

use std::fmt::Write as _;

/// `bytes` as lower-case hexadecimal digits.
pub fn to_hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Reads hexadecimal digits of either case; `0x` before them is allowed.
pub fn from_hex(text: &[u8]) -> Result<Vec<u8>, String> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    let wrong = || format!("'{}' is not hexadecimal", String::from_utf8_lossy(text));
    if !digits.len().is_multiple_of(2) {
        return Err(format!("{}: the number of digits is odd", wrong()));
    }
    let value = |digit: u8| (digit as char).to_digit(16).map(|d| d as u8);
    digits
        .chunks_exact(2)
        .map(|pair| Some(value(pair[0])? << 4 | value(pair[1])?))
        .collect::<Option<Vec<u8>>>()
        .ok_or_else(wrong)
}

/// Appends `bytes` so that they stay in one line and one field: characters
/// that can be printed as they are; backslash, tab, line feed, carriage return
/// as `\\`, `\t`, `\n`, `\r`; all else as `\x` and two digits.
pub fn push_escaped(to: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => to.extend_from_slice(b"\\\\"),
                '\t' => to.extend_from_slice(b"\\t"),
                '\n' => to.extend_from_slice(b"\\n"),
                '\r' => to.extend_from_slice(b"\\r"),
                c if c.is_control() => {
                    let mut buffer = [0; 4];
                    push_codes(to, c.encode_utf8(&mut buffer).as_bytes());
                }
                c => {
                    let mut buffer = [0; 4];
                    to.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
                }
            }
        }
        push_codes(to, chunk.invalid());
    }
}

fn push_codes(to: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        to.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
    }
}

/// [`push_escaped`] into a string.
pub fn escaped(bytes: &[u8]) -> String {
    let mut text = Vec::with_capacity(bytes.len());
    push_escaped(&mut text, bytes);
    String::from_utf8(text).expect("what is not UTF-8 was escaped")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte survives the way through hexadecimal digits.
    #[test]
    fn hex_goes_both_ways() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(from_hex(to_hex(&all).as_bytes()), Ok(all));
        assert_eq!(from_hex(b"0xFf00"), Ok(vec![255, 0]));
        assert_eq!(from_hex(b""), Ok(vec![]));
        for wrong in [&b"f"[..], b"fg", b"0x0", b"+1", "\u{fffd}".as_bytes()] {
            assert!(from_hex(wrong).is_err(), "{wrong:?} was taken");
        }
    }

    /// A key with a tab or a line feed in it does not become two fields or lines.
    #[test]
    fn escaped_text_stays_in_one_field() {
        assert_eq!(escaped(b"a\tb\nc\\d\r"), r"a\tb\nc\\d\r");
        assert_eq!(escaped(b"\x00\xff\x1b[0m"), r"\x00\xff\x1b[0m");
        assert_eq!(escaped("größe 鍵".as_bytes()), "größe 鍵");
        assert_eq!(escaped("\u{85}".as_bytes()), r"\xc2\x85");
    }
}
