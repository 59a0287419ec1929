//! version.
