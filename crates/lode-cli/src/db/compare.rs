//! `compare`: does the database hold exactly the records of a file? Both are
//! read in full, in the order of keys; of records with equal keys the last one
//! counts, as if they had been loaded in the file's order.

use std::cmp::Ordering;
use std::path::PathBuf;

use clap::Args;
use lode_bench::grouped;
use lodestore::{DbCursor, Family};
use serde_json::json;

use super::sorted::{Sorted, Sorter};
use super::target::Target;
use crate::Done;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::records::{Format, Notation, Record, Records};

/// Keys of each kind of difference that are shown.
const SHOWN_MAX: u64 = 5;

/// `lode db compare`
#[derive(Debug, Args)]
pub struct Compare {
    /// File with the records; - is standard input
    file: PathBuf,
    /// How records are written down
    #[arg(long, value_enum, default_value_t = Format::Lines)]
    format: Format,
    /// With --format lines: each whole line is a key, values are empty
    #[arg(long)]
    line_keys: bool,
    /// Look up each key by itself too, not only by scanning
    #[arg(long)]
    lookups: bool,
}

/// What was found.
#[derive(Debug, Default)]
struct Counts {
    /// Records of the file.
    records: u64,
    /// Entries with the right value.
    same: u64,
    /// Keys of the file that the database lacks.
    missing: u64,
    /// Keys with another value.
    different: u64,
    /// Keys that the file lacks.
    extra: u64,
    /// Lookups that did not give what the file says.
    lookups_wrong: u64,
}

impl Counts {
    fn equal(&self) -> bool {
        self.missing + self.different + self.extra + self.lookups_wrong == 0
    }
}

/// Compares.
/// # Errors: `Negative` if there is any difference.
pub fn run(target: &Target, compare: &Compare) -> Done {
    let notation =
        Notation { format: compare.format, line_keys: compare.line_keys, hex: target.is_hex() };
    notation.check()?;
    let mut records = Records::open(&compare.file, notation)?;
    let (_db, family) = target.open_for_reading()?;
    let sorted = sort(&mut records)?;
    let mut comparison =
        Comparison { counts: Counts::default(), shown: Vec::new(), read: 0, bytes: 0 };
    comparison.counts.records = records.count();
    comparison.run(&family, sorted, compare.lookups)?;
    report(target, &comparison)?;
    match comparison.counts.equal() {
        true => Ok(()),
        false => Err(Failure::Negative("the database and the file differ".to_string())),
    }
}

fn sort(records: &mut Records) -> Result<Sorted, Failure> {
    let mut progress = Progress::new("sort", records.input_bytes());
    let mut sorter = Sorter::default();
    let mut record = Record::default();
    while records.next(&mut record)? {
        sorter.push(&record)?;
        progress.update(records.count(), records.offset());
    }
    sorter.finish()
}

struct Comparison {
    counts: Counts,
    /// The first differences: what is wrong, and with which key.
    shown: Vec<(&'static str, Vec<u8>)>,
    /// Entries of the database and bytes of them, for progress.
    read: u64,
    bytes: u64,
}

impl Comparison {
    /// Walks through both sides at once.
    fn run(&mut self, family: &Family, mut sorted: Sorted, lookups: bool) -> Done {
        let mut progress = Progress::new("compare", None);
        let mut cursor = family.cursor();
        cursor.first();
        let mut record = Record::default();
        let mut more = sorted.next(&mut record)?;
        while more || cursor.valid() {
            let order = match (more, cursor.valid()) {
                (true, true) => record.key[..].cmp(cursor.key()),
                (true, false) => Ordering::Less,
                (false, _) => Ordering::Greater,
            };
            self.judge(order, &record, &cursor);
            if order.is_le() {
                if lookups {
                    self.look_up(family, &record)?;
                }
                more = sorted.next(&mut record)?;
            }
            if order.is_ge() {
                self.read += 1;
                self.bytes += (cursor.key().len() + cursor.value().len()) as u64;
                progress.update(self.read, self.bytes);
                cursor.next();
            }
        }
        Ok(cursor.status()?)
    }

    fn judge(&mut self, order: Ordering, record: &Record, cursor: &DbCursor) {
        let counts = &mut self.counts;
        let (count, kind, key) = match order {
            Ordering::Less => (&mut counts.missing, "missing", &record.key[..]),
            Ordering::Greater => (&mut counts.extra, "extra", cursor.key()),
            Ordering::Equal if cursor.value() == record.value => {
                counts.same += 1;
                return;
            }
            Ordering::Equal => (&mut counts.different, "different", cursor.key()),
        };
        *count += 1;
        if *count <= SHOWN_MAX {
            self.shown.push((kind, key.to_vec()));
        }
    }

    fn look_up(&mut self, family: &Family, record: &Record) -> Done {
        let value = family.get(&record.key)?;
        if value.as_deref() != Some(&record.value[..]) {
            self.counts.lookups_wrong += 1;
            if self.counts.lookups_wrong <= SHOWN_MAX {
                self.shown.push(("lookup is wrong", record.key.clone()));
            }
        }
        Ok(())
    }
}

fn report(target: &Target, comparison: &Comparison) -> Done {
    let counts = &comparison.counts;
    let mut output = target.output();
    let shown = comparison.shown.iter();
    let shown: Vec<String> =
        shown.map(|(kind, key)| format!("{kind}: {}", output.shown(key))).collect();
    let mut text: String = shown.iter().map(|line| format!("{line}\n")).collect();
    text.push_str(&format!(
        "{} records: {} same, {} missing, {} different, {} extra{}\n",
        grouped(counts.records),
        grouped(counts.same),
        grouped(counts.missing),
        grouped(counts.different),
        grouped(counts.extra),
        match counts.lookups_wrong {
            0 => String::new(),
            wrong => format!(", {} lookups wrong", grouped(wrong)),
        }
    ));
    output.report(
        &text,
        json!({
            "equal": counts.equal(), "records": counts.records, "same": counts.same,
            "missing": counts.missing, "different": counts.different, "extra": counts.extra,
            "lookups_wrong": counts.lookups_wrong, "examples": shown,
        }),
    )?;
    output.finish()
}
