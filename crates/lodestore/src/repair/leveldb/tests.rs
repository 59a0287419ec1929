//! Databases that LevelDB leaves only after a crash or in a fork, taken apart.

use std::path::Path;

use crate::cursor::Cursor;
use crate::fs::{Fs, MemFs};
use crate::key::{BYTEWISE_NAME, KeyOrder, Kind, kind_of, sequence_of};
use crate::leveldb::directory::LevelDb;
use crate::leveldb::edit::Edit;
use crate::leveldb::testing::MadeDb;
use crate::options::Options;
use crate::repair::Repair;
use crate::sync::Arc;

use super::tables::open;

const ROOT: &str = "/leveldb";
const REPAIRED: &str = "/repaired";

fn options(fs: &MemFs) -> Options {
    Options { fs: Arc::new(fs.clone()), ..Options::default() }
}

/// Repairs [`ROOT`], and gives each entry of every table of what comes out: level,
/// name, key, number, value.
fn repaired(fs: &MemFs) -> Vec<(usize, String, String, u64, Option<String>)> {
    let repair = Repair::read(ROOT, &options(fs)).unwrap();
    repair.write_to(REPAIRED).unwrap();
    let database = LevelDb::read(fs, Path::new(REPAIRED)).unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut found = Vec::new();
    for (number, (level, table)) in &database.state.tables {
        let name = database.table_name(*number).to_string();
        let path = Path::new(REPAIRED).join(&name);
        let last = database.state.last_sequence;
        let mut cursor = open(fs, &path, table, last, &KeyOrder::Bytewise).unwrap().cursor();
        cursor.seek_to_first();
        while cursor.valid() {
            let is_put = kind_of(cursor.trailer()) == Some(Kind::Put);
            let value = is_put.then(|| text(cursor.value()));
            let (key, sequence) = (text(cursor.user_key()), sequence_of(cursor.trailer()));
            found.push((*level, name.clone(), key, sequence, value));
            cursor.next();
        }
        cursor.status().unwrap();
    }
    found
}

/// Without a manifest the newest number counts, whichever file is newer, and however
/// often an entry is there.
#[test]
fn without_a_manifest_the_newest_number_counts() {
    let fs = MemFs::new();
    let mut made = MadeDb::new(&fs, Path::new(ROOT), BYTEWISE_NAME);
    made.table(0, 9, "000009.ldb", &[(b"a", 3, Some(b"old")), (b"b", 4, None)]);
    made.table(1, 5, "000005.ldb", &[(b"a", 7, Some(b"new")), (b"b", 2, Some(b"gone"))]);
    // What a compaction that ended with a crash has left.
    made.table(1, 7, "000007.sst", &[(b"a", 7, Some(b"new")), (b"c", 6, Some(b"six"))]);
    made.file("LOCK", b"");
    let found = repaired(&fs);
    let (a, c) = ("a".to_string(), "c".to_string());
    let name = found[0].1.clone();
    let expected = vec![
        (2, name.clone(), a, 7, Some("new".to_string())),
        (2, name, c, 6, Some("six".to_string())),
    ];
    assert_eq!(found, expected);
}

/// A damaged table of level 0 keeps its number, by which LevelDB knows its age, and
/// those in folders stay there.
#[test]
fn with_a_manifest_tables_keep_their_names_and_levels() {
    let fs = MemFs::new();
    let mut made = MadeDb::new(&fs, Path::new(ROOT), BYTEWISE_NAME);
    let value = [b'v'; 5_000];
    let older = [(&b"a"[..], 1, Some(&value[..])), (b"b", 2, Some(&value)), (b"c", 3, None)];
    made.table(0, 4, "000004.ldb", &older);
    made.table(0, 6, "000006.ldb", &[(b"a", 5, Some(b"new"))]);
    made.table(1, 3, "sst_1/000003.sst", &[(b"d", 0, Some(b"deep"))]);
    made.finish();
    let path = Path::new(ROOT).join("000004.ldb");
    let mut bytes = crate::fs::read_all(&fs, &path).unwrap();
    bytes[3] ^= 1;
    fs.remove(&path).unwrap();
    let mut file = fs.create(&path).unwrap();
    file.append(&bytes).unwrap();
    file.close().unwrap();

    let report = Repair::read(ROOT, &options(&fs)).unwrap().report();
    assert_eq!((report.tables, report.tables_rewritten), (2, 1));
    let [loss] = &report.losses[..] else { panic!("{report:?}") };
    let bound = |key: &[u8]| Some(key.to_vec());
    assert_eq!((&loss.file[..], &loss.from, &loss.to), ("000004.ldb", &bound(b"a"), &bound(b"b")));
    let found: Vec<_> = repaired(&fs)
        .into_iter()
        .map(|(level, name, key, sequence, _)| (level, name, key, sequence))
        .collect();
    let expected = [
        (1, "sst_1/000003.sst", "d", 0),
        (0, "000004.ldb", "b", 2),
        (0, "000004.ldb", "c", 3),
        (0, "000006.ldb", "a", 5),
    ]
    .map(|(level, name, key, sequence)| (level, name.to_string(), key.to_string(), sequence));
    assert_eq!(found, expected);
}

/// What a compaction has used up stays away also where the manifest's end may be lost;
/// a table that was moved to another level, which the manifest tells as a deletion and
/// an addition, is there still.
#[test]
fn a_moved_table_is_not_out_of_use() {
    let fs = MemFs::new();
    let mut made = MadeDb::new(&fs, Path::new(ROOT), BYTEWISE_NAME);
    made.table(0, 4, "000004.ldb", &[(b"a", 1, Some(b"used up"))]);
    made.table(0, 5, "000005.ldb", &[(b"b", 2, Some(b"moved"))]);
    made.file("000009.ldb", b"a table that the manifest does not know");
    let (_, moved) = made.edit.added[1].clone();
    let later = Edit { deleted: vec![(0, 4), (0, 5)], added: vec![(1, moved)], ..Edit::default() };
    made.finish_after(&[later]);
    let keys: Vec<String> = repaired(&fs).into_iter().map(|(_, _, key, _, _)| key).collect();
    assert_eq!(keys, ["b"]);
}

#[test]
fn entries_that_expire_are_refused_by_name() {
    let fs = MemFs::new();
    let mut made = MadeDb::new(&fs, Path::new(ROOT), BYTEWISE_NAME);
    made.table(2, 5, "sst_2/000005.sst", &[(b"a", 1, Some(b"1"))]);
    made.edit.expires = true;
    made.finish();
    let told = Repair::read(ROOT, &options(&fs)).unwrap_err().to_string();
    assert!(told.contains("expire"), "{told}");
}
