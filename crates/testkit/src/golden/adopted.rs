//! The set `adopted`: a database that LevelDB made, with entries in its log, as
//! adopting left it.

use std::path::Path;

use lodestore::adopt::adopt;
use lodestore::{Db, MemFs, OsFs, Result};

use crate::files::{self, Files};

use super::{Golden, directory, options};

/// The set.
pub const ADOPTED: &str = "adopted";
/// What it was before, in `testdata/leveldb`.
const ORIGINAL: &str = "small-snappy";

/// Makes the set.
///
/// # Errors
/// None, unless the engine is at fault.
pub(super) fn make() -> Result<Golden> {
    let (fs, directory) = (MemFs::new(), directory(ADOPTED));
    files::write(&fs, Path::new(&directory), &original()).expect("memory takes files");
    let options = options(&fs);
    adopt(&directory, &options)?;
    let db = Db::open_read_only(&directory, options.clone())?;
    Golden::of(ADOPTED, &db, &fs, &options)
}

/// The files that LevelDB left of the database that is [`ADOPTED`].
///
/// # Panics
/// If `testdata` lacks it.
pub fn original() -> Files {
    let leveldb = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/leveldb");
    files::read(&OsFs::new(), &leveldb.join(ORIGINAL)).expect("it is in testdata")
}
