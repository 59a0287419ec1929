//! Manifests with other fields.

use super::record::{self, Frame, append};
use super::{id_at, seal_manifest_header, u32_at};

/// Where the first record of a manifest begins.
const RECORDS_AT: usize = 128;
const PAYLOAD: u8 = 1;

/// Sets a byte of the header.
pub fn set_manifest_byte(bytes: &mut [u8], at: usize, to: u8) {
    bytes[at] = to;
    seal_manifest_header(bytes);
}

/// Appends a record. A payload has the next edit's number in front, and no flags; it
/// is one edit of these fields.
pub fn append_to_manifest(bytes: &mut Vec<u8>, frame: Frame, fields: &[u8]) {
    let id = id_at(bytes, 40);
    let mut payload = (last_edit(bytes) + 1).to_le_bytes().to_vec();
    payload.extend([0, fields.len() as u8]);
    payload.extend(fields);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    append(bytes, id, frame, &payload);
}

/// Changes the first `from` in an edit to `to`, which is as long.
///
/// # Panics
/// If no edit has it.
pub fn change_manifest_field(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len(), "lengths stay");
    let id = id_at(bytes, 40);
    for offset in payloads(bytes) {
        let payload = offset + 24..offset + 24 + u32_at(bytes, offset + 8) as usize;
        let found = bytes[payload.clone()].windows(from.len()).position(|part| part == from);
        if let Some(at) = found {
            bytes[payload.start + at..][..to.len()].copy_from_slice(to);
            return record::seal_record(bytes, id, offset);
        }
    }
    panic!("no edit has {from:x?}");
}

/// Where each record with a payload begins.
fn payloads(bytes: &[u8]) -> Vec<usize> {
    let (mut found, mut at) = (Vec::new(), RECORDS_AT);
    while at + 24 <= bytes.len() {
        if bytes[at + 16] == PAYLOAD {
            found.push(at);
        }
        at += 24 + (u32_at(bytes, at + 8) as usize).next_multiple_of(8);
    }
    found
}

fn last_edit(bytes: &[u8]) -> u64 {
    let last = *payloads(bytes).last().expect("there is a checkpoint");
    u64::from_le_bytes(*bytes[last + 24..].first_chunk().expect("eight bytes"))
}
