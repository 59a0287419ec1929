//! Bytes in texts.

use super::sealing::crc32c;

/// So many bytes at the beginning of what is not written out.
const BEGINNING_BYTES: usize = 16;

/// `bytes` as text: escaped, or if there are more than `whole_bytes_max` their
/// beginning, length and CRC-32C.
pub(super) fn shown(bytes: &[u8], whole_bytes_max: usize) -> String {
    if bytes.len() <= whole_bytes_max {
        return bytes.escape_ascii().to_string();
    }
    let beginning = bytes[..BEGINNING_BYTES].escape_ascii();
    format!("{beginning}.. ({} bytes, {:08x})", bytes.len(), crc32c(bytes))
}
