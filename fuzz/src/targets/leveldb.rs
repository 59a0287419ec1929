//! A directory of LevelDB's: adopted, read, compacted and given back.

use lodestore::adopt::{adopt, roll_back};
use lodestore::{Db, Options};

use crate::files::{self, DIRECTORY};
use crate::judge::judged;
use crate::{archive, reading, seal};

pub fn run(bytes: &[u8]) {
    let files = seal::leveldb_directory(archive::unpack(bytes));
    let fs = files::directory(&files);
    let options = files::options(&fs);
    if judged(adopt(DIRECTORY, &options)).is_some() {
        read(&options);
        judged(roll_back(DIRECTORY, &options)).expect("nothing was written");
    }
    assert!(files::read(&fs, DIRECTORY) == files, "other files than before");
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
