//! What a kill cut short: moments that must be among those of a long run,
//! or it has tested less than it says.

use super::acknowledged::IN_FLIGHT;
use super::points::InFlight;
use lodestore::inspect::{FileUse, LogFile, Survey};
use lodestore::{Fs, OsFs};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// How often each was met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    /// A flush was writing a table.
    pub flush: usize,
    /// A compaction was.
    pub compaction: usize,
    /// Both were.
    pub flush_and_compaction: usize,
    /// At least two segments of the log held batches that were still needed.
    pub two_live_logs: usize,
}

impl Moments {
    /// Counts the moment at which a process was killed, by what it reported and
    /// by its files, which nobody has opened since.
    pub fn count(&mut self, acknowledged: &BTreeMap<u8, u64>, database: &Path) {
        let state = acknowledged.get(&IN_FLIGHT).copied().unwrap_or(0);
        let (flush, compaction) = (state & InFlight::FLUSH != 0, state & InFlight::COMPACTION != 0);
        self.flush += usize::from(flush);
        self.compaction += usize::from(compaction);
        self.flush_and_compaction += usize::from(flush && compaction);
        self.two_live_logs += usize::from(live_logs(database) > 1);
    }

    /// A moment that never came, if there is one.
    pub fn missing(&self) -> Option<&'static str> {
        let counts = [
            (self.flush, "a flush in flight"),
            (self.compaction, "a compaction in flight"),
            (self.flush_and_compaction, "flush and compaction in flight together"),
            (self.two_live_logs, "two live logs"),
        ];
        counts.into_iter().find(|(count, _)| *count == 0).map(|(_, name)| name)
    }
}

impl fmt::Display for Moments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "killed with a flush in flight {}, a compaction {}, both {}; with two live logs {}",
            self.flush, self.compaction, self.flush_and_compaction, self.two_live_logs
        )
    }
}

/// Segments that are needed and hold a batch. None in a directory in which no
/// database was created yet.
fn live_logs(database: &Path) -> usize {
    let fs: Arc<dyn Fs> = Arc::new(OsFs::new());
    let Ok(survey) = Survey::read(&fs, database) else { return 0 };
    let logs = survey.files.iter().filter(|file| file.usage == FileUse::Log);
    let has_batch = |name: &str| {
        let log = LogFile::open(&*fs, &database.join(name));
        log.is_ok_and(|mut log| log.next_batch().is_ok_and(|batch| batch.is_some()))
    };
    logs.filter(|file| has_batch(&file.name)).count()
}
