//! Cutting a large compaction into parts that can be done at the same time.
//!
//! Parts are ranges of user keys, so that all versions of a key are in one.
//! The borders are those of input tables: known without reading anything, and
//! the bytes between them too.

use super::Plan;
use crate::key::KeyOrder;

/// A part is worth a thread of its own if it has about this many output tables.
const PART_TABLES_MIN: u64 = 2;

/// Keys at which `plan` is to be cut into at most `parts_max` parts of about
/// the same size: a part ends before such a key, and the next begins with it.
/// None for a compaction that is small, that reads nothing, or whose inputs
/// all begin together.
pub(crate) fn cuts(
    plan: &Plan,
    order: &KeyOrder,
    parts_max: usize,
    table_bytes: u64,
) -> Vec<Vec<u8>> {
    let part_bytes_min = table_bytes.saturating_mul(PART_TABLES_MIN).max(1);
    let parts = (plan.bytes() / part_bytes_min).min(parts_max as u64);
    // A range tombstone may span any border.
    let is_plain = !plan.trivial_move && plan.tables().all(|t| t.meta.range_tombstones == 0);
    if parts < 2 || !is_plain {
        return Vec::new();
    }
    // Tables of level 0 may each span everything: their borders say nothing.
    let sorted = plan.inputs.iter().skip(usize::from(plan.level_from == 0)).flatten();
    let mut borders: Vec<(&[u8], u64)> =
        sorted.map(|table| (&table.meta.smallest.user_key[..], table.meta.bytes)).collect();
    borders.sort_by(|a, b| order.compare(a.0, b.0));
    let total: u64 = borders.iter().map(|(_, bytes)| bytes).fold(0, |a, &b| a.saturating_add(b));
    let mut cuts: Vec<Vec<u8>> = Vec::new();
    let mut before = 0u64;
    for (key, bytes) in borders {
        let is_due = before as f64 >= total as f64 / parts as f64 * (cuts.len() + 1) as f64;
        let last = cuts.last().map_or(&plan.range.first, |last| last);
        if is_due && cuts.len() as u64 + 1 < parts && order.compare(key, last).is_gt() {
            cuts.push(key.to_vec());
        }
        before = before.saturating_add(bytes);
    }
    cuts
}
