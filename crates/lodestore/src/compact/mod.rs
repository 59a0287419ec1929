//! Moving entries down the levels.
