//! Block cache.
