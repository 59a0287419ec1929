//! The history that is played, and the note of how far it has come.

use crate::command::Command;
use crate::history;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A seed whose history has everything that the test of this file asks for.
const SEED: u64 = 11;
const STEPS: usize = 40;
/// The checkpoint that the story makes, beside its database.
pub const CHECKPOINT: &str = "copy";

/// How the log is written: with a call for each record, or by copying.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Log {
    /// `write(2)`.
    Written,
    /// A shared mapping.
    Mapped,
}

impl Log {
    /// Both ways.
    pub const ALL: [Log; 2] = [Log::Written, Log::Mapped];

    /// Its name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Log::Written => "written",
            Log::Mapped => "mapped",
        }
    }
}

/// The story: two families and a third that comes and goes, synced and unsynced
/// batches, flushes, compactions, ingests, other options, segments that are used
/// again, reopenings (each begins a manifest), a checkpoint.
pub fn story(log: Log) -> Vec<Command> {
    let mut story = history::history(SEED, STEPS);
    for command in &mut story {
        if let Command::Open { settings, .. } = command {
            let mapped = if log == Log::Mapped { "yes" } else { "no" };
            // Without a cache, scans read from files.
            for (name, value) in [("cache", "0"), ("log_mapped", mapped)] {
                settings.knobs.push((name.to_string(), value.to_string()));
            }
        }
    }
    // Opening closes what was open; apart, so that it is known which of both
    // a call belongs to.
    let closed_first = |command| match command {
        Command::Open { .. } => vec![Command::Wait, Command::Close, command],
        other => vec![other],
    };
    let mut story: Vec<Command> = story.into_iter().flat_map(closed_first).skip(2).collect();
    let checkpoint = Command::Checkpoint { name: CHECKPOINT.to_string() };
    story.insert(story.len() * 2 / 3, checkpoint);
    // Waiting tells what failed in the background.
    story.extend([Command::Wait, Command::Close, story[0].clone(), Command::Wait, Command::Close]);
    story
}

/// True for some commands that change files: after them everything is read.
pub fn is_followed_by_a_look(command: &Command) -> bool {
    matches!(
        command,
        Command::Flush { family: None } | Command::Compact { .. } | Command::Open { .. }
    )
}

/// Where the story's databases are, in the directory of a run.
pub fn databases(directory: &Path) -> PathBuf {
    directory.join("databases")
}

/// How many commands are done, outside of the databases. The number is a file's
/// modification time, in seconds: no call that is injected takes part in noting.
#[derive(Debug)]
pub struct Progress(File);

impl Progress {
    /// Begins at 0.
    ///
    /// # Errors
    /// What creating the file gives.
    pub fn begin(directory: &Path) -> io::Result<Progress> {
        let progress = Progress(File::create(path(directory))?);
        progress.note(0)?;
        Ok(progress)
    }

    /// Notes that `done` commands are done.
    ///
    /// # Errors
    /// What changing the time gives.
    pub fn note(&self, done: usize) -> io::Result<()> {
        self.0.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(done as u64))
    }

    /// How many commands were done.
    ///
    /// # Errors
    /// What asking for the time gives.
    pub fn read(directory: &Path) -> io::Result<usize> {
        let modified = std::fs::metadata(path(directory))?.modified()?;
        let since = modified.duration_since(SystemTime::UNIX_EPOCH).map_err(io::Error::other)?;
        Ok(since.as_secs() as usize)
    }
}

fn path(directory: &Path) -> PathBuf {
    directory.join("progress")
}

/// A symbolic link takes 4095 bytes.
const MET_CHARS_MAX: usize = 1000;

/// Notes what the story met, as what a symbolic link stands for: no call that
/// is injected takes part in that either.
///
/// # Errors
/// What making the link gives.
pub fn note_met(directory: &Path, met: &str) -> io::Result<()> {
    let short: String = met.chars().take(MET_CHARS_MAX).collect();
    std::os::unix::fs::symlink(short, directory.join("met"))
}

/// What the story met; empty if nothing was noted.
pub fn met(directory: &Path) -> String {
    let noted = std::fs::read_link(directory.join("met")).unwrap_or_default();
    noted.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rust_api::RustApi;
    use lodestore::{Counter, MemFs};
    use std::sync::Arc;

    /// The story has all that is to be cut short.
    #[test]
    fn the_story_has_everything() {
        let story = story(Log::Written);
        let has = |what: &str, wanted: fn(&Command) -> bool| {
            assert!(story.iter().any(wanted), "no {what}");
        };
        has("synced write", |c| matches!(c, Command::Write { sync: true, .. }));
        has("unsynced write", |c| matches!(c, Command::Write { sync: false, .. }));
        has("sync of the log", |c| matches!(c, Command::SyncLog));
        has("flush of all", |c| matches!(c, Command::Flush { family: None }));
        has("flush of one", |c| matches!(c, Command::Flush { family: Some(_) }));
        has("compaction", |c| matches!(c, Command::Compact { .. }));
        has("copied ingest", |c| matches!(c, Command::Ingest { moved: false, .. }));
        has("moved ingest", |c| matches!(c, Command::Ingest { moved: true, .. }));
        has("dropped family", |c| matches!(c, Command::DropFamily { .. }));
        has("change of options", |c| matches!(c, Command::SetOptions { .. }));
        has("checkpoint", |c| matches!(c, Command::Checkpoint { .. }));
        let opens = story.iter().filter(|c| matches!(c, Command::Open { .. })).count();
        assert!(opens > 2, "only {opens} openings");
        let mut surface = RustApi::new(Arc::new(MemFs::new()), "/story");
        assert_eq!(history::run(&story, &mut surface), story.len(), "{:?}", surface.last_error);
        let recycled = surface.statistics().get(Counter::LogSegmentsRecycled);
        assert!(recycled > 0, "no segment was used again");
    }

    /// What is noted is read again.
    #[test]
    fn progress_is_kept() {
        let directory = crate::temp_dir::TempDir::new("progress");
        let progress = Progress::begin(directory.path()).expect("begun");
        assert_eq!(Progress::read(directory.path()).expect("read"), 0);
        progress.note(17).expect("noted");
        assert_eq!(Progress::read(directory.path()).expect("read"), 17);
    }
}
