//! Records of any order and number, sorted by key in little memory: sorted runs
//! in temporary files, merged. Independent of the engine, because what it gives
//! is what the engine is compared with.
//! Invariant: of records with equal keys the last one pushed is given.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek};

use crate::failure::Failure;
use crate::records::{Record, write_length_prefixed};

/// Bytes of records that are sorted in memory at a time.
const RUN_BYTES: usize = 64 << 20;
/// Files that may be open at a time; more runs are merged into one first.
const RUNS_MAX: usize = 128;

/// Takes records in any order.
pub struct Sorter {
    /// Keys and values of the run that grows.
    bytes: Vec<u8>,
    /// Where they are in `bytes`: key start, value start, value end.
    entries: Vec<(usize, usize, usize)>,
    /// Older runs first.
    runs: Vec<File>,
    run_bytes: usize,
    runs_max: usize,
}

impl Default for Sorter {
    fn default() -> Sorter {
        Sorter::with_limits(RUN_BYTES, RUNS_MAX)
    }
}

impl Sorter {
    fn with_limits(run_bytes: usize, runs_max: usize) -> Sorter {
        let (bytes, entries, runs) = (Vec::new(), Vec::new(), Vec::new());
        Sorter { bytes, entries, runs, run_bytes, runs_max }
    }

    /// Adds a record; it takes the place of an earlier one with the same key.
    pub fn push(&mut self, record: &Record) -> Result<(), Failure> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&record.key);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(&record.value);
        self.entries.push((start, middle, self.bytes.len()));
        let used = self.bytes.len() + self.entries.len() * size_of::<(usize, usize, usize)>();
        if used >= self.run_bytes { self.spill().map_err(failed) } else { Ok(()) }
    }

    /// All records in the order of their keys.
    pub fn finish(mut self) -> Result<Sorted, Failure> {
        self.spill().map_err(failed)?;
        Sorted::new(self.runs).map_err(failed)
    }

    /// Writes what is in memory into a run of its own.
    fn spill(&mut self) -> io::Result<()> {
        let bytes = &self.bytes;
        // Stable: of equal keys the one pushed last stays last.
        self.entries.sort_by(|a, b| bytes[a.0..a.1].cmp(&bytes[b.0..b.1]));
        let mut run = BufWriter::new(tempfile::tempfile()?);
        for (at, &(start, middle, end)) in self.entries.iter().enumerate() {
            let key = &bytes[start..middle];
            let next = self.entries.get(at + 1);
            if next.is_none_or(|next| bytes[next.0..next.1] != *key) {
                write_length_prefixed(&mut run, key, &bytes[middle..end])?;
            }
        }
        self.runs.push(finish_run(run)?);
        self.bytes.clear();
        self.entries.clear();
        if self.runs.len() >= self.runs_max { self.merge_runs() } else { Ok(()) }
    }

    fn merge_runs(&mut self) -> io::Result<()> {
        let mut sorted = Sorted::new(std::mem::take(&mut self.runs))?;
        let mut run = BufWriter::new(tempfile::tempfile()?);
        let mut record = Record::default();
        while sorted.next_record(&mut record)? {
            write_length_prefixed(&mut run, &record.key, &record.value)?;
        }
        self.runs.push(finish_run(run)?);
        Ok(())
    }
}

fn finish_run(run: BufWriter<File>) -> io::Result<File> {
    let mut file = run.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(file)
}

fn failed(error: io::Error) -> Failure {
    let place = std::env::temp_dir();
    Failure::Error(format!("sorting the records in {}: {error}", place.display()))
}

/// Gives records in the order of their keys, each key once.
pub struct Sorted {
    runs: Vec<BufReader<File>>,
    /// The first record of each run; the newest run's first of equal keys.
    heap: BinaryHeap<Reverse<Head>>,
}

/// Ordered by key, then the newest run first (`order` falls with age).
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    key: Vec<u8>,
    order: Reverse<usize>,
    value: Vec<u8>,
}

impl Sorted {
    fn new(files: Vec<File>) -> io::Result<Sorted> {
        let runs = files.into_iter().map(BufReader::new).collect();
        let mut sorted = Sorted { runs, heap: BinaryHeap::new() };
        for run in 0..sorted.runs.len() {
            sorted.refill(run, Record::default())?;
        }
        Ok(sorted)
    }

    /// The next record; false if there is none.
    pub fn next(&mut self, record: &mut Record) -> Result<bool, Failure> {
        self.next_record(record).map_err(failed)
    }

    fn next_record(&mut self, record: &mut Record) -> io::Result<bool> {
        let Some(Reverse(first)) = self.heap.pop() else {
            return Ok(false);
        };
        while self.heap.peek().is_some_and(|Reverse(older)| older.key == first.key) {
            if let Some(Reverse(older)) = self.heap.pop() {
                self.refill(older.order.0, Record { key: older.key, value: older.value })?;
            }
        }
        let spare = std::mem::replace(record, Record { key: first.key, value: first.value });
        self.refill(first.order.0, spare)?;
        Ok(true)
    }

    /// Puts the next record of `run` into the heap, in the buffers of `spare`.
    fn refill(&mut self, run: usize, mut spare: Record) -> io::Result<()> {
        let reader = &mut self.runs[run];
        if io::BufRead::fill_buf(reader)?.is_empty() {
            return Ok(());
        }
        for field in [&mut spare.key, &mut spare.value] {
            let mut length = [0; 4];
            reader.read_exact(&mut length)?;
            field.resize(u32::from_le_bytes(length) as usize, 0);
            reader.read_exact(field)?;
        }
        let Record { key, value } = spare;
        self.heap.push(Reverse(Head { key, order: Reverse(run), value }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn record(key: &str, value: String) -> Record {
        Record { key: key.as_bytes().to_vec(), value: value.into_bytes() }
    }

    /// Whatever the size of runs and the number of files, each key comes once,
    /// in order, with the value that was pushed last.
    #[test]
    fn last_value_of_each_key_comes_in_order() {
        for (run_bytes, runs_max) in [(1, 2), (1, 7), (300, 3), (1 << 20, 128)] {
            let mut sorter = Sorter::with_limits(run_bytes, runs_max);
            let mut expected = BTreeMap::new();
            for n in 0..200u32 {
                let record = record(&format!("k{}", n * 37 % 71), format!("value {n}"));
                sorter.push(&record).expect("temporary files");
                expected.insert(record.key, record.value);
            }
            let mut sorted = sorter.finish().expect("temporary files");
            let (mut record, mut found) = (Record::default(), Vec::new());
            while sorted.next(&mut record).expect("temporary files") {
                found.push((record.key.clone(), record.value.clone()));
            }
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "runs of {run_bytes}");
        }
    }

    /// Empty keys and values are records, and no records are none.
    #[test]
    fn empty_records_and_no_records_are_told_apart() {
        let mut record = Record::default();
        let mut none = Sorter::default().finish().expect("temporary files");
        assert!(!none.next(&mut record).expect("temporary files"));
        let mut sorter = Sorter::default();
        sorter.push(&Record::default()).expect("temporary files");
        let mut one = sorter.finish().expect("temporary files");
        assert!(one.next(&mut record).expect("temporary files"));
        assert_eq!(record, Record::default());
        assert!(!one.next(&mut record).expect("temporary files"));
    }
}
