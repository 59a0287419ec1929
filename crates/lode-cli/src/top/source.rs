//! Where what is shown comes from: the process that has the database open, or
//! its files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lodestore::inspect::{Engine, FileUse, Status, Survey};
use lodestore::{Error, Fs, OsFs};

use crate::failure::Failure;

/// A process that has told nothing for so many of its intervals is not waited
/// for.
const INTERVALS_MAX: u32 = 3;
/// Nor is less than this taken for silence: a busy machine is late at times.
const SILENCE_MIN: Duration = Duration::from_secs(5);

/// What is known at one moment.
pub enum Watched {
    /// What the process tells.
    Process {
        status: Box<Status>,
        /// How old that is, to the second.
        age: Duration,
    },
    /// What the files show.
    Files {
        files: Box<Files>,
        /// Why nothing better is known.
        reason: String,
    },
    /// There is no database, or not any more.
    Absent,
}

/// What the files of a database show.
#[derive(Default)]
pub struct Files {
    pub families: Vec<Family>,
    pub log_files: usize,
    pub log_bytes: u64,
    pub unreferenced_bytes: u64,
    /// What changed since the frame before, if there was one.
    pub change: Option<Change>,
}

/// How the tables changed between two frames.
#[derive(Clone, Copy)]
pub struct Change {
    pub time: Duration,
    /// Bytes of tables that came, and of those that went.
    pub bytes_new: u64,
    pub bytes_gone: u64,
}

/// A family's levels.
pub struct Family {
    pub name: String,
    pub levels: Vec<Level>,
}

/// A level.
#[derive(Clone, Copy)]
pub struct Level {
    pub files: usize,
    pub bytes: u64,
    /// `None` where tables are LevelDB's, whose manifest does not say it.
    pub entries: Option<u64>,
    /// Only where a process tells it.
    pub score: Option<f64>,
}

impl Level {
    const EMPTY: Level = Level { files: 0, bytes: 0, entries: Some(0), score: None };
}

impl Watched {
    /// The families with their levels.
    pub fn families(&self) -> Vec<Family> {
        match self {
            Watched::Process { status, .. } => {
                let level = |level: &lodestore::inspect::LevelStatus| Level {
                    files: level.files,
                    bytes: level.bytes,
                    entries: Some(level.entries),
                    score: Some(level.score),
                };
                let family = |family: &lodestore::inspect::FamilyStatus| Family {
                    name: family.name.clone(),
                    levels: family.levels.iter().map(level).collect(),
                };
                status.families.iter().map(family).collect()
            }
            Watched::Files { files, .. } => {
                let copy = |f: &Family| Family { name: f.name.clone(), levels: f.levels.clone() };
                files.families.iter().map(copy).collect()
            }
            Watched::Absent => Vec::new(),
        }
    }

    /// The levels of one family, or of all, added up; of scores the highest.
    pub fn levels(&self, family: Option<&str>) -> Vec<Level> {
        let mut sum: Vec<Level> = Vec::new();
        for of in self.families().iter().filter(|f| family.is_none_or(|name| f.name == name)) {
            sum.resize(sum.len().max(of.levels.len()), Level::EMPTY);
            for (sum, level) in sum.iter_mut().zip(&of.levels) {
                sum.files += level.files;
                sum.bytes += level.bytes;
                sum.entries = sum.entries.zip(level.entries).map(|(a, b)| a + b);
                let higher = |a: f64, b: f64| a.max(b);
                sum.score = level.score.map(|score| higher(score, sum.score.unwrap_or(0.0)));
            }
        }
        sum
    }
}

/// How often files are looked at before what is wrong with them counts as
/// damage, and how long after another.
const SURVEY_TRIES: usize = 5;
const SURVEY_PAUSE: Duration = Duration::from_millis(50);

/// Looks at a database again and again.
pub struct Source {
    fs: Arc<dyn Fs>,
    directory: PathBuf,
    /// When the files were looked at last, and the tables that were there.
    before: Option<(Instant, Vec<(u64, u64)>)>,
}

impl Source {
    pub fn new(directory: &Path) -> Source {
        let fs: Arc<dyn Fs> = Arc::new(OsFs::new());
        Source { fs, directory: directory.to_path_buf(), before: None }
    }

    /// What is known now.
    /// # Errors: damage, or files that cannot be read.
    pub fn look(&mut self) -> Result<Watched, Failure> {
        let reason = match Status::read(&*self.fs, &self.directory) {
            Ok(None) => "no process tells how it is doing".to_string(),
            Ok(Some(status)) => match silence(&status) {
                None => {
                    let age = age(&status);
                    return Ok(Watched::Process { status: Box::new(status), age });
                }
                Some(reason) => reason,
            },
            Err(error) => error.to_string(),
        };
        match self.survey() {
            Ok(survey) => {
                let files = Box::new(self.files(&survey));
                Ok(Watched::Files { files, reason })
            }
            Err(Error::Missing { .. }) => Ok(Watched::Absent),
            Err(error) => Err(error.into()),
        }
    }

    /// The files, at a moment when they belong together: somebody may be making
    /// or destroying the database right now.
    fn survey(&self) -> Result<Survey, Error> {
        for _ in 1..SURVEY_TRIES {
            match Survey::read(&self.fs, &self.directory) {
                Err(error) if !matches!(error, Error::Missing { .. }) => {
                    std::thread::sleep(SURVEY_PAUSE);
                }
                settled => return settled,
            }
        }
        Survey::read(&self.fs, &self.directory)
    }

    fn files(&mut self, survey: &Survey) -> Files {
        let mut files = Files::default();
        let mut tables = Vec::new();
        for family in &survey.families {
            let levels = family.levels.iter().map(|level| Level {
                files: level.len(),
                bytes: level.iter().map(|table| table.bytes).sum(),
                entries: (level.is_empty() || survey.engine == Engine::Lodestore)
                    .then(|| level.iter().map(|table| table.entries).sum()),
                score: None,
            });
            let levels = levels.collect();
            files.families.push(Family { name: family.info.name.clone(), levels });
            tables.extend(family.levels.iter().flatten().map(|table| (table.number, table.bytes)));
        }
        for file in &survey.files {
            match file.usage {
                FileUse::Log => {
                    files.log_files += 1;
                    files.log_bytes += file.bytes;
                }
                FileUse::Unreferenced => files.unreferenced_bytes += file.bytes,
                _ => {}
            }
        }
        let now = Instant::now();
        if let Some((then, before)) = self.before.take() {
            let only_in = |a: &[(u64, u64)], b: &[(u64, u64)]| {
                a.iter().filter(|table| !b.contains(table)).map(|(_, bytes)| bytes).sum()
            };
            let (bytes_new, bytes_gone) = (only_in(&tables, &before), only_in(&before, &tables));
            files.change = Some(Change { time: now - then, bytes_new, bytes_gone });
        }
        self.before = Some((now, tables));
        files
    }
}

fn age(status: &Status) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(Duration::from_secs(status.unix_seconds))
}

/// Why a status does not count, if it does not: its process is gone, or tells
/// nothing any more.
fn silence(status: &Status) -> Option<String> {
    if !process_is_there(status.pid) {
        return Some(format!("process {}, which told how it is doing, is gone", status.pid));
    }
    let (age, limit) = (age(status), (status.interval * INTERVALS_MAX).max(SILENCE_MIN));
    (age > limit)
        .then(|| format!("process {} has told nothing for {} s", status.pid, age.as_secs()))
}

/// True also where the system does not tell.
fn process_is_there(pid: u32) -> bool {
    let processes = Path::new("/proc");
    !processes.join("self").exists() || processes.join(pid.to_string()).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables that came and went between two looks are told apart.
    #[test]
    fn change_is_what_came_and_what_went() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let options = lodestore::Options { create_if_missing: true, ..Default::default() };
        let db = lodestore::Db::open(place.path(), options).expect("it opens");
        let mut source = Source::new(place.path());
        let Ok(Watched::Files { files, .. }) = source.look() else { panic!("no process tells") };
        assert!(files.change.is_none() && files.log_files == 0);
        db.put(b"a", b"1").expect("it is put");
        let Ok(Watched::Files { files, .. }) = source.look() else { panic!("no process tells") };
        assert_eq!(files.log_files, 1);
        db.flush().expect("it is flushed");
        let Ok(Watched::Files { files, .. }) = source.look() else { panic!("no process tells") };
        let change = files.change.expect("there was a look before");
        assert_eq!((change.bytes_new, change.bytes_gone), (db.stats().table_bytes(), 0));
    }
}
