//! Reading a LevelDB directory as it is: an overlay in memory has the names and
//! the manifest that the engine looks for, and nothing is written below it.
//!
//! LevelDB may have it open, and removes tables and logs once it has compacted them.
//! So all files are opened between two looks at its manifest that saw the same, and
//! kept open: what they hold lasts.

use std::path::Path;

use crate::db::{self, Db};
use crate::error::{Error, Result};
use crate::fs::{Fs, OverlayFs};
use crate::inspect::settled;
use crate::leveldb::directory::{self, LevelDb};
use crate::options::Options;
use crate::sync::Arc;

use super::build::build_view;
use super::place::is_ours_alone;
use super::tables::{Placing, Tables};
use super::with_order;

/// As much is rewritten in memory.
const REWRITTEN_BYTES_MAX: u64 = 256 << 20;

/// Opens the LevelDB database in `directory` for reading.
pub(super) fn open(directory: &Path, options: Options) -> Result<Db> {
    // With more tables than descriptors some are closed, and opened again by name.
    let (options, limited) = db::with_file_limit(options);
    let below: Arc<dyn Fs> = Arc::new(limited);
    let read = || LevelDb::read(&*below, directory);
    let (database, overlay) = settled(directory, &read, LevelDb::is_same, &|database| {
        let overlay = OverlayFs::new(&below, directory);
        database.files_in_use(directory).try_for_each(|path| {
            overlay.keep(&path).map_err(|error| Error::io(&path, "open", error))
        })?;
        Ok((database.clone(), overlay))
    })?;
    database.check_numbers_left()?;
    hide_leftovers(&overlay, directory)?;
    let options = Options { fs: Arc::new(overlay.clone()), ..options };
    let options = with_order(&database, &options)?;
    build(directory, &options, &database)?;
    overlay.close();
    Db::open_read_only(directory, options)
}

/// Files that an adoption which was cut short has left have the names that are needed.
fn hide_leftovers(overlay: &OverlayFs, directory: &Path) -> Result<()> {
    for name in directory::names(overlay, directory)?.iter().filter(|name| is_ours_alone(name)) {
        let path = directory.join(name);
        overlay.remove(&path).map_err(|error| Error::io(&path, "hide", error))?;
    }
    Ok(())
}

fn build(directory: &Path, overlay: &Options, database: &LevelDb) -> Result<()> {
    let order = overlay.family_options(db::DEFAULT_NAME).order.clone();
    let fs = &*overlay.fs;
    let tables = Tables::read(fs, directory, database, &order, Placing::AsLevelDb)?;
    let bytes: u64 = tables.rewritten.iter().flatten().map(|of| of.meta.bytes).sum();
    if bytes > REWRITTEN_BYTES_MAX {
        return Err(Error::invalid(format!(
            "{}: {bytes} bytes of tables share keys within a level, as after a repair by LevelDB: \
             too much to be read in place; `lode adopt` makes it ours, and can be undone",
            directory.display()
        )));
    }
    build_view(directory, overlay, &order, database, &tables)
}
