//! Databases that no test of the public interface can make: tables that our levels
//! do not take as they are.

use std::path::Path;

use crate::db::Db;
use crate::error::Result;
use crate::fs::{Capabilities, Fault, FaultFs, Fs, MemFs, Operation};
use crate::inspect::{FileUse, Survey, TableFile, find};
use crate::key::{BYTEWISE_NAME, KeyOrder};
use crate::leveldb::log;
use crate::leveldb::testing::MadeDb;
use crate::options::Options;
use crate::repair::Repair;
use crate::sync::Arc;

use super::{adopt, commit, open_read_only, roll_back};

const ROOT: &str = "/leveldb";

fn options(fs: &MemFs) -> Options {
    Options { fs: Arc::new(fs.clone()), ..Options::default() }
}

fn entries(db: &Db) -> Vec<(String, String)> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    db.range(..).map(|entry| entry.unwrap()).map(|(k, v)| (text(k), text(v))).collect()
}

fn put(fs: &MemFs, name: &str, bytes: &[u8]) {
    let mut file = fs.create(&Path::new(ROOT).join(name)).unwrap();
    file.append(bytes).unwrap();
    file.close().unwrap();
}

/// Every name and every byte below `directory`, folders included.
fn files(fs: &MemFs, directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for name in fs.list(directory).unwrap() {
        let path = directory.join(&name);
        match crate::fs::read_all(fs, &path) {
            Ok(bytes) => found.push((path.display().to_string(), bytes)),
            Err(_) => {
                found.push((path.display().to_string(), b"a folder".to_vec()));
                found.extend(files(fs, &path));
            }
        }
    }
    found.sort();
    found
}

/// Level 0 as LevelDB's repair leaves it, numbers mixed, and two tables of level 1
/// that share a key.
fn mixed(fs: &MemFs) {
    let mut made = MadeDb::new(fs, Path::new(ROOT), BYTEWISE_NAME);
    made.table(0, 5, "000005.ldb", &[(b"a", 11, Some(b"old")), (b"b", 14, Some(b"new"))]);
    made.table(0, 6, "000006.ldb", &[(b"a", 13, Some(b"new")), (b"b", 12, None)]);
    made.table(1, 7, "000007.ldb", &[(b"a", 1, Some(b"1")), (b"c", 4, Some(b"new"))]);
    made.table(1, 8, "000008.ldb", &[(b"c", 2, Some(b"old")), (b"d", 3, Some(b"3"))]);
    made.finish();
}

const MIXED: [(&str, &str); 4] = [("a", "new"), ("b", "new"), ("c", "new"), ("d", "3")];

/// Tables whose entries interleave are read right in place and adopted, by every
/// way of reading, and reading in place changes nothing.
#[test]
fn tables_that_share_keys_are_read_and_adopted() {
    let fs = MemFs::new();
    mixed(&fs);
    let (before, operations) = (files(&fs, Path::new(ROOT)), fs.operations());
    let expected = MIXED.map(|(key, value)| (key.to_string(), value.to_string()));
    let check = |db: &Db| {
        assert_eq!(entries(db), expected);
        for (key, value) in MIXED {
            assert_eq!(db.get(key.as_bytes()).unwrap().as_deref(), Some(value.as_bytes()));
        }
        db.verify().unwrap();
    };
    check(&open_read_only(ROOT, options(&fs)).unwrap());
    assert_eq!(fs.operations(), operations);

    let adopted = adopt(ROOT, &options(&fs)).unwrap();
    assert_eq!((adopted.tables_linked, adopted.tables_rewritten), (0, 4));
    check(&open_read_only(ROOT, options(&fs)).unwrap());
    check(&Db::open(ROOT, options(&fs)).unwrap());
    roll_back(ROOT, &options(&fs)).unwrap();
    assert_eq!(files(&fs, Path::new(ROOT)), before);
}

/// Level 1 of Basho's fork: a table behind another may lie within a third one.
#[test]
fn tables_that_lie_within_another_are_adopted() {
    let fs = MemFs::new();
    let mut made = MadeDb::new(&fs, Path::new(ROOT), BYTEWISE_NAME);
    let wide = [(&b"a"[..], 1, Some(&b"1"[..])), (b"d", 2, Some(b"old")), (b"y", 3, Some(b"3"))];
    made.table(1, 5, "sst_1/000005.sst", &wide);
    made.table(1, 6, "sst_1/000006.sst", &[(b"b", 4, Some(b"4")), (b"c", 5, Some(b"5"))]);
    made.table(1, 7, "sst_1/000007.sst", &[(b"d", 6, Some(b"new")), (b"e", 7, Some(b"7"))]);
    made.table(1, 8, "sst_1/000008.sst", &[(b"z", 8, Some(b"8"))]);
    made.finish();
    let before = files(&fs, Path::new(ROOT));
    let expected = [("a", "1"), ("b", "4"), ("c", "5"), ("d", "new"), ("e", "7"), ("y", "3")];
    let expected = expected.iter().chain(&[("z", "8")]);
    let expected: Vec<_> = expected.map(|(k, v)| (k.to_string(), v.to_string())).collect();
    assert_eq!(entries(&open_read_only(ROOT, options(&fs)).unwrap()), expected);
    let adopted = adopt(ROOT, &options(&fs)).unwrap();
    assert_eq!((adopted.tables_linked, adopted.tables_rewritten), (1, 3));
    assert_eq!(entries(&Db::open(ROOT, options(&fs)).unwrap()), expected);
    roll_back(ROOT, &options(&fs)).unwrap();
    assert_eq!(files(&fs, Path::new(ROOT)), before);
}

/// A log of batches of one put each: their numbers, and the key that all have.
fn log_of(numbers: &[u64], key: u8) -> Vec<u8> {
    let mut file = Vec::new();
    for number in numbers {
        let put = [1, 0, 0, 0, 1, 1, key, 1, b'v'];
        log::append(&mut file, &[&number.to_le_bytes()[..], &put].concat());
    }
    file
}

/// LevelDB takes them as they come: what is newest would be another entry for a lookup
/// than for a walk.
#[test]
fn logs_whose_numbers_go_back_are_refused() {
    let with = |level, logs: &[&[u64]], key| {
        let fs = MemFs::new();
        let mut made = MadeDb::new(&fs, Path::new(ROOT), BYTEWISE_NAME);
        let table = [(&b"a"[..], 5, Some(&b"a"[..])), (b"b", 8, Some(b"b")), (b"c", 6, None)];
        made.table(level, 5, "000005.ldb", &table);
        for (index, numbers) in logs.iter().enumerate() {
            made.file(&format!("{:06}.log", 1_001 + index), &log_of(numbers, key));
        }
        made.finish();
        let before = files(&fs, Path::new(ROOT));
        let in_place = open_read_only(ROOT, options(&fs)).and_then(|db| db.verify());
        assert_eq!(files(&fs, Path::new(ROOT)), before);
        let adopted = adopt(ROOT, &options(&fs)).and_then(|_| {
            let db = Db::open(ROOT, options(&fs))?;
            db.verify()
        });
        let told = |result: Result<_>| result.err().map_or("sound".to_string(), |e| e.to_string());
        [told(in_place), told(adopted)]
    };
    for told in with(1, &[&[9, 10], &[11]], b'b') {
        assert_eq!(told, "sound");
    }
    for told in with(1, &[&[9, 11, 10]], b'b').into_iter().chain(with(1, &[&[9], &[9]], b'x')) {
        assert!(told.contains(".log at offset") && told.contains("go back"), "{told}");
    }
    // The table of level 0 is read for its age, a deeper one only when it is verified.
    for told in with(0, &[&[], &[8]], b'b') {
        assert!(told.contains("000005.ldb at offset 0: it has an entry that is newer"), "{told}");
    }
    for told in with(1, &[&[8]], b'b') {
        assert!(told.contains("000005"), "{told}");
    }
}

/// With `reuse_logs` LevelDB goes on in a log whose last record a killed process has left
/// unfinished, and reads what follows.
#[test]
fn a_log_goes_on_behind_a_record_without_end() {
    for behind_others in [false, true] {
        let fs = MemFs::new();
        let mut made = MadeDb::new(&fs, Path::new(ROOT), BYTEWISE_NAME);
        made.table(1, 5, "000005.ldb", &[(b"a", 5, Some(b"a")), (b"b", 8, Some(b"b"))]);
        let mut file = if behind_others { log_of(&[9], b'c') } else { Vec::new() };
        // A record of more than a block: the first ends where the file was left.
        log::append(&mut file, &[0; 40_000]);
        file.truncate(32 << 10);
        file.extend(log_of(&[10, 11], b'd'));
        made.file("001001.log", &file);
        made.finish();
        let expected = if behind_others { 4 } else { 3 };
        let check = |db: Db| {
            db.verify().unwrap();
            assert_eq!(entries(&db).len(), expected);
        };
        check(open_read_only(ROOT, options(&fs)).unwrap());
        adopt(ROOT, &options(&fs)).unwrap();
        check(Db::open(ROOT, options(&fs)).unwrap());
    }
}

/// What LevelDB has not synced is there to go back to, even if the power goes after the
/// adoption: its own file is removed by then.
#[test]
fn a_log_that_was_not_synced_survives_power_loss_after_the_adoption() {
    for hard_links in [true, false] {
        let capabilities = Capabilities { hard_links, ..MemFs::new().capabilities() };
        let fs = MemFs::with_capabilities(capabilities);
        let mut made = MadeDb::new(&fs, Path::new(ROOT), BYTEWISE_NAME);
        made.table(1, 5, "000005.ldb", &[(b"a", 5, Some(b"a"))]);
        made.finish();
        put(&fs, "001001.log", &log_of(&[9, 10, 11], b'b'));
        let before = files(&fs, Path::new(ROOT));
        adopt(ROOT, &options(&fs)).unwrap();
        for seed in 0..32 {
            let fs = fs.crash(seed);
            roll_back(ROOT, &options(&fs)).unwrap();
            assert_eq!(files(&fs, Path::new(ROOT)), before, "links: {hard_links}, seed {seed}");
        }
    }
}

/// Damage is told of the file that has it.
#[test]
fn a_log_that_begins_with_no_batch_is_named() {
    let fs = MemFs::new();
    let mut made = MadeDb::new(&fs, Path::new(ROOT), BYTEWISE_NAME);
    made.table(0, 5, "000005.ldb", &[(b"a", 5, Some(b"a"))]);
    let mut file = Vec::new();
    log::append(&mut file, b"no batch");
    made.file("001001.log", &file);
    made.finish();
    for told in [open_read_only(ROOT, options(&fs)).err(), adopt(ROOT, &options(&fs)).err()] {
        let told = told.unwrap();
        assert!(told.is_corruption() && told.to_string().contains("001001.log"), "{told}");
    }
}

/// LevelDB may have it open and remove a table that it has compacted: who reads the
/// database does not miss it.
#[test]
fn a_table_that_leveldb_removes_can_still_be_read() {
    let fs = MemFs::new();
    let mut made = MadeDb::new(&fs, Path::new(ROOT), BYTEWISE_NAME);
    made.table(1, 5, "000005.ldb", &[(b"a", 1, Some(b"1")), (b"b", 2, Some(b"2"))]);
    made.table(1, 6, "000006.sst", &[(b"c", 3, Some(b"3"))]);
    made.finish();
    let db = open_read_only(ROOT, options(&fs)).unwrap();
    for name in ["000005.ldb", "000006.sst"] {
        fs.remove(&Path::new(ROOT).join(name)).unwrap();
    }
    let expected = [("a", "1"), ("b", "2"), ("c", "3")];
    assert_eq!(entries(&db), expected.map(|(key, value)| (key.to_string(), value.to_string())));
    db.verify().unwrap();
    let missing = open_read_only(ROOT, options(&fs)).unwrap_err();
    assert!(missing.is_corruption() && missing.to_string().contains("000005.ldb"), "{missing}");
}

/// The order of Chrome's IndexedDB need not be given, whatever looks: it is not that of
/// the bytes.
#[test]
fn an_order_that_the_library_has_is_found() {
    let fs = MemFs::new();
    let mut made = MadeDb::new(&fs, Path::new(ROOT), "idb_cmp1");
    let key = |number: f64| [&[0, 1, 1, 1, 3], &number.to_le_bytes()[..]].concat();
    let (low, high) = (key(-1.5), key(0.0));
    assert!(low > high);
    made.table(2, 5, "000005.ldb", &[(&low, 1, Some(b"1")), (&high, 2, Some(b"2"))]);
    made.finish();
    let fs: Arc<dyn Fs> = Arc::new(fs);
    let db = open_read_only(ROOT, Options { fs: Arc::clone(&fs), ..Options::default() }).unwrap();
    let keys: Vec<_> = db.range(..).map(|entry| entry.unwrap().0).collect();
    assert_eq!(keys, [low.clone(), high.clone()]);
    db.verify().unwrap();
    for key in [&low, &high] {
        let found = find(&fs, Path::new(ROOT), "default", &KeyOrder::Bytewise, key).unwrap();
        assert_eq!(found.len(), 1);
    }
    let path = Path::new(ROOT).join("000005.ldb");
    let table = TableFile::open(&*fs, &path, KeyOrder::Bytewise).unwrap();
    table.verify().unwrap();
    assert_eq!(table.properties().order_name, "idb_cmp1");
}

/// Files of ours that an adoption which was cut short has left are not taken for
/// LevelDB's, nor read into memory.
#[test]
fn what_an_adoption_has_left_is_not_read() {
    let fs = MemFs::new();
    let mut made = MadeDb::new(&fs, Path::new(ROOT), BYTEWISE_NAME);
    // Longer than a block each.
    let value = [b'1'; 5_000];
    let table = [(&b"first-key"[..], 1, Some(&value[..])), (b"second-key", 2, Some(&value))];
    made.table(1, 5, "000005.ldb", &table);
    for name in ["000005.table", "000900.wal", "000901.table", "OPTIONS-000902", "000903.tmp"] {
        made.file(name, b"junk");
    }
    made.file("adopted/000005.ldb", b"junk");
    made.finish();
    let before = files(&fs, Path::new(ROOT));
    let db = open_read_only(ROOT, options(&fs)).unwrap();
    assert_eq!(entries(&db).len(), 2);
    assert_eq!(db.verify().unwrap().tables, 1);
    assert_eq!(files(&fs, Path::new(ROOT)), before);

    // Damage is that of LevelDB's file: it was not copied to make room for its name.
    let mut damaged = crate::fs::read_all(&fs, &Path::new(ROOT).join("000005.ldb")).unwrap();
    let at = damaged.windows(10).position(|bytes| bytes == b"second-key").unwrap();
    damaged[at] ^= 1;
    put(&fs, "000005.ldb", &damaged);
    let told = open_read_only(ROOT, options(&fs)).unwrap().verify().unwrap_err().to_string();
    assert!(told.contains("000005.ldb at offset"), "{told}");
}

/// What reading in place holds in memory cannot be written to by mistake.
#[test]
fn a_database_that_is_read_in_place_takes_no_writes() {
    let fs = MemFs::new();
    mixed(&fs);
    let db = open_read_only(ROOT, options(&fs)).unwrap();
    assert!(db.put(b"x", b"1").is_err());
    let inside = format!("{ROOT}/inside");
    assert!(crate::export::to_leveldb(&db, &Default::default(), &inside).is_err());
    crate::export::to_leveldb(&db, &Default::default(), "/outside").unwrap();
    let survey = Survey::read(&options(&fs).fs, Path::new("/outside")).unwrap();
    assert!(survey.files.iter().any(|file| file.usage == FileUse::Table && file.bytes > 0));
    assert_eq!(entries(&open_read_only("/outside", options(&fs)).unwrap()), entries(&db));
}

/// A database as Basho's fork has it: tables in folders, of which level 1 overlaps.
fn basho(fs: &MemFs) {
    let mut made = MadeDb::new(fs, Path::new(ROOT), BYTEWISE_NAME);
    made.table(0, 9, "sst_0/000009.sst", &[(b"a", 9, Some(b"newest"))]);
    made.table(1, 7, "sst_1/000007.sst", &[(b"a", 5, Some(b"older")), (b"c", 6, None)]);
    made.table(1, 8, "sst_1/000008.sst", &[(b"b", 7, Some(b"seven")), (b"d", 8, Some(b"eight"))]);
    made.table(2, 5, "sst_2/000005.sst", &[(b"c", 1, Some(b"gone")), (b"e", 2, Some(b"two"))]);
    // Where it was before it was moved.
    made.file("sst_1/000005.sst", b"a copy that is not whole");
    made.file("sst_6/readme", b"somebody else's");
    made.finish();
}

#[test]
fn tables_in_folders_of_levels_are_adopted_and_stay_there_until_that_is_final() {
    let fs = MemFs::new();
    basho(&fs);
    let before = files(&fs, Path::new(ROOT));
    let expected = [("a", "newest"), ("b", "seven"), ("d", "eight"), ("e", "two")]
        .map(|(key, value)| (key.to_string(), value.to_string()));
    assert_eq!(entries(&open_read_only(ROOT, options(&fs)).unwrap()), expected);
    assert_eq!(files(&fs, Path::new(ROOT)), before);

    adopt(ROOT, &options(&fs)).unwrap();
    let db = Db::open(ROOT, options(&fs)).unwrap();
    assert_eq!(entries(&db), expected);
    db.compact_range(None, None).unwrap();
    drop(db);
    roll_back(ROOT, &options(&fs)).unwrap();
    assert_eq!(files(&fs, Path::new(ROOT)), before);

    adopt(ROOT, &options(&fs)).unwrap();
    commit(ROOT, &options(&fs)).unwrap();
    assert_eq!(entries(&Db::open(ROOT, options(&fs)).unwrap()), expected);
    let left: Vec<String> = files(&fs, Path::new(ROOT)).into_iter().map(|(name, _)| name).collect();
    let of_levels: Vec<_> = left.iter().filter(|name| name.contains("sst_")).collect();
    assert!(of_levels.iter().all(|name| name.contains("sst_6")), "{of_levels:?}");
}

/// Its filters have the name of LevelDB's, and deny what is there if they are asked as
/// those: in its folder, adopted and repaired.
#[test]
fn filters_of_bashos_fork_deny_nothing() {
    let fs = MemFs::new();
    basho(&fs);
    let check = |db: &Db| {
        for (key, value) in [("a", "newest"), ("b", "seven"), ("d", "eight"), ("e", "two")] {
            let found = db.get(key.as_bytes()).unwrap();
            assert_eq!(found.as_deref(), Some(value.as_bytes()), "{key}");
        }
        db.verify().unwrap();
    };
    check(&open_read_only(ROOT, options(&fs)).unwrap());
    let found = find(&options(&fs).fs, Path::new(ROOT), "default", &KeyOrder::Bytewise, b"e");
    assert_eq!(found.unwrap().len(), 1);
    let path = Path::new(ROOT).join("sst_2/000005.sst");
    TableFile::open(&fs, &path, KeyOrder::Bytewise).unwrap().verify().unwrap();

    let repair = Repair::read(ROOT, &options(&fs)).unwrap();
    let report = repair.report();
    assert_eq!((report.tables, report.tables_rewritten, report.losses), (4, 0, vec![]));
    repair.write_to("/repaired").unwrap();
    check(&open_read_only("/repaired", options(&fs)).unwrap());

    adopt(ROOT, &options(&fs)).unwrap();
    check(&Db::open(ROOT, options(&fs)).unwrap());
}

/// Commits of what was adopted in `made`, stopped after 0, 1, 2, ... operations of the
/// file system, up to the last one.
fn interrupted_commits(made: &MemFs) -> impl Iterator<Item = MemFs> + '_ {
    (0..).map_while(|operations| {
        let fs = made.fork();
        fs.stop_after(fs.operations() + operations);
        let result = commit(ROOT, &options(&fs));
        if !fs.is_stopped() {
            result.unwrap();
            return None;
        }
        Some(fs)
    })
}

/// Wherever a commit ends, by an error or because the power is gone: it can be rolled
/// back, byte for byte, or it is refused and can be read; and the next commit leaves
/// nothing behind.
#[test]
fn an_interrupted_commit_is_undone_in_whole_or_not_at_all() {
    let made = MemFs::new();
    basho(&made);
    let before = files(&made, Path::new(ROOT));
    let expected = entries(&open_read_only(ROOT, options(&made)).unwrap());
    adopt(ROOT, &options(&made)).unwrap();
    let check = |fs: MemFs, what: &str| {
        let rolled = fs.fork();
        match roll_back(ROOT, &options(&rolled)) {
            Ok(()) => assert_eq!(files(&rolled, Path::new(ROOT)), before, "{what}"),
            Err(error) => assert!(error.to_string().contains("committed"), "{what}: {error}"),
        }
        assert_eq!(entries(&Db::open(ROOT, options(&fs)).unwrap()), expected, "{what}");
        let again = commit(ROOT, &options(&fs));
        let is_left = fs.list(&Path::new(ROOT).join("adopted")).is_ok_and(|left| !left.is_empty());
        assert!(again.is_ok() || !is_left, "{what}: {again:?}");
        let left = files(&fs, Path::new(ROOT)).into_iter().map(|(name, _)| name);
        let left: Vec<_> = left.filter(|name| name.contains("sst_")).collect();
        assert!(left.iter().all(|name| name.contains("sst_6")), "{what}: {left:?}");
        assert_eq!(entries(&Db::open(ROOT, options(&fs)).unwrap()), expected, "{what}");
    };
    for (operations, fs) in interrupted_commits(&made).enumerate() {
        check(fs.kill(), &format!("killed after {operations}"));
        for seed in 0..16 {
            check(fs.crash(seed), &format!("power lost after {operations}, seed {seed}"));
        }
    }
    for operation in [Operation::List, Operation::Remove, Operation::SyncDirectory] {
        for nth in 1.. {
            let fs = made.fork();
            let faults = FaultFs::new(Arc::new(fs.clone()));
            faults.inject(Fault::new(operation, nth, std::io::ErrorKind::Other));
            let options = Options { fs: Arc::new(faults.clone()), ..Options::default() };
            let _ = commit(ROOT, &options);
            if faults.struck() == 0 {
                break;
            }
            check(fs, &format!("{operation:?} {nth} failed"));
        }
    }
}

/// Folders named as Basho's beside a database of LevelDB's own stay, even if a commit
/// ends when some of the tables that tell them apart are gone already.
#[test]
fn an_interrupted_commit_leaves_folders_that_are_not_of_the_database() {
    let made = MemFs::new();
    mixed(&made);
    let folder = Path::new(ROOT).join("sst_1");
    MadeDb::new(&made, Path::new(ROOT), BYTEWISE_NAME).file("sst_1/000400.sst", b"somebody else's");
    adopt(ROOT, &options(&made)).unwrap();
    for (operations, fs) in interrupted_commits(&made).enumerate() {
        for seed in 0..16 {
            for fs in [fs.kill(), fs.crash(seed)] {
                let _ = commit(ROOT, &options(&fs));
                let left = fs.list(&folder).unwrap();
                assert_eq!(left, ["000400.sst"], "after {operations}, seed {seed}");
            }
        }
    }
}

#[test]
fn a_rollback_leaves_no_lock_file_that_was_not_there() {
    for had_lock_file in [true, false] {
        let fs = MemFs::new();
        mixed(&fs);
        if !had_lock_file {
            fs.remove(&Path::new(ROOT).join("LOCK")).unwrap();
        }
        let before = files(&fs, Path::new(ROOT));
        adopt(ROOT, &options(&fs)).unwrap();
        drop(Db::open(ROOT, options(&fs)).unwrap());
        roll_back(ROOT, &options(&fs)).unwrap();
        assert_eq!(files(&fs, Path::new(ROOT)), before);
    }
}

/// One stray file would have ours get numbers from 0 on.
#[test]
fn a_file_with_one_of_the_last_numbers_is_refused_by_name() {
    for number in [u64::MAX - 1, u64::MAX, u64::MAX / 2] {
        let fs = MemFs::new();
        let mut made = MadeDb::new(&fs, Path::new(ROOT), BYTEWISE_NAME);
        made.table(1, 5, "000005.ldb", &[(b"a", 1, Some(b"1"))]);
        made.file(&format!("{number}.log"), b"");
        made.finish();
        let before = files(&fs, Path::new(ROOT));
        for told in [open_read_only(ROOT, options(&fs)).err(), adopt(ROOT, &options(&fs)).err()] {
            let told = told.unwrap().to_string();
            assert!(told.contains(&format!("{number}.log")), "{told}");
        }
        assert_eq!(files(&fs, Path::new(ROOT)), before);
    }
}

#[test]
fn entries_that_expire_are_refused_by_name() {
    let fs = MemFs::new();
    let mut made = MadeDb::new(&fs, Path::new(ROOT), BYTEWISE_NAME);
    made.table(2, 5, "sst_2/000005.sst", &[(b"a", 1, Some(b"1"))]);
    made.edit.expires = true;
    made.finish();
    let before = files(&fs, Path::new(ROOT));
    let told = adopt(ROOT, &options(&fs)).unwrap_err().to_string();
    assert!(told.contains("expire"), "{told}");
    assert_eq!(files(&fs, Path::new(ROOT)), before);
}
