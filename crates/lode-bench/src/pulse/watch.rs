//! Looks at this process while it works: the most memory and the most
//! processor time that it used, by samples.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::system;

/// Between samples: short enough to see a round of reads, long enough to cost
/// nothing.
const PAUSE: Duration = Duration::from_millis(50);

/// What samples have seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Peaks {
    /// Resident memory of the process, in bytes; 0 where the system does not tell.
    pub rss_bytes: u64,
    /// Processors busy at once for this process, between two samples.
    pub processors: f64,
}

impl Peaks {
    /// The more of each.
    pub fn max(self, other: Peaks) -> Peaks {
        Peaks {
            rss_bytes: self.rss_bytes.max(other.rss_bytes),
            processors: self.processors.max(other.processors),
        }
    }
}

/// Samples until it is dropped.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    peaks: Mutex<Peaks>,
    end: AtomicBool,
}

impl Watch {
    /// Begins to look.
    pub fn start() -> std::io::Result<Watch> {
        let shared = Arc::<Shared>::default();
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("lode-watch".to_string());
        let thread = thread.spawn(move || theirs.sample_until_end())?;
        Ok(Watch { shared, thread: Some(thread) })
    }

    /// What was seen since the last call; the next one starts anew.
    pub fn take(&self) -> Peaks {
        let mut peaks = self.shared.peaks.lock().unwrap_or_else(PoisonError::into_inner);
        peaks.rss_bytes = peaks.rss_bytes.max(system::rss_bytes().unwrap_or(0));
        std::mem::take(&mut peaks)
    }
}

impl Shared {
    fn sample_until_end(&self) {
        let mut last = (Instant::now(), system::cpu_time());
        while !self.end.load(Ordering::Relaxed) {
            std::thread::park_timeout(PAUSE);
            let now = (Instant::now(), system::cpu_time());
            let elapsed = (now.0 - last.0).as_secs_f64();
            // A sample right after another one would be mostly noise.
            if elapsed < PAUSE.as_secs_f64() / 2.0 {
                continue;
            }
            let used = (now.1 - last.1).as_secs_f64() / elapsed;
            last = now;
            let rss = system::rss_bytes().unwrap_or(0);
            let mut peaks = self.peaks.lock().unwrap_or_else(PoisonError::into_inner);
            *peaks = peaks.max(Peaks { rss_bytes: rss, processors: used });
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It only ever samples; there is no result to lose.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work and memory are seen, and forgotten with the next phase.
    #[test]
    fn peaks_are_of_one_phase() {
        let watch = Watch::start().expect("a thread");
        let block = vec![1u8; 96 << 20];
        let (mut sum, start) = (0u64, Instant::now());
        while start.elapsed() < Duration::from_millis(400) {
            sum = sum.wrapping_add(block.iter().map(|&b| u64::from(b)).sum::<u64>());
        }
        assert!(sum > 0);
        let busy = watch.take();
        assert!(busy.rss_bytes >= 96 << 20, "{busy:?}");
        assert!(busy.processors > 0.05, "{busy:?}");
        drop(block);
        assert!(watch.take().rss_bytes < busy.rss_bytes, "the next phase has its own peak");
    }
}
