//! What this process has used so far, and whether it has come to rest.

use std::fs;
use std::time::{Duration, Instant};

use lode_bench::system;

use crate::engine::Result;
use crate::failure::Failure;

/// Without any activity for so long, an engine is quiet.
const QUIET: Duration = Duration::from_millis(250);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(25);
/// Processor time of one look and of threads that only wake up and sleep: less
/// than this between two looks is no activity.
const IDLE_CPU: Duration = Duration::from_millis(2);
/// An engine that is never quiet ends the run.
const QUIET_MAX: Duration = Duration::from_secs(6 * 3_600);

/// What the system has counted for this process at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// The moment.
    pub at: Instant,
    /// Processor time of all threads.
    pub cpu: Duration,
    /// Bytes passed to and from devices, and to write calls.
    pub io: Io,
}

/// Counters of `/proc/self/io`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Io {
    /// Bytes that were read from devices.
    pub read_bytes: u64,
    /// Bytes that were or will be written to devices, mapped pages included.
    pub write_bytes: u64,
    /// Bytes passed to write calls.
    pub written_chars: u64,
}

impl Meter {
    /// Looks now.
    pub fn now() -> Meter {
        let text = fs::read_to_string("/proc/self/io").unwrap_or_default();
        Meter { io: Io::parse(&text), cpu: system::cpu_time(), at: Instant::now() }
    }

    /// True if between `earlier` and this something was done.
    fn is_active_since(&self, earlier: &Meter) -> bool {
        self.io != earlier.io || self.cpu.saturating_sub(earlier.cpu) > IDLE_CPU
    }
}

impl Io {
    fn parse(text: &str) -> Io {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0)
        };
        Io {
            read_bytes: field("read_bytes"),
            write_bytes: field("write_bytes"),
            written_chars: field("wchar"),
        }
    }
}

/// Waits until the process has done nothing for a while, and returns how it was
/// when that while began.
pub fn wait_until_quiet() -> Result<Meter> {
    let start = Instant::now();
    let mut last_active = Meter::now();
    let mut previous = last_active;
    while previous.at - last_active.at < QUIET {
        if start.elapsed() > QUIET_MAX {
            let what = format!("not quiet after {} hours", QUIET_MAX.as_secs() / 3_600);
            return Err(Failure::Failed(what));
        }
        std::thread::sleep(LOOK);
        let now = Meter::now();
        if now.is_active_since(&previous) {
            last_active = now;
        }
        previous = now;
    }
    Ok(last_active)
}

/// Begins the peak of resident memory anew. Where the system does not let that
/// happen, the peak is that of the process so far.
pub fn reset_peak_rss() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The counters are read by their names; what is not there is 0.
    #[test]
    fn counters_are_read() {
        let text = "rchar: 5\nwchar: 77\nsyscr: 1\nread_bytes: 4096\nwrite_bytes: 8192\n\
                    cancelled_write_bytes: 0\n";
        let io = Io { read_bytes: 4_096, write_bytes: 8_192, written_chars: 77 };
        assert_eq!(Io::parse(text), io);
        assert_eq!(Io::parse(""), Io::default());
    }

    /// Any byte and more than a moment of processor time is activity.
    #[test]
    fn activity_is_seen() {
        let quiet = Meter { at: Instant::now(), cpu: Duration::ZERO, io: Io::default() };
        assert!(!quiet.is_active_since(&quiet));
        let waking = Meter { cpu: Duration::from_millis(1), ..quiet };
        assert!(!waking.is_active_since(&quiet));
        let working = Meter { cpu: Duration::from_millis(5), ..quiet };
        assert!(working.is_active_since(&quiet));
        let io = Io { write_bytes: 1, ..Io::default() };
        assert!(Meter { io, ..quiet }.is_active_since(&quiet));
    }
}
