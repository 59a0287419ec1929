//! What a pulse's database says of itself: which stream it is made of, and
//! how far. It is kept in a family of its own and written in the batches that
//! it tells of, so that it is right after a crash too.

use std::path::Path;

use lodestore::{Db, Family, FamilyOptions, Options, WriteBatch};

use crate::error::BenchError;
use crate::pulse::stream::Stream;

const FAMILY: &str = "pulse";
const STREAM: &[u8] = b"stream";
const LOADED: &[u8] = b"loaded";
const ROUNDS: &[u8] = b"rounds";

/// Where a database stands.
#[derive(Clone, Debug)]
pub struct State {
    family: Family,
    /// What it is made of.
    pub stream: Stream,
    /// Entries loaded so far.
    pub loaded: u64,
    /// Rounds done so far.
    pub rounds: u64,
}

impl State {
    /// Makes `db` the database of `stream`, with nothing loaded yet.
    pub fn create(db: &Db, stream: &Stream) -> lodestore::Result<State> {
        let family = db.create_family(FAMILY, FamilyOptions::default())?;
        family.put(STREAM, stream.text().as_bytes())?;
        db.flush_all()?;
        Ok(State { family, stream: stream.clone(), loaded: 0, rounds: 0 })
    }

    /// Reads the state of `db`.
    /// # Errors: `Usage` if no pulse made it.
    pub fn read(db: &Db) -> Result<State, BenchError> {
        let foreign = || no_pulse(db.path());
        let family = db.family(FAMILY).ok_or_else(foreign)?;
        let get = |key: &[u8]| family.get(key).map_err(BenchError::engine("reading the state"));
        let text = get(STREAM)?.ok_or_else(foreign)?;
        let name = format!("the stream in {}", db.path().display());
        let stream = Stream::parse(&String::from_utf8_lossy(&text), &name)?;
        let number = |key: &[u8]| -> Result<u64, BenchError> {
            let Some(value) = get(key)? else {
                return Ok(0);
            };
            let bytes = (*value).try_into().map_err(|_| {
                BenchError::Damaged(format!("{name}: a count has {} bytes", value.len()))
            })?;
            Ok(u64::from_le_bytes(bytes))
        };
        let (loaded, rounds) = (number(LOADED)?, number(ROUNDS)?);
        Ok(State { stream, loaded, rounds, family })
    }

    /// True if `load` was done to its end.
    pub fn is_loaded(&self) -> bool {
        self.loaded == self.stream.entries
    }

    /// Notes in `batch` that with it `loaded` entries are loaded.
    pub fn set_loaded(&mut self, loaded: u64, batch: &mut WriteBatch) {
        self.loaded = loaded;
        batch.put_in(&self.family, LOADED, &loaded.to_le_bytes());
    }

    /// Notes in `batch` that with it `rounds` rounds are done.
    pub fn set_rounds(&mut self, rounds: u64, batch: &mut WriteBatch) {
        self.rounds = rounds;
        batch.put_in(&self.family, ROUNDS, &rounds.to_le_bytes());
    }
}

/// True if `directory` holds a database that a pulse made; false if there is
/// nothing in it.
/// # Errors: `Usage` if there is something else.
pub fn is_there(directory: &Path) -> Result<bool, BenchError> {
    let is_empty = match std::fs::read_dir(directory) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
        Err(error) => return Err(BenchError::io(directory)(error)),
    };
    if is_empty {
        return Ok(false);
    }
    match Db::list_families(directory, &Options::default()) {
        Ok(names) if names.iter().any(|name| name == FAMILY) => Ok(true),
        Ok(_) | Err(lodestore::Error::Missing { .. }) => Err(no_pulse(directory)),
        Err(error) => Err(BenchError::engine("looking into the directory")(error)),
    }
}

fn no_pulse(directory: &Path) -> BenchError {
    BenchError::Usage(format!(
        "{} holds something that lode pulse load did not make; name another directory",
        directory.display()
    ))
}
