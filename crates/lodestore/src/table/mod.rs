//! Tables: sorted, immutable files of entries.
pub(crate) mod meta;
