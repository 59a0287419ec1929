//! An order under which different bytes are one key.

use std::cmp::Ordering;

use lodestore::Comparator;

/// Bytewise, but for the case of ASCII letters, which does not matter.
#[derive(Debug)]
pub(super) struct AnyCase;

impl Comparator for AnyCase {
    fn name(&self) -> &str {
        "testkit.AnyCase"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let folded = |key: &[u8]| key.to_ascii_lowercase();
        folded(a).cmp(&folded(b))
    }
}
