//! Moving entries down the levels: `pick` decides what to compact, `retain`
//! what to keep (both pure), `run` does it.

pub(crate) mod pick;
pub(crate) mod retain;
pub(crate) mod run;
