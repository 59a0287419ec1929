//! A directory of LevelDB's: adopted, read, compacted and given back; and repaired.

use lodestore::adopt::{adopt, open_read_only, roll_back};
use lodestore::repair::Repair;
use lodestore::{Db, Error, Options};

use crate::files::{self, DIRECTORY};
use crate::judge::judged;
use crate::{archive, reading, seal};

const REPAIRED: &str = "/repaired";

pub fn run(bytes: &[u8]) {
    let files = seal::leveldb_directory(archive::unpack(bytes));
    let fs = files::directory(&files);
    let options = files::options(&fs);
    if judged(adopt(DIRECTORY, &options)).is_some() {
        read(&options);
        judged(roll_back(DIRECTORY, &options)).expect("nothing was written");
    }
    assert!(files::read(&fs, DIRECTORY) == files, "other files than before");
    repair(&options);
    assert!(files::read(&fs, DIRECTORY) == files, "repair changed the damaged database");
}

/// What is repaired is sound.
fn repair(options: &Options) {
    let Some(repair) = judged(Repair::read(DIRECTORY, options)) else { return };
    assert!(!format!("{:?}", repair.report()).is_empty());
    if judged(repair.write_to(REPAIRED)).is_some() {
        match open_read_only(REPAIRED, options.clone()) {
            Ok(db) => {
                db.verify().expect("what was repaired is sound");
                reading::read(&db);
            }
            // What shares keys within a level may be too much to be read in place.
            Err(Error::InvalidArgument { .. }) => {}
            Err(error) => panic!("what was repaired cannot be opened: {error}"),
        }
    }
}

/// Reads, compacts, and reads again.
fn read(options: &Options) {
    let Some(db) = judged(Db::open(DIRECTORY, options.clone())) else { return };
    reading::read(&db);
    // A damaged table may be moved without a look into it.
    let was_sound = judged(db.verify()).is_some();
    let compacted = judged(db.compact_range(None, None));
    if was_sound {
        compacted.expect("what is sound can be compacted");
        db.verify().expect("what was compacted is sound");
    }
    reading::read(&db);
}
