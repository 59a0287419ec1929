//! mem.
