//! `compact`, `checkpoint`: work on whole tables.

use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

use clap::Args;
use lode_bench::{bytes_text, seconds_text};
use serde_json::json;

use super::target::{Absent, Target};
use crate::Done;

/// `lode db compact`
#[derive(Debug, Args)]
pub struct Compact {
    /// First key (inclusive)
    #[arg(long, value_name = "KEY")]
    from: Option<OsString>,
    /// Last key (inclusive)
    #[arg(long, value_name = "KEY")]
    to: Option<OsString>,
    /// Write every table of the range anew, with the options that hold now (see --options), also
    /// where there is nothing to drop
    #[arg(long)]
    rewrite: bool,
}

/// Compacts, and tells what it was good for.
pub fn compact(target: &Target, compact: &Compact) -> Done {
    let from = target.bytes_if_any(compact.from.as_deref())?;
    let to = target.bytes_if_any(compact.to.as_deref())?;
    let (db, family) = target.open_for_writing(Absent::Refuse)?;
    let start = Instant::now();
    // What is in memory counts too.
    family.flush()?;
    let before = family.stats().table_bytes();
    match compact.rewrite {
        true => family.rewrite_range(from.as_deref(), to.as_deref())?,
        false => family.compact_range(from.as_deref(), to.as_deref())?,
    }
    db.wait_for_background()?;
    let after = family.stats().table_bytes();
    let seconds = start.elapsed().as_secs_f64();
    let text = format!(
        "compacted {} into {} in {}\n",
        bytes_text(before),
        bytes_text(after),
        seconds_text(seconds)
    );
    let mut output = target.output();
    output.report(
        &text,
        json!({ "bytes_before": before, "bytes_after": after, "seconds": seconds }),
    )?;
    output.finish()
}

/// Makes a copy that can be opened.
pub fn checkpoint(target: &Target, directory: &Path) -> Done {
    let (db, _family) = target.open_for_writing(Absent::Refuse)?;
    Ok(db.checkpoint(directory)?)
}
