//! Watching the steps: time, memory, space, stalls.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lode_bench::histogram::Histogram;
use lode_bench::{bytes_text, grouped, system};
use lodestore::Db;

use crate::Outcome;

/// Between two looks at the process's memory.
const PAUSE: Duration = Duration::from_millis(20);
/// What the process may take beyond 1.05 times the budget.
const CONSTANT_BYTES: u64 = 16 << 20;

/// Tells what each step took, and the most memory of all.
pub(crate) struct Meter {
    directory: PathBuf,
    peak_bytes: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    watcher: Option<std::thread::JoinHandle<()>>,
}

impl Meter {
    pub(crate) fn new(directory: &Path) -> Meter {
        let (peak_bytes, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (peak, stopped) = (Arc::clone(&peak_bytes), Arc::clone(&stop));
        let watcher = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                peak.fetch_max(own_bytes().unwrap_or(0), Ordering::Relaxed);
                std::thread::sleep(PAUSE);
            }
        });
        Meter { directory: directory.to_path_buf(), peak_bytes, stop, watcher: Some(watcher) }
    }

    /// Does a step of `count` operations and says what it took.
    pub(crate) fn step(
        &mut self,
        db: &Db,
        name: &str,
        count: u64,
        work: impl FnOnce(&mut Meter, &Db) -> Outcome,
    ) -> Outcome {
        let begin = Instant::now();
        work(self, db).map_err(|error| format!("{name}: {error}"))?;
        let seconds = begin.elapsed().as_secs_f64();
        let rate = match count {
            0 => String::new(),
            count => format!(
                "{} ops, {} ops/s, ",
                grouped(count),
                grouped((count as f64 / seconds) as u64)
            ),
        };
        let space = system::directory_bytes(&self.directory)?;
        let stats = db.stats();
        let amplification = match stats.user_bytes_written {
            0 => String::new(),
            _ => format!(", write amplification {:.2}", stats.write_amplification()),
        };
        println!(
            "{name:<22} {seconds:>9.3} s  {rate}memory {} (peak {}), directory {}{amplification}",
            bytes_text(own_bytes().unwrap_or(0)),
            bytes_text(self.peak_bytes.load(Ordering::Relaxed)),
            bytes_text(space),
        );
        Ok(())
    }

    /// Says how long single operations took, the last one of which was the
    /// `done`th.
    pub(crate) fn latencies(&mut self, done: u64, latencies: &Histogram) {
        let Some(l) = latencies.latency() else { return };
        println!(
            "  up to {:>13}: p50 {:.1} us, p99 {:.1} us, p99.9 {:.1} us, p99.99 {:.0} us, max {:.1} ms",
            grouped(done),
            l.p50_micros,
            l.p99_micros,
            l.p99_9_micros,
            l.p99_99_micros,
            l.max_micros / 1e3,
        );
    }

    /// Says what writers waited for.
    pub(crate) fn waits(&mut self, db: &Db) {
        for name in ["stalls", "long-waits", "levels"] {
            let text = db.property(&format!("lodestore.{name}")).unwrap_or_default();
            println!("{name}:\n{}", if text.is_empty() { "none" } else { text.trim_end() });
        }
    }

    /// # Errors
    /// If the process took more memory than a budget of `budget_bytes` allows.
    pub(crate) fn finish(mut self, budget_bytes: u64) -> Outcome {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher.take() {
            watcher.join().map_err(|_| "the watcher panicked")?;
        }
        let peak = self.peak_bytes.load(Ordering::Relaxed);
        let allowed = budget_bytes / 100 * 105 + CONSTANT_BYTES;
        println!(
            "most memory, anonymous and shared: {}; with files mapped {}; allowed {}",
            bytes_text(peak),
            bytes_text(system::peak_rss_bytes().unwrap_or(0)),
            bytes_text(allowed)
        );
        match peak <= allowed {
            true => Ok(()),
            false => Err("more memory than the budget allows".into()),
        }
    }
}

/// Resident memory of this process that is anonymous or shared.
fn own_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let bytes = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib * 1024)
    };
    Some(bytes("RssAnon:")? + bytes("RssShmem:")?)
}
