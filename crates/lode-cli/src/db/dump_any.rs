//! `dump`: one file, which by its name is a table, a log or a manifest, ours or
//! LevelDB's.

use std::path::{Path, PathBuf};

use clap::Args;

use super::dump::{self, DumpLog, DumpTable, Shown};
use super::dump_manifest::{self, DumpManifest};
use super::target::Target;
use crate::Done;
use crate::failure::Failure;

/// `lode db dump`
#[derive(Debug, Args)]
pub struct Dump {
    /// The file (a name without a directory is one in that of --db), or a database's directory:
    /// its manifest in use then
    file: PathBuf,
    #[command(flatten)]
    shown: Shown,
}

/// Prints the file.
/// # Errors: `Usage` if the name does not say what it is; those of the verb for it.
pub fn run(target: &Target, dump: &Dump) -> Done {
    let (file, shown) = (dump.file.clone(), dump.shown.clone());
    let extension = file.extension().and_then(|extension| extension.to_str());
    match extension {
        Some("table" | "ldb" | "sst") => dump::table(target, &DumpTable::of(file, shown)),
        Some("wal" | "log") => dump::log(target, &DumpLog::of(file, shown)),
        _ if is_manifest(&file) && shown.is_given() => Err(Failure::Usage(
            "a manifest has no entries: --limit and --keys-only are for tables and logs"
                .to_string(),
        )),
        _ if is_manifest(&file) => dump_manifest::run(target, &DumpManifest::of(file)),
        _ => Err(Failure::Usage(format!(
            "{}: its name does not say what it is; say it: dump-table, dump-log or dump-manifest",
            file.display()
        ))),
    }
}

fn is_manifest(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    path.is_dir() || name.is_some_and(|name| name.starts_with("MANIFEST-"))
}
