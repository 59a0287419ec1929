//! Repair of our own databases, where what is left says less than it seems to.

use lodestore::repair::Repair;
use lodestore::{Db, Error, Fs, IngestOptions, MemFs, Options, TableWriter, WriteOptions};
use std::path::Path;
use std::sync::Arc;

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
    let directory = Path::new("damaged");
    for name in fs.list(directory).expect("it is there") {
        if name.starts_with("MANIFEST") {
            fs.remove(&directory.join(name)).expect("it is there");
        }
    }
    Repair::read(directory, &options)?.write_to("repaired")?;
    let db = Db::open("repaired", options)?;
    assert_eq!(db.get(b"kept")?.as_deref(), Some(&b"in memory"[..]));
    assert!(db.get(b"a")?.is_some_and(|value| value.starts_with(b"ingested")));
    Ok(())
}
