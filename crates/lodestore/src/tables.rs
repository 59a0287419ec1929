//! Open tables.
