//! What a run came to: the lines, the summary, and the document of `--json`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::histogram::Latency;
use crate::numbers::{bytes_text, grouped, seconds_text};
use crate::pulse::load::summary;
use crate::pulse::reads::Mode;
use crate::pulse::stream::Stream;
use crate::pulse::watch::Peaks;
use crate::system;

/// Grows when a field changes its meaning or goes; new fields may come without.
const DOCUMENT_VERSION: u32 = 1;

/// What the flags chose.
#[derive(Clone, Debug, Serialize)]
pub struct Choices {
    /// How keys are read.
    pub mode: Mode,
    /// With so many threads.
    pub threads: u8,
    /// Keys of one call, in the mode batch.
    pub batch_keys: Option<u64>,
    /// From the start of a round to that of the next.
    pub interval_seconds: u64,
    /// Nothing is written.
    pub read_only: bool,
    /// Writes are durable before the round is done.
    pub sync: bool,
    /// The page cache is emptied before each round.
    pub drop_caches: bool,
    /// Memory with page cache.
    pub memory_limit_bytes: Option<u64>,
    /// Block cache, if not the engine's default.
    pub cache_bytes: Option<u64>,
    /// The file that the engine's options come from.
    pub options_file: Option<PathBuf>,
}

/// One round.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RoundLine {
    /// Its number in the stream; in runs that only read, 1, 2, ...
    pub round: u64,
    /// Keys that were read, and found as they must be.
    pub reads: u64,
    /// From the sorting of the keys to the last value.
    pub read_seconds: f64,
    /// Processor time of the process meanwhile.
    pub cpu_seconds: f64,
    /// Bytes that the process read from devices meanwhile, compactions included.
    pub device_bytes: Option<u64>,
    /// Requests to devices meanwhile, if a control group counts them.
    pub device_reads: Option<u64>,
    /// Blocks that the reads did not find in the block cache.
    pub blocks_read: u64,
    /// The part that they found there.
    pub cache_hit_rate: Option<f64>,
    /// How long the calls took.
    pub latency: Option<Latency>,
    /// What was written; `None` in runs that only read.
    pub writes: Option<Writes>,
    /// The most that was used.
    pub peaks: Peaks,
}

/// The writes of a round.
#[derive(Clone, Debug, Serialize)]
pub struct Writes {
    /// Entries that were added.
    pub adds: u64,
    /// Keys that were deleted.
    pub deletes: u64,
    /// Time to write the batch.
    pub seconds: f64,
    /// Of it, time held back for background work.
    pub stall_seconds: f64,
}

/// A whole run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    document_version: u32,
    lodestore_version: &'static str,
    unix_seconds: u64,
    processor: Option<String>,
    optimized: bool,
    /// The database's directory.
    pub database: String,
    /// What the database is made of.
    pub stream: Stream,
    /// What the flags chose.
    pub choices: Choices,
    /// Rounds that the database had seen before.
    pub rounds_before: u64,
    /// Entries of the database before the first round.
    pub entries: u64,
    /// Its files, then.
    pub disk_bytes: u64,
    /// Wait for compactions before the first round.
    pub settle_seconds: f64,
    /// The rounds that were done.
    pub rounds: Vec<RoundLine>,
    /// How long the calls of all rounds took.
    pub latency: Option<Latency>,
    /// Bytes of the tables at the end.
    pub table_bytes: u64,
    /// The most memory of the control group, page cache included.
    pub group_peak_bytes: Option<u64>,
    /// False if the user stopped the run.
    pub complete: bool,
}

/// The least, the median and the most of some figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// Half are not above it.
    pub median: f64,
    /// The most.
    pub max: f64,
}

impl Spread {
    /// Of figures; `None` if there are none.
    pub fn of(figures: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut sorted: Vec<f64> = figures.collect();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Spread { min, median: (low + high) / 2.0, max })
    }
}

impl RoundLine {
    /// The line that is printed when the round is done.
    pub fn text(&self) -> String {
        let mut text = format!("read:{} elapsed:{:.3}", self.reads, self.read_seconds);
        if let Some(Writes { adds, deletes, seconds, .. }) = &self.writes {
            let _ = write!(text, " add:{adds} delete:{deletes} elapsed:{seconds:.3}");
        }
        let _ = write!(text, "  round:{} blocks/key:{:.2}", self.round, self.blocks_per_key());
        if let Some(bytes) = self.device_bytes_per_key() {
            let _ = write!(text, " device/key:{:.2}KiB", bytes / 1024.0);
        }
        if let Some(reads) = self.device_reads {
            let _ = write!(text, " requests/key:{:.2}", reads as f64 / self.reads as f64);
        }
        if let Some(rate) = self.cache_hit_rate {
            let _ = write!(text, " cache:{:.1}%", rate * 100.0);
        }
        text + "\n"
    }

    /// Blocks that were not in the block cache, for each key.
    pub fn blocks_per_key(&self) -> f64 {
        self.blocks_read as f64 / self.reads.max(1) as f64
    }

    /// Bytes from devices for each key.
    pub fn device_bytes_per_key(&self) -> Option<f64> {
        Some(self.device_bytes? as f64 / self.reads.max(1) as f64)
    }
}

impl Report {
    /// The report of a run that has done nothing yet.
    pub fn new(stream: &Stream, database: &Path, choices: Choices) -> Report {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        Report {
            document_version: DOCUMENT_VERSION,
            lodestore_version: env!("CARGO_PKG_VERSION"),
            unix_seconds: since_1970.map_or(0, |d| d.as_secs()),
            processor: system::processor(),
            optimized: !cfg!(debug_assertions),
            database: database.display().to_string(),
            stream: stream.clone(),
            choices,
            rounds_before: 0,
            entries: 0,
            disk_bytes: 0,
            settle_seconds: 0.0,
            rounds: Vec::new(),
            latency: None,
            table_bytes: 0,
            group_peak_bytes: None,
            complete: false,
        }
    }

    /// The document of `--json`.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain fields serialize")
    }

    /// What one latency is of.
    pub fn call(&self) -> &'static str {
        if self.choices.mode == Mode::Batch { "call of multi_get" } else { "read" }
    }

    /// Seconds of the rounds' reads.
    pub fn read_seconds(&self) -> Option<Spread> {
        Spread::of(self.rounds.iter().map(|round| round.read_seconds))
    }

    /// Seconds of the rounds' writes.
    pub fn write_seconds(&self) -> Option<Spread> {
        Spread::of(self.rounds.iter().filter_map(|round| Some(round.writes.as_ref()?.seconds)))
    }

    /// The most that any round used.
    pub fn peaks(&self) -> Peaks {
        self.rounds.iter().fold(Peaks::default(), |most, round| most.max(round.peaks))
    }

    /// Labels and texts of what was run on what.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let Choices { mode, threads, .. } = self.choices;
        let mut rows = vec![("Lodestore", format!("version {}", self.lodestore_version))];
        if let Some(processor) = &self.processor {
            rows.push(("CPU", processor.clone()));
        }
        rows.push(("Stream", summary(&self.stream)));
        rows.push((
            "Database",
            format!(
                "{}: {} entries, {} on disk, {} rounds so far",
                self.database,
                grouped(self.entries),
                bytes_text(self.disk_bytes),
                self.rounds_before
            ),
        ));
        let mut how = format!("{}, {threads} threads", mode.name());
        if threads == 1 {
            how.pop();
        }
        if let Some(keys) = self.choices.batch_keys {
            let _ = write!(how, ", {keys} keys a call");
        }
        if self.choices.read_only {
            how.push_str(", nothing is written");
        }
        if self.choices.sync {
            how.push_str(", writes are durable");
        }
        rows.push(("Mode", how));
        rows.push(("Memory", self.memory()));
        if let Some(path) = &self.choices.options_file {
            rows.push(("Options", path.display().to_string()));
        }
        if self.settle_seconds >= 0.5 {
            rows.push(("Waited", format!("{} for compactions", seconds_text(self.settle_seconds))));
        }
        if !self.optimized {
            let what = "built without optimization: figures mean nothing";
            rows.push(("WARNING", what.to_string()));
        }
        rows
    }

    fn memory(&self) -> String {
        let limit = match self.choices.memory_limit_bytes {
            Some(bytes) => format!("limited to {}, page cache included", bytes_text(bytes)),
            None => "not limited".to_string(),
        };
        let cache = self.choices.cache_bytes;
        let cache = cache.map_or(String::new(), |b| format!(", block cache {}", bytes_text(b)));
        let dropped = ", the database is taken out of the page cache before each round";
        limit + &cache + if self.choices.drop_caches { dropped } else { "" }
    }

    /// What is printed before the first round.
    pub fn header_text(&self) -> String {
        let rows = self.settings().into_iter();
        let rows = rows.map(|(label, text)| format!("{:<11} {text}\n", format!("{label}:")));
        rows.collect::<String>() + "------------------------------------------------\n"
    }

    /// Labels and texts of what came out.
    pub fn figures(&self) -> Vec<(&'static str, String)> {
        let mut rows = Vec::new();
        let Some(read) = self.read_seconds() else {
            return rows;
        };
        let keys = self.rounds[0].reads;
        let spread = |s: Spread| {
            format!("median {:.3} s, best {:.3} s, worst {:.3} s", s.median, s.min, s.max)
        };
        let rate = grouped((keys as f64 / read.median.max(1e-9)) as u64);
        rows.push(("reads", format!("{} ({rate} keys a second)", spread(read))));
        if let Some(write) = self.write_seconds() {
            rows.push(("writes", spread(write)));
            let stalls = self.rounds.iter().filter_map(|r| Some(r.writes.as_ref()?.stall_seconds));
            rows.push(("held back", format!("{} in all", seconds_text(stalls.sum()))));
        }
        if let Some(l) = &self.latency {
            let (p50, p99, p99_9) = (l.p50_micros, l.p99_micros, l.p99_9_micros);
            let call = self.call();
            let max = l.max_micros;
            rows.push((
                "latency",
                format!("a {call}: p50 {p50:.1} us, p99 {p99:.1} us, p99.9 {p99_9:.0} us, max {max:.0} us"),
            ));
        }
        rows.push(("device", self.device()));
        let peaks = self.peaks();
        rows.push(("peak CPU", format!("{:.1} processors busy", peaks.processors)));
        let mut memory = format!("{} resident", bytes_text(peaks.rss_bytes));
        if let Some(bytes) = self.group_peak_bytes {
            let _ = write!(memory, ", {} of the limit with page cache", bytes_text(bytes));
        }
        rows.push(("peak memory", memory));
        rows.push(("tables", bytes_text(self.table_bytes)));
        rows
    }

    fn device(&self) -> String {
        let keys: u64 = self.rounds.iter().map(|round| round.reads).sum();
        let per_key = |count: u64| count as f64 / keys.max(1) as f64;
        let blocks = self.rounds.iter().map(|round| round.blocks_read).sum();
        let mut text = format!("{:.2} blocks a key were not in the block cache", per_key(blocks));
        let bytes: Option<u64> = self.rounds.iter().map(|round| round.device_bytes).sum();
        if let Some(bytes) = bytes {
            let _ = write!(text, "; {:.2} KiB a key came from devices", per_key(bytes) / 1024.0);
        }
        let requests: Option<u64> = self.rounds.iter().map(|round| round.device_reads).sum();
        if let Some(requests) = requests {
            let _ = write!(text, " with {:.2} requests", per_key(requests));
        }
        text
    }

    /// What is printed after the last round.
    pub fn summary_text(&self) -> String {
        let mut text = format!("\nSummary of {} rounds\n", self.rounds.len());
        for (label, figure) in self.figures() {
            let _ = writeln!(text, "  {label:<12} {figure}");
        }
        let _ = writeln!(text, "{}", self.verdict());
        text
    }

    /// One sentence about the correctness of what was read.
    pub fn verdict(&self) -> String {
        let keys: u64 = self.rounds.iter().map(|round| round.reads).sum();
        let stopped = if self.complete { "" } else { " The run was stopped early." };
        format!("All {} reads found the value that the stream says.{stopped}", grouped(keys))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::pulse::stream::Shape;

    /// A report of two rounds with figures that are easy to follow.
    pub fn report() -> Report {
        let stream = Stream {
            shape: Shape::Classic,
            seed: 1,
            entries: 1_000_000,
            reads: 90_000,
            adds: 210_000,
            deletes: 30_000,
        };
        let choices = Choices {
            mode: Mode::Sort,
            threads: 1,
            batch_keys: None,
            interval_seconds: 0,
            read_only: false,
            sync: false,
            drop_caches: true,
            memory_limit_bytes: Some(1 << 30),
            cache_bytes: Some(64 << 20),
            options_file: Some("tuned".into()),
        };
        let mut report = Report::new(&stream, Path::new("/data/<utxo> & more"), choices);
        report.rounds = [1.5, 2.5].into_iter().map(round).collect();
        report.complete = true;
        report
    }

    fn round(seconds: f64) -> RoundLine {
        let writes = Writes { adds: 210_000, deletes: 30_000, seconds: 0.25, stall_seconds: 0.0 };
        RoundLine {
            round: seconds as u64,
            reads: 90_000,
            read_seconds: seconds,
            device_bytes: Some(90_000 * 4_096),
            blocks_read: 99_000,
            cache_hit_rate: Some(0.125),
            writes: Some(writes),
            ..RoundLine::default()
        }
    }

    /// The line starts as the original's did, so that its readers go on working.
    #[test]
    fn line_starts_as_the_originals() {
        let text = report().rounds[0].text();
        let start = "read:90000 elapsed:1.500 add:210000 delete:30000 elapsed:0.250  round:1 ";
        assert!(text.starts_with(start), "{text}");
        assert!(text.ends_with(" blocks/key:1.10 device/key:4.00KiB cache:12.5%\n"), "{text}");
        let only_reads = RoundLine { writes: None, ..report().rounds[0].clone() };
        assert!(only_reads.text().starts_with("read:90000 elapsed:1.500  round:1 "));
    }

    /// The summary has the spread of the rounds and what a key cost.
    #[test]
    fn summary_tells_spread_and_cost() {
        let text = report().summary_text();
        for part in [
            "median 2.000 s, best 1.500 s, worst 2.500 s (45,000 keys a second)",
            "median 0.250 s",
            "1.10 blocks a key were not in the block cache; 4.00 KiB a key came from devices",
            "All 180,000 reads found the value",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        let header = report().header_text();
        assert!(
            header.contains("limited to 1.0 GiB, page cache included, block cache 64.0 MiB, the")
        );
        assert!(header.contains("Options:    tuned\n"), "{header}");
        let mut stopped = report();
        stopped.rounds.clear();
        stopped.complete = false;
        assert!(stopped.summary_text().contains("stopped early"));
    }
}
