//! The current version.
