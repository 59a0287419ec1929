//! What an open database tells other processes of itself: the file `STATUS`.
//!
//! db::publish -> [`Status::encode`] -> file -> [`Status::read`] -> `lode top`
//!
//! It is text, a fact a line: a word that names it, numbers, and a name at the
//! end where there is one. Lines that begin with an unknown word are skipped.
//! docs/format/status.md describes each. The file is replaced by renaming, so
//! that it is always whole; it is never synced, and says nothing after a crash.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::Path;
use std::str::SplitN;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::filename;
use crate::fs::{Fs, read_full_at};

/// The first line: another number, another meaning.
const HEADING: &str = "lodestore-status 1";
/// No status is longer: a thousand families take a quarter of this.
const BYTES_MAX: u64 = 1 << 20;

/// A database at one moment, and what it did in the time before.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Status {
    /// The process that has it open.
    pub pid: u32,
    /// When this was written, in seconds since 1970.
    pub unix_seconds: u64,
    /// How often it is written.
    pub interval: Duration,
    /// The time that `in_window` counts and latencies are about.
    pub window: Duration,
    /// How long the database is open.
    pub uptime: Duration,
    /// Memory that it holds, its cache included, in bytes.
    pub memory_bytes: u64,
    /// The limit on that, if there is one.
    pub memory_bytes_max: Option<u64>,
    /// Blocks in the cache, in bytes.
    pub cache_bytes: u64,
    /// What the cache may hold.
    pub cache_bytes_max: u64,
    /// For how long the flush at work has run, if one is.
    pub flushing: Option<Duration>,
    /// Snapshots that are kept.
    pub snapshots: usize,
    /// Writes since the oldest of them: what they overwrote or deleted of older
    /// data is kept for it.
    pub snapshot_lag: u64,
    /// What keeps writes or background work from going on, in words.
    pub errors: Vec<String>,
    /// The compactions at work.
    pub compactions: Vec<CompactionStatus>,
    /// The families.
    pub families: Vec<FamilyStatus>,
    /// The counters, by the names in [`Counter`](crate::Counter), that are not 0.
    pub counters: Vec<CounterStatus>,
    /// The operations that took place in the window, by the names in
    /// [`Operation`](crate::Operation).
    pub latencies: Vec<LatencyStatus>,
}

/// A compaction at work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactionStatus {
    /// The level that it takes tables from.
    pub level_from: usize,
    /// The level that it takes them to.
    pub level_to: usize,
    /// Tables that it reads.
    pub tables: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of these that were read so far, from the file.
    pub bytes_read: u64,
    /// How long it runs.
    pub elapsed: Duration,
}

/// A family.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct FamilyStatus {
    /// Its name.
    pub name: String,
    /// Memory of its memtables.
    pub memtable_bytes: u64,
    /// Memtables that wait for their flush.
    pub sealed_memtables: usize,
    /// Its levels, from level 0 down.
    pub levels: Vec<LevelStatus>,
}

/// A level of a family.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LevelStatus {
    /// Tables.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Entries in them.
    pub entries: u64,
    /// How full it is: above 1 it is to be compacted. The last level is never
    /// too full: 0.
    pub score: f64,
}

/// A counter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CounterStatus {
    /// Its name.
    pub name: String,
    /// Its value.
    pub total: u64,
    /// How much it grew in the window.
    pub in_window: u64,
}

/// How long the operations of a kind took that were timed in the window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LatencyStatus {
    /// The operation's name.
    pub name: String,
    /// How many were timed.
    pub samples: u64,
    /// Their mean.
    pub mean: Duration,
    /// Half of them took no longer.
    pub p50: Duration,
    /// 95 of 100 took no longer.
    pub p95: Duration,
    /// 99 of 100 took no longer.
    pub p99: Duration,
    /// 999 of 1,000 took no longer.
    pub p999: Duration,
}

impl Status {
    /// What the database in `directory` last told; `None` if no process tells
    /// anything. Whether the process is still there is for the caller to ask.
    ///
    /// # Errors
    /// `Corruption` if the file is not such; `Incompatible` if a later program
    /// wrote it; `Io`.
    pub fn read(fs: &dyn Fs, directory: &Path) -> Result<Option<Status>> {
        let path = directory.join(filename::STATUS);
        let file = match fs.open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(&path, "open", error)),
        };
        let length = file.length().map_err(|error| Error::io(&path, "get length of", error))?;
        if length > BYTES_MAX {
            let what = format!("{length} bytes are no status");
            return Err(Error::corruption(&path, BYTES_MAX, what));
        }
        let mut bytes = vec![0; length as usize];
        read_full_at(&*file, 0, &mut bytes).map_err(|error| Error::io(&path, "read", error))?;
        let text = str::from_utf8(&bytes).map_err(|error| {
            Error::corruption(&path, error.valid_up_to() as u64, "a status that is not text")
        })?;
        Status::decode(text, &path).map(Some)
    }

    /// The file's text.
    pub(crate) fn encode(&self) -> String {
        let mut out = Encoder(format!("{HEADING}\n"));
        out.line("process", &[u64::from(self.pid), self.unix_seconds], "");
        out.line("times", &[micros(self.interval), micros(self.window), micros(self.uptime)], "");
        out.line("memory", &[self.memory_bytes], "");
        if let Some(bytes) = self.memory_bytes_max {
            out.line("memory-max", &[bytes], "");
        }
        out.line("cache", &[self.cache_bytes, self.cache_bytes_max], "");
        if let Some(time) = self.flushing {
            out.line("flushing", &[micros(time)], "");
        }
        if self.snapshots > 0 {
            out.line("snapshots", &[self.snapshots as u64, self.snapshot_lag], "");
        }
        for error in &self.errors {
            out.line("error", &[], &error.replace(char::is_control, " "));
        }
        for c in &self.compactions {
            let levels = [c.level_from as u64, c.level_to as u64, c.tables as u64];
            let [from, to, tables] = levels;
            let elapsed = micros(c.elapsed);
            out.line("compaction", &[from, to, tables, c.bytes, c.bytes_read, elapsed], "");
        }
        for family in &self.families {
            let numbers = [family.memtable_bytes, family.sealed_memtables as u64];
            out.line("family", &numbers, &family.name);
            for (number, level) in family.levels.iter().enumerate() {
                // In thousandths, so that all numbers are whole ones.
                let score = (level.score * 1000.0).round() as u64;
                let files = level.files as u64;
                out.line("level", &[number as u64, files, level.bytes, level.entries, score], "");
            }
        }
        for counter in &self.counters {
            out.line("counter", &[counter.total, counter.in_window], &counter.name);
        }
        for of in &self.latencies {
            let times = [of.mean, of.p50, of.p95, of.p99, of.p999].map(nanos);
            let numbers: Vec<u64> = std::iter::once(of.samples).chain(times).collect();
            out.line("latency", &numbers, &of.name);
        }
        out.0
    }

    fn decode(text: &str, path: &Path) -> Result<Status> {
        let (heading, rest) = text.split_once('\n').unwrap_or((text, ""));
        match heading.split_once(' ') {
            _ if heading == HEADING => {}
            Some(("lodestore-status", version)) => {
                return Err(Error::incompatible(path, format!("a status of version {version}")));
            }
            _ => return Err(Error::corruption(path, 0, "this is no status")),
        }
        let mut status = Status::default();
        let mut offset = heading.len() + 1;
        for line in rest.split_terminator('\n') {
            let taken = status.take(line);
            taken.ok_or_else(|| {
                Error::corruption(path, offset as u64, "a line of the status ends early")
            })?;
            offset += line.len() + 1;
        }
        Ok(status)
    }

    /// Takes in one line; `None` if something in it is missing or no number.
    fn take(&mut self, line: &str) -> Option<()> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "process" => {
                let ([pid, unix_seconds], _) = numbers(rest)?;
                (self.pid, self.unix_seconds) = (u32::try_from(pid).ok()?, unix_seconds);
            }
            "times" => {
                let (times, _) = numbers(rest)?;
                [self.interval, self.window, self.uptime] = times.map(Duration::from_micros);
            }
            "memory" => [self.memory_bytes] = numbers(rest)?.0,
            "memory-max" => self.memory_bytes_max = Some(numbers::<1>(rest)?.0[0]),
            "cache" => [self.cache_bytes, self.cache_bytes_max] = numbers(rest)?.0,
            "flushing" => self.flushing = Some(Duration::from_micros(numbers::<1>(rest)?.0[0])),
            "snapshots" => {
                let ([count, lag], _) = numbers(rest)?;
                (self.snapshots, self.snapshot_lag) = (count as usize, lag);
            }
            "error" => self.errors.push(rest.to_string()),
            "compaction" => {
                let ([from, to, tables, bytes, bytes_read, elapsed], _) = numbers(rest)?;
                self.compactions.push(CompactionStatus {
                    level_from: from as usize,
                    level_to: to as usize,
                    tables: tables as usize,
                    bytes,
                    bytes_read,
                    elapsed: Duration::from_micros(elapsed),
                });
            }
            "family" => {
                let ([memtable_bytes, sealed], name) = numbers(rest)?;
                let (name, sealed_memtables) = (name.to_string(), sealed as usize);
                let levels = Vec::new();
                self.families.push(FamilyStatus { name, memtable_bytes, sealed_memtables, levels });
            }
            "level" => {
                // Levels come in order, so that the number says nothing new.
                let ([_, files, bytes, entries, score], _) = numbers(rest)?;
                let level = LevelStatus {
                    files: files as usize,
                    bytes,
                    entries,
                    score: score as f64 / 1000.0,
                };
                self.families.last_mut()?.levels.push(level);
            }
            "counter" => {
                let ([total, in_window], name) = numbers(rest)?;
                self.counters.push(CounterStatus { name: name.to_string(), total, in_window });
            }
            "latency" => {
                let ([samples, times @ ..], name) = numbers::<6>(rest)?;
                let [mean, p50, p95, p99, p999] = times.map(Duration::from_nanos);
                let name = name.to_string();
                self.latencies.push(LatencyStatus { name, samples, mean, p50, p95, p99, p999 });
            }
            _ => {} // of a later program
        }
        Some(())
    }

    /// A counter's value and its growth in the window; 0 if it is not there.
    pub fn counter(&self, name: &str) -> (u64, u64) {
        let found = self.counters.iter().find(|counter| counter.name == name);
        found.map_or((0, 0), |counter| (counter.total, counter.in_window))
    }
}

struct Encoder(String);

impl Encoder {
    fn line(&mut self, word: &str, numbers: &[u64], name: &str) {
        self.0.push_str(word);
        for number in numbers {
            write!(self.0, " {number}").expect("a string takes what is written");
        }
        if !name.is_empty() {
            self.0.push(' ');
            self.0.push_str(name);
        }
        self.0.push('\n');
    }
}

/// The `N` numbers that `text` begins with, and the name that follows.
fn numbers<const N: usize>(text: &str) -> Option<([u64; N], &str)> {
    let mut words: SplitN<'_, char> = text.splitn(N + 1, ' ');
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = words.next()?.parse().ok()?;
    }
    Some((numbers, words.next().unwrap_or("")))
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Status {
        let micros = Duration::from_micros;
        Status {
            pid: 77,
            unix_seconds: 1_700_000_000,
            interval: micros(1_000_000),
            window: micros(1_000_123),
            uptime: micros(u64::MAX),
            memory_bytes: 1,
            memory_bytes_max: Some(2),
            cache_bytes: 3,
            cache_bytes_max: 4,
            flushing: Some(micros(5)),
            snapshots: 2,
            snapshot_lag: 6,
            errors: vec!["IO error: append d/000001.wal: no space".to_string()],
            compactions: vec![CompactionStatus {
                level_from: 0,
                level_to: 5,
                tables: 6,
                bytes: 7,
                bytes_read: 8,
                elapsed: micros(9),
            }],
            families: vec![FamilyStatus {
                name: "a name with spaces".to_string(),
                memtable_bytes: 10,
                sealed_memtables: 11,
                levels: vec![
                    LevelStatus { files: 1, bytes: 2, entries: 3, score: 1.25 },
                    LevelStatus::default(),
                ],
            }],
            counters: vec![CounterStatus {
                name: "read.gets".to_string(),
                total: 12,
                in_window: 1,
            }],
            latencies: vec![LatencyStatus {
                name: "get".to_string(),
                samples: 5,
                mean: Duration::from_nanos(1),
                p999: Duration::from_nanos(2),
                ..LatencyStatus::default()
            }],
        }
    }

    /// What is told is what is read; lines of a later program are skipped.
    #[test]
    fn what_is_told_is_read() {
        let path = Path::new("STATUS");
        for status in [example(), Status::default()] {
            let text = status.encode();
            assert_eq!(Status::decode(&text, path).unwrap(), status, "{text}");
            let later = format!("{text}weather 7 fine\n\n");
            assert_eq!(Status::decode(&later, path).unwrap(), status);
        }
        assert_eq!(example().counter("read.gets"), (12, 1));
    }

    /// Other bytes are refused or read as something; they never panic.
    #[test]
    fn other_bytes_are_refused() {
        let path = Path::new("STATUS");
        let text = example().encode();
        for end in 0..text.len() {
            let _ = Status::decode(&text[..end], path);
        }
        let damaged = text.replace("compaction 0", "compaction x");
        let offset = text.find("compaction 0").unwrap() as u64;
        assert!(matches!(Status::decode(&damaged, path),
            Err(Error::Corruption { offset: o, .. }) if o == offset));
        assert!(matches!(
            Status::decode("lodestore-status 2\n", path),
            Err(Error::Incompatible { .. })
        ));
        assert!(Status::decode("", path).is_err_and(|error| error.is_corruption()));
    }
}
