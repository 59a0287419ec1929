//! compact.
