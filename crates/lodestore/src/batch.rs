//! Write batches.
