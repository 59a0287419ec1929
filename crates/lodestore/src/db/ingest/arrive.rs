//! The files of tables that are ingested: given names in the database's
//! directory, then checked under these, so that what was checked is what will
//! be read.

use std::path::{Path, PathBuf};

use crate::db::checkpoint::{copy, link_synced};
use crate::db::engine::Engine;
use crate::db::family::FamilyCore;
use crate::error::{Error, Result};
use crate::filename;
use crate::fs::Fs;
use crate::options::IngestOptions;
use crate::sync::Arc;
use crate::table::meta::TableMeta;
use crate::table::{Table, describe};

/// A table whose file is in the database's directory.
pub(super) struct Arrived {
    pub(super) family: Arc<FamilyCore>,
    /// With the number of its file; its sequence numbers are its own yet.
    pub(super) meta: TableMeta,
    pub(super) source: PathBuf,
    pub(super) linked: bool,
}

/// The tables of one call. Files that were not handed over go with it.
pub(super) struct Arrivals<'a> {
    pub(super) tables: Vec<Arrived>,
    engine: &'a Engine,
    /// Numbers of all files that were begun.
    created: Vec<u64>,
}

impl Arrivals<'_> {
    /// Gives the files away: to an edit, which removes them if it fails.
    pub(super) fn hand_over(&mut self) -> Vec<Arrived> {
        self.created.clear();
        std::mem::take(&mut self.tables)
    }
}

impl Drop for Arrivals<'_> {
    fn drop(&mut self) {
        self.engine.remove_tables(&self.created);
    }
}

impl Engine {
    /// Brings the files into the directory and checks each.
    pub(super) fn take_in(
        &self,
        tables: Vec<(Arc<FamilyCore>, PathBuf)>,
        options: &IngestOptions,
    ) -> Result<Arrivals<'_>> {
        let mut arrivals = Arrivals { tables: Vec::new(), engine: self, created: Vec::new() };
        for (family, source) in tables {
            let number = self.versions.new_file_number();
            let path = filename::table_path(&self.shared.directory, number);
            arrivals.created.push(number);
            let fs = &*self.shared.fs;
            let linked = options.move_files && link_synced(fs, &source, &path)?;
            if !linked {
                copy_all(fs, &source, &path)?;
            }
            let now = self.shared.scheduler.unix_seconds();
            let meta = self.check_arrived(&family, &source, &path, options)?;
            let meta = TableMeta { number, ..meta }.dated(now, now);
            arrivals.tables.push(Arrived { family, meta, source, linked });
        }
        Ok(arrivals)
    }

    /// Checks that the file at `path` fits the family. Errors name `source`.
    fn check_arrived(
        &self,
        family: &FamilyCore,
        source: &Path,
        path: &Path,
        options: &IngestOptions,
    ) -> Result<TableMeta> {
        let file = self.shared.fs.open(path).map_err(|error| Error::io(path, "open", error))?;
        let described = describe(&*file, source)?;
        described.check_rewritable(source)?;
        let (meta, order) = (described.meta, family.order());
        let refuse = |what: String| Err(Error::invalid(format!("{} {what}", source.display())));
        if described.order_name != order.name() {
            let (stored, name) = (&described.order_name, &family.name);
            let own = order.name();
            return refuse(format!("is in the order {stored}; family {name:?} is in {own}"));
        }
        if meta.entries == 0 && meta.range_tombstones == 0 {
            return refuse("holds nothing".to_string());
        }
        if meta.sequence_min != meta.sequence_max {
            return refuse(format!(
                "holds entries of different ages (sequence numbers {} to {}): it was not written \
                 by a TableWriter",
                meta.sequence_min, meta.sequence_max
            ));
        }
        let first = (&meta.smallest.user_key[..], meta.smallest.trailer);
        let last = (&meta.largest.user_key[..], meta.largest.trailer);
        if order.compare_entries(first, last).is_gt() {
            return Err(Error::corruption(source, 0, "the table ends before it starts"));
        }
        if options.move_files && self.has_table(&meta) {
            return refuse("is a table of this database already: it cannot be moved".to_string());
        }
        // Under any one number, so that a key that is there twice is found.
        let numbered = meta.clone().with_sequence(meta.sequence_min);
        let cache_file = self.shared.cache.new_file();
        let table = Table::open(file, source.to_path_buf(), &numbered, order.clone(), cache_file)?;
        if options.verify {
            let merges = table.verify(family.context(false))?.merges;
            if merges > 0 && family.merge_operator.is_none() {
                let name = &family.name;
                return refuse(format!("holds operands; family {name:?} cannot merge"));
            }
        }
        Ok(meta)
    }

    /// True if some family has this very file: its source may be the
    /// database's own name for it.
    fn has_table(&self, meta: &TableMeta) -> bool {
        let families = self.families.load_full();
        families.all().any(|family| {
            let view = family.views.keep();
            view.version.tables().any(|table| table.meta.id == meta.id)
        })
    }
}

fn copy_all(fs: &dyn Fs, from: &Path, to: &Path) -> Result<()> {
    let length = fs.length(from).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::missing(format!("file {}", from.display())),
        _ => Error::io(from, "read length of", error),
    })?;
    copy(fs, from, to, length)
}
