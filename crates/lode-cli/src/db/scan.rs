//! `scan`: entries in order, from one key to another, forwards or backwards.

use std::ffi::OsString;

use clap::{Args, ValueEnum};
use lode_bench::parse_count;
use lodestore::{DbCursor, ReadOptions};

use super::target::Target;
use crate::Done;
use crate::output::Output;
use crate::records::write_length_prefixed;

/// `lode db scan`
#[derive(Debug, Args)]
pub struct Scan {
    /// First key (inclusive)
    #[arg(long, value_name = "KEY")]
    from: Option<OsString>,
    /// Where to end (exclusive)
    #[arg(long, value_name = "KEY")]
    to: Option<OsString>,
    /// Only keys that start with this
    #[arg(long, value_name = "KEY")]
    prefix: Option<OsString>,
    /// At most so many entries
    #[arg(long, value_parser = parse_count, value_name = "N")]
    limit: Option<u64>,
    /// From the last key to the first
    #[arg(long)]
    reverse: bool,
    /// Print no values
    #[arg(long)]
    keys_only: bool,
    /// How entries are written; length-prefixed can be loaded and compared
    #[arg(long, value_enum, default_value_t = Format::Text, conflicts_with_all = ["json", "hex"])]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Key, tab, value, line feed; what cannot be printed is escaped
    Text,
    /// 4 bytes of length (little-endian) and the key, the same for the value
    LengthPrefixed,
}

/// Prints entries.
pub fn run(target: &Target, scan: &Scan) -> Done {
    let options = ReadOptions {
        lower_bound: target.bytes_if_any(scan.from.as_deref())?,
        upper_bound: target.bytes_if_any(scan.to.as_deref())?,
        prefix: target.bytes_if_any(scan.prefix.as_deref())?,
        ..ReadOptions::default()
    };
    let (_db, family) = target.open_for_reading()?;
    let mut cursor = family.cursor_with(options);
    let mut output = target.output();
    let limit = scan.limit.unwrap_or(u64::MAX);
    let mut printed = 0;
    if limit > 0 {
        if scan.reverse { cursor.last() } else { cursor.first() }
    }
    while printed < limit && cursor.valid() {
        print(&mut output, scan, &cursor)?;
        printed += 1;
        if scan.reverse { cursor.prev() } else { cursor.next() }
    }
    cursor.status()?;
    output.finish()
}

fn print(output: &mut Output, scan: &Scan, cursor: &DbCursor) -> Done {
    let value = (!scan.keys_only).then(|| cursor.value());
    match scan.format {
        Format::Text => output.entry(cursor.key(), value),
        Format::LengthPrefixed => {
            let mut record = Vec::new();
            write_length_prefixed(&mut record, cursor.key(), value.unwrap_or_default())
                .expect("keys and values are shorter than 4 GiB");
            output.bytes(&record)
        }
    }
}
