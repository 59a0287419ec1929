//! Records behind the last one of a file.

use super::{context, crc32c, id_at};

/// What a record has beside its payload.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Its kind: 1 for a payload.
    pub kind: u8,
    /// Its flags: 0.
    pub flags: u8,
}

/// Appends a record to a segment of the log; `end` is where its last one ends.
pub fn append_to_log(bytes: &mut Vec<u8>, end: u64, frame: Frame, payload: &[u8]) {
    bytes.truncate(end as usize);
    let id = id_at(bytes, 48);
    append(bytes, id, frame, payload);
}

/// Appends a short record with a batch of `count` records to a segment of the log; `end` is
/// where its last one ends.
pub fn append_short_to_log(bytes: &mut Vec<u8>, end: u64, count: u8, records: &[u8]) {
    bytes.truncate(end as usize);
    let id = id_at(bytes, 48);
    let tag = crc32c(&id.to_le_bytes());
    let length = 1 + records.len() as u32;
    let mut covered = (!tag & 0xf_ffff | length << 20).to_le_bytes().to_vec();
    covered.push(count);
    covered.extend(records);
    covered.resize(4 + (1 + records.len()).next_multiple_of(8), 0);
    bytes.extend((crc32c(&covered) ^ context(id, end)).to_le_bytes());
    bytes.extend(covered);
}

/// Appends a record to the file `id`, whose last one ends where the file does.
pub(super) fn append(bytes: &mut Vec<u8>, id: u128, frame: Frame, payload: &[u8]) {
    assert!(bytes.len().is_multiple_of(8), "records end at multiples of 8");
    let offset = bytes.len() as u64;
    let mut filled = payload.to_vec();
    filled.resize(payload.len().next_multiple_of(8), 0);
    let mut covered = crc32c(&id.to_le_bytes()).to_le_bytes().to_vec();
    covered.extend((payload.len() as u32).to_le_bytes());
    covered.extend(crc32c(&filled).to_le_bytes());
    covered.extend([frame.kind, frame.flags]);
    // The watermark: nothing is said to be durable.
    covered.extend([0; 6]);
    bytes.extend((crc32c(&covered) ^ context(id, offset)).to_le_bytes());
    bytes.extend(covered);
    bytes.extend(filled);
}

/// Makes the checksums right of the record at `offset` of the file `id`.
pub(super) fn seal_record(bytes: &mut [u8], id: u128, offset: usize) {
    let length = super::u32_at(bytes, offset + 8) as usize;
    let payload = offset + 24..offset + 24 + length.next_multiple_of(8);
    super::seal(bytes, payload, offset + 12, 0);
    super::seal(bytes, offset + 4..offset + 24, offset, context(id, offset as u64));
}
