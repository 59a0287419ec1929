//! `load`: the records of a file or a pipe, written in batches. Memory does not
//! depend on their number.

use std::path::PathBuf;

use clap::Args;
use lode_bench::{bytes_text, grouped, seconds_text};
use lodestore::{Db, Family, WriteBatch, WriteOptions};
use serde_json::json;

use super::target::{Absent, Target};
use crate::Done;
use crate::progress::Progress;
use crate::records::{Format, Notation, Record, Records};

/// A batch is written when it has so many bytes: large enough that the cost of
/// a write is shared by many records, small beside a memtable.
const BATCH_BYTES: usize = 256 << 10;

/// `lode db load`
#[derive(Debug, Args)]
pub struct Load {
    /// File with the records; - is standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// How records are written down
    #[arg(long, value_enum, default_value_t = Format::Lines)]
    format: Format,
    /// With --format lines: each whole line is a key, values are empty
    #[arg(long)]
    line_keys: bool,
    /// Create the database and the family if they are not there
    #[arg(long)]
    create: bool,
    /// Make each batch durable before the next; without it, everything is at the end
    #[arg(long)]
    sync: bool,
}

/// Loads records.
pub fn run(target: &Target, load: &Load) -> Done {
    let notation =
        Notation { format: load.format, line_keys: load.line_keys, hex: target.is_hex() };
    notation.check()?;
    let mut records = Records::open(&load.file, notation)?;
    let absent = if load.create { Absent::Create } else { Absent::Refuse };
    let (db, family) = target.open_for_writing(absent)?;
    let mut loader = Loader {
        db: &db,
        family: &family,
        options: WriteOptions { sync: load.sync, ..Default::default() },
        batch: WriteBatch::new(),
        written: 0,
        bytes: 0,
    };
    let mut progress = Progress::new("load", records.input_bytes());
    loader.load(&mut records, &mut progress)?;
    db.sync_log()?;

    let seconds = progress.elapsed().as_secs_f64();
    let Loader { written, bytes, .. } = loader;
    drop(progress);
    let rate = (written as f64 / seconds.max(1e-9)) as u64;
    let text = format!(
        "loaded {} records, {} of keys and values, in {} ({} records/s)\n",
        grouped(written),
        bytes_text(bytes),
        seconds_text(seconds),
        grouped(rate)
    );
    let mut output = target.output();
    output.report(&text, json!({ "records": written, "bytes": bytes, "seconds": seconds }))?;
    output.finish()
}

struct Loader<'a> {
    db: &'a Db,
    family: &'a Family,
    options: WriteOptions,
    batch: WriteBatch,
    /// Records that were written.
    written: u64,
    /// Bytes of their keys and values, and of those in the batch.
    bytes: u64,
}

impl Loader<'_> {
    /// Writes all records. Those before a bad one are written too.
    fn load(&mut self, records: &mut Records, progress: &mut Progress) -> Done {
        let mut record = Record::default();
        loop {
            match records.next(&mut record) {
                Ok(true) => {}
                Ok(false) => return self.write(),
                Err(failure) => {
                    self.write()?;
                    let kept = format!("{} records before it were loaded", self.written);
                    return Err(failure.noting(&kept));
                }
            }
            self.batch.put_in(self.family.id(), &record.key, &record.value);
            self.bytes += (record.key.len() + record.value.len()) as u64;
            if self.batch.bytes() >= BATCH_BYTES {
                self.write()?;
            }
            progress.update(records.count(), records.offset());
        }
    }

    fn write(&mut self) -> Done {
        if !self.batch.is_empty() {
            let records = self.batch.len() as u64;
            self.db.write_with(&self.options, &mut self.batch)?;
            self.batch.clear();
            self.written += records;
        }
        Ok(())
    }
}
