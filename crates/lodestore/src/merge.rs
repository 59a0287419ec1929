//! K-way merge.
