//! `lode db`: what can be done with a database, a file for each kind of verb.

mod target;
mod point;
mod scan;
mod load;
mod sorted;
mod compare;
mod inspect;
pub mod dump;
pub mod dump_manifest;
mod dump_any;
mod list;
mod locate;
mod space;
mod maintain;
mod repair;
mod tables;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::Done;
use target::{Target, Useless};

/// The command line of `lode db`.
#[derive(Debug, Args)]
pub struct Database {
    #[command(flatten)]
    target: Target,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Print the value of a key
    Get(point::Get),
    /// Store a value under a key
    Put(point::Put),
    /// Remove a key
    Delete(point::Delete),
    /// Remove all keys of a range with one write
    DeleteRange(point::DeleteRange),
    /// Print entries in the order of their keys
    Scan(scan::Scan),
    /// Store the records of a file or a pipe
    Load(load::Load),
    /// Compare the database with the records of a file
    Compare(compare::Compare),
    /// Print the engine's statistics
    Stats,
    /// Print how many tables and bytes each level has
    Levels,
    /// Print every file of the directory, with its use
    List,
    /// Print about how many bytes of tables a range of keys takes
    Sizes(inspect::Sizes),
    /// Print a property, as in lodestore.estimate-num-keys
    Property {
        /// Its name
        name: String,
    },
    /// Print the names of the families
    Families,
    /// Print every property with its value
    Properties,
    /// Read everything and check it
    Verify,
    /// Print what a file holds, table, log or manifest, as the three verbs that follow do
    Dump(dump_any::Dump),
    /// Print what one table's file holds, and check it; needs no --db
    DumpTable(dump::DumpTable),
    /// Print what one segment of the log holds; needs no --db
    DumpLog(dump::DumpLog),
    /// Print the changes that a manifest records; needs no --db
    DumpManifest(dump_manifest::DumpManifest),
    /// Print in which files a key is, with every version
    Find(locate::Find),
    /// Look a key up, and print how: tables, filters, blocks, versions
    Explain(locate::Explain),
    /// Print what takes the space, and how much of it is dead
    Space(space::Space),
    /// Build a new database of what a damaged one still holds, and say what is lost
    Repair(repair::Repair),
    /// Compact a range of keys, or everything
    Compact(maintain::Compact),
    /// Make tables that were written elsewhere part of the database, all or none
    Ingest(tables::Ingest),
    /// Write a range of entries to a table that can be ingested
    ExportTable(tables::ExportTable),
    /// Make a copy that can be opened, sharing files where possible
    Checkpoint {
        /// A directory that is not there yet
        directory: PathBuf,
    },
}

impl Verb {
    /// Flags of every verb that this one has no use for.
    fn useless(&self) -> &'static [Useless] {
        match self {
            Verb::Dump(_)
            | Verb::DumpTable(_)
            | Verb::DumpLog(_)
            | Verb::DumpManifest(_)
            | Verb::Families
            | Verb::List => FILES_ALONE,
            Verb::Find(_) => &[Useless::Options],
            Verb::Verify | Verb::Checkpoint { .. } => &[Useless::Family],
            _ => &[],
        }
    }
}

/// Of no use to who looks at files and opens no database.
const FILES_ALONE: &[Useless] = &[Useless::Family, Useless::Options];

/// The command line of a verb of `lode db` that is a verb of `lode` as well.
#[derive(Debug, Args)]
pub struct Short<V: Args> {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    verb: V,
}

/// `lode sst`: a table's file.
pub fn sst(line: &Short<dump::DumpTable>) -> Done {
    line.target.refuse(FILES_ALONE)?;
    dump::table(&line.target, &line.verb)
}

/// `lode wal`: a segment of the log.
pub fn wal(line: &Short<dump::DumpLog>) -> Done {
    line.target.refuse(FILES_ALONE)?;
    dump::log(&line.target, &line.verb)
}

/// `lode manifest`: a manifest.
pub fn manifest(line: &Short<dump_manifest::DumpManifest>) -> Done {
    line.target.refuse(FILES_ALONE)?;
    dump_manifest::run(&line.target, &line.verb)
}

/// Does what the command line says.
pub fn run(database: &Database) -> Done {
    let target = &database.target;
    target.refuse(database.verb.useless())?;
    match &database.verb {
        Verb::Get(get) => point::get(target, get),
        Verb::Put(put) => point::put(target, put),
        Verb::Delete(delete) => point::delete(target, delete),
        Verb::DeleteRange(range) => point::delete_range(target, range),
        Verb::Scan(scan) => scan::run(target, scan),
        Verb::Load(load) => load::run(target, load),
        Verb::Compare(compare) => compare::run(target, compare),
        Verb::Stats => inspect::stats(target),
        Verb::Levels => inspect::levels(target),
        Verb::List => list::run(target),
        Verb::Sizes(sizes) => inspect::sizes(target, sizes),
        Verb::Property { name } => inspect::property(target, name),
        Verb::Families => inspect::families(target),
        Verb::Properties => inspect::properties(target),
        Verb::Verify => inspect::verify(target),
        Verb::Dump(dump) => dump_any::run(target, dump),
        Verb::DumpTable(dump) => dump::table(target, dump),
        Verb::DumpLog(dump) => dump::log(target, dump),
        Verb::DumpManifest(dump) => dump_manifest::run(target, dump),
        Verb::Find(find) => locate::find(target, find),
        Verb::Explain(explain) => locate::explain(target, explain),
        Verb::Space(space) => space::run(target, space),
        Verb::Repair(repair) => repair::run(target, repair),
        Verb::Compact(compact) => maintain::compact(target, compact),
        Verb::Ingest(ingest) => tables::ingest(target, ingest),
        Verb::ExportTable(export) => tables::export(target, export),
        Verb::Checkpoint { directory } => maintain::checkpoint(target, directory),
    }
}
