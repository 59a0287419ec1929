//! memtable.
