//! Repair of our own databases, where what is left says less than it seems to.

use lodestore::fs::read_all;
use lodestore::inspect::LogFile;
use lodestore::repair::Repair;
use lodestore::{AddU64, Db, Error, Fs, IngestOptions, MemFs, Options, TableWriter, WriteOptions};
use std::path::Path;
use std::sync::Arc;

fn remove_manifests(fs: &dyn Fs) {
    let directory = Path::new("damaged");
    for name in fs.list(directory).expect("it is there") {
        if name.starts_with("MANIFEST") {
            fs.remove(&directory.join(name)).expect("it is there");
        }
    }
}

/// Without a manifest the tables' numbers tell which entries of the log they have.
/// Those of tables that were ingested do not: what was in memory then is not there.
#[test]
fn what_was_in_memory_while_tables_were_ingested_is_kept() -> Result<(), Error> {
    let fs = Arc::new(MemFs::new());
    let options = Options { create_if_missing: true, fs: fs.clone(), ..Options::default() };
    let db = Db::open("damaged", options.clone())?;
    db.put_with(&WriteOptions::SYNCED, b"kept", b"in memory")?;
    // It keeps the numbers of what is compacted.
    let snapshot = db.snapshot();
    for round in 0..10 {
        let path = format!("ingested-{round}");
        let mut table = TableWriter::create(&path, &options, &options.family)?;
        for key in [b"a", b"b"] {
            table.put(key, path.as_bytes())?;
        }
        table.finish()?;
        db.ingest(&[path], &IngestOptions::default())?;
    }
    db.wait_for_background()?;
    assert!(db.stats().levels[0].files < 9, "some were compacted");
    drop((snapshot, db));
    remove_manifests(&*fs);
    Repair::read("damaged", &options)?.write_to("repaired")?;
    let db = Db::open("repaired", options)?;
    assert_eq!(db.get(b"kept")?.as_deref(), Some(&b"in memory"[..]));
    assert!(db.get(b"a")?.is_some_and(|value| value.starts_with(b"ingested")));
    Ok(())
}

/// The manifest is gone, and from the log the record that tells that a table has all
/// before it: what is in both is there once.
#[test]
fn what_is_in_a_table_and_in_a_log_without_its_end_is_there_once() -> Result<(), Error> {
    let fs = Arc::new(MemFs::new());
    let mut options = Options { create_if_missing: true, fs: fs.clone(), ..Options::default() };
    options.family.merge_operator = Some(Arc::new(AddU64));
    let db = Db::open("damaged", options.clone())?;
    // It needs the log.
    let other = db.create_family("other", options.family.clone())?;
    other.put(b"kept", b"in the log")?;
    db.merge(b"count", &1_u64.to_le_bytes())?;
    db.put(b"last", b"in a table")?;
    db.flush()?;
    let disk = fs.kill();
    remove_manifests(&disk);
    let log = Path::new("damaged/000003.wal");
    let mut bytes = read_all(&disk, log).expect("it is there");
    let at = bytes.windows(10).position(|at| at == b"in a table").expect("it is there");
    bytes[at] ^= 1;
    disk.create(log).and_then(|mut file| file.append(&bytes)).expect("there is room");
    let options = Options { fs: Arc::new(disk), ..options };
    Repair::read("damaged", &options)?.write_to("repaired")?;
    let db = Db::open("repaired", options)?;
    db.verify()?;
    assert_eq!(db.get(b"count")?.as_deref(), Some(&1_u64.to_le_bytes()[..]));
    assert_eq!(db.get(b"last")?.as_deref(), Some(&b"in a table"[..]));
    let other = db.family("family-1").expect("only the log knows of it");
    assert_eq!(other.get(b"kept")?.as_deref(), Some(&b"in the log"[..]));
    Ok(())
}

/// Behind a damaged record of a small batch the log is read again from the next block on,
/// and the report says which numbers are lost, also at the log's end.
#[test]
fn a_damaged_small_batch_takes_no_more_than_its_block() -> Result<(), Error> {
    let key = |nth: usize| [100 + nth as u8; 16];
    let fs = Arc::new(MemFs::new());
    let options = Options { create_if_missing: true, fs: fs.clone(), ..Options::default() };
    let db = Db::open("damaged", options.clone())?;
    (0..80).try_for_each(|nth| db.put(&key(nth), &[7; 100]))?;
    let disk = fs.kill();
    let log = Path::new("damaged/000003.wal");
    let bytes = read_all(&disk, log).expect("it is there");
    let mut places = Vec::new();
    let mut file = LogFile::open(&disk, log)?;
    while let Some(batch) = file.next_batch()? {
        places.push((batch.offset as usize, batch.is_short));
    }
    assert_eq!((places.len(), places.iter().filter(|(_, is_short)| !is_short).count()), (80, 3));
    for (damaged, in_record) in
        [0, 1, 20, 33, 50, 70, 78].map(|at| [5, 9, 60].map(|i| (at, i))).concat()
    {
        let mut changed = bytes.clone();
        changed[places[damaged].0 + in_record] ^= 0x44;
        let fs = Arc::new(disk.kill());
        fs.create(log).and_then(|mut file| file.append(&changed)).expect("there is room");
        let options = Options { fs, ..options.clone() };
        let next = (damaged + 1..80).find(|&at| !places[at].1);
        let repair = Repair::read("damaged", &options)?;
        let losses = &repair.report().losses;
        let what = format!("key {damaged}, byte {in_record}: {losses:?}");
        // Numbers begin at 1, and the one before the next that is there is the last.
        let lost = (damaged as u64 + 1, next.map(|next| next as u64));
        assert!(losses.len() == 1 && losses[0].sequences == Some(lost), "{what}");
        repair.write_to("repaired")?;
        let db = Db::open("repaired", options)?;
        for nth in 0..80 {
            let is_lost = nth >= damaged && next.is_none_or(|next| nth < next);
            assert_eq!(db.get(&key(nth))?.is_none(), is_lost, "{what}: {nth}");
        }
    }
    Ok(())
}

/// Where an opening gave records up behind a damaged one, the log ends: repair later does
/// not take them for lost.
#[test]
fn what_an_opening_gave_up_is_no_loss_for_repair() -> Result<(), Error> {
    let fs = Arc::new(MemFs::new());
    let options = Options { create_if_missing: true, fs: fs.clone(), ..Options::default() };
    let db = Db::open("damaged", options.clone())?;
    (0..10_u8).try_for_each(|nth| db.put(&[nth], &[7; 100]))?;
    let fs = Arc::new(fs.kill());
    let log = Path::new("damaged/000003.wal");
    let mut bytes = read_all(&*fs, log).expect("it is there");
    let mut file = LogFile::open(&*fs, log)?;
    let mut places = Vec::new();
    while let Some(batch) = file.next_batch()? {
        places.push((batch.offset as usize, batch.is_short));
    }
    assert!(places.len() == 10 && places[5].1);
    bytes[places[5].0 + 60] ^= 0x44;
    fs.create(log).and_then(|mut file| file.append(&bytes)).expect("there is room");
    let options = Options { fs: fs.clone(), ..options };
    let db = Db::open("damaged", options.clone())?;
    db.put(b"later", b"is there")?;
    let fs = Arc::new(fs.kill());
    // What the first log holds is in a table by now; without a manifest nothing says so.
    fs.create(log).and_then(|mut file| file.append(&bytes)).expect("there is room");
    remove_manifests(&*fs);
    let options = Options { fs, ..options };
    let repair = Repair::read("damaged", &options)?;
    assert!(repair.report().losses.is_empty(), "{:?}", repair.report().losses);
    repair.write_to("repaired")?;
    let db = Db::open("repaired", options)?;
    let found = (0..10_u8).filter(|&nth| db.get(&[nth]).is_ok_and(|value| value.is_some()));
    assert_eq!(found.collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert!(db.get(b"later")?.is_some());
    Ok(())
}
