//! fault.
