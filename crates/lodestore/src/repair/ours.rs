//! What a damaged database of ours still holds.

use std::path::Path;

use crate::error::{Error, Result};
use crate::filename::{self, FileKind};
use crate::options::Options;

use super::guide::Guide;
use super::log::Log;
use super::report::Report;
use super::tables::Tables;

/// A damaged database of ours, as far as it can be read.
pub(super) struct Ours {
    pub(super) guide: Guide,
    pub(super) tables: Tables,
    pub(super) log: Log,
}

impl Ours {
    pub(super) fn read(
        directory: &Path,
        files: &[(String, u64)],
        options: &Options,
    ) -> Result<Ours> {
        let fs = &options.fs;
        let is_data = |(name, _): &(String, u64)| {
            let kind = filename::parse(name);
            matches!(kind, Some(FileKind::Manifest(_) | FileKind::Table(_) | FileKind::Log(_)))
        };
        if !files.iter().any(is_data) {
            return Err(Error::missing(format!("no database in {}", directory.display())));
        }
        let mut guide = Guide::read(fs, directory, files)?;
        let mut log = Log::find(&**fs, directory, files, &guide)?;
        guide.compare_with_log(&log);
        let tables = Tables::read(&**fs, directory, files, &mut guide, options)?;
        guide.complete();
        log.read(&mut guide, &tables)?;
        Ok(Ours { guide, tables, log })
    }

    pub(super) fn report(&self) -> Report {
        let mut report = Report {
            manifest: self.guide.damage.clone(),
            tables: self.tables.sound() as u64,
            tables_rewritten: self.tables.rewritten() as u64,
            log_entries: self.log.entries,
            ..Report::default()
        };
        let families = self.guide.state.families.values();
        report.families = families.map(|family| family.descriptor.name.clone()).collect();
        report.losses.extend(self.tables.losses.iter().chain(&self.log.losses).cloned());
        report.notes.extend(self.guide.notes.iter().chain(&self.tables.notes).cloned());
        report
    }
}
