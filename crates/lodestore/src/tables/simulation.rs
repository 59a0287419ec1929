//! Tables that become obsolete while readers hold them, and tables that several
//! threads open at once.

use super::{TableFile, TableHome, TableReads};
use crate::budget::{Account, Charge, Item};
use crate::cache::Cache;
use crate::fs::{Fs, MemFs};
use crate::key::{FileId, KeyOrder};
use crate::scheduler::Scheduler;
use crate::sync::{Arc, thread};
use crate::table::meta::TableMeta;
use crate::table::{TableBuilder, TableSettings};
use std::path::{Path, PathBuf};
use testkit::explore::explore;
use testkit::random::Random;

fn home(fs: &MemFs, scheduler: &Arc<Scheduler>, account: &Arc<Account>) -> Arc<TableHome> {
    let (fs, cache) = (Arc::new(fs.clone()), Cache::new(0));
    let (scheduler, account, reads) =
        (Arc::clone(scheduler), Arc::clone(account), TableReads::default());
    TableHome::new(fs, PathBuf::new(), cache, scheduler, account, reads)
}

fn settings(account: &Arc<Account>) -> TableSettings {
    let buffers = Charge::new(account, Item::Compactions);
    TableSettings { block_bytes: 64, ..TableSettings::plain(buffers) }
}

/// Writes table `number`, with one key.
fn write(fs: &MemFs, account: &Arc<Account>, number: u64) -> TableMeta {
    let path = crate::filename::table_path(Path::new(""), number);
    let file = fs.create(&path).expect("memory takes a file");
    let id = FileId(number.into());
    let mut builder = TableBuilder::new(file, &path, id, settings(account)).expect("it begins");
    builder.add(b"key", 0x101, b"value").expect("it takes an entry");
    TableMeta { number, ..builder.finish().expect("it ends") }
}

/// A table that the manifest no longer names keeps its file while anybody holds
/// it, and loses it after that; once the directory is given up, nothing is
/// removed there.
#[test]
fn a_file_goes_after_its_last_reader() {
    explore("table files", |seed| {
        let mut random = Random::new(seed);
        let (fs, account) = (MemFs::new(), Account::unlimited());
        let scheduler = Scheduler::seeded(1, seed);
        let home = home(&fs, &scheduler, &account);
        let meta = TableMeta { number: 1, ..TableMeta::default() };
        let path = crate::filename::table_path(Path::new(""), 1);
        drop(fs.create(&path).expect("memory takes a file"));
        let file = TableFile::new(&home, &KeyOrder::Bytewise, meta);
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (held, fs, path) = (Arc::clone(&file), fs.clone(), path.clone());
                thread::spawn("reader", move || {
                    let again = Arc::clone(&held);
                    drop(held);
                    assert!(fs.open(&path).is_ok(), "the file is gone under its reader");
                    drop(again);
                })
            })
            .collect();
        file.mark_obsolete();
        let closes = random.one_in(2);
        if closes {
            // Its removal begins at about the time when the directory is given up.
            readers.into_iter().for_each(|reader| reader.join().unwrap());
            drop(file);
            home.close();
            let is_there = fs.open(&path).is_ok();
            wait_for_removals(&home);
            assert_eq!(fs.open(&path).is_ok(), is_there, "another opener's file is removed");
        } else {
            drop(file);
            readers.into_iter().for_each(|reader| reader.join().unwrap());
            wait_for_removals(&home);
            assert!(fs.open(&path).is_err(), "an obsolete file stays");
        }
    });
}

fn wait_for_removals(home: &TableHome) {
    while home.is_removing() {
        thread::yield_now();
    }
}

/// Threads that open one table at the same time get the same one, and its memory
/// is charged once.
#[test]
fn a_table_that_many_open_is_opened_once() {
    explore("tables being opened", |seed| {
        let (fs, account) = (MemFs::new(), Account::unlimited());
        let meta = write(&fs, &account, 1);
        let scheduler = Scheduler::seeded(1, seed);
        let home = home(&fs, &scheduler, &account);
        let file = TableFile::new(&home, &KeyOrder::Bytewise, meta);
        let openers: Vec<_> = (0..2)
            .map(|_| {
                let file = Arc::clone(&file);
                thread::spawn("opener", move || {
                    let table = Arc::clone(file.table().expect("it opens"));
                    assert!(Arc::ptr_eq(&table, file.opened().expect("it is open")));
                })
            })
            .collect();
        openers.into_iter().for_each(|opener| opener.join().unwrap());
        let table = file.opened().expect("it is open");
        assert_eq!(Arc::strong_count(table), 1, "what came second is gone");
        assert_eq!(account.used(Item::Tables), table.memory_bytes());
        drop(file);
        assert_eq!(account.used(Item::Tables), 0);
    });
}
