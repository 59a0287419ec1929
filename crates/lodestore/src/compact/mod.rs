//! Moving entries down the levels.

pub(crate) mod pick;
pub(crate) mod retain;
