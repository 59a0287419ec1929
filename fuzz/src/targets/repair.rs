//! Repair of a directory of files: what comes of it is a sound database, and
//! the damaged one stays as it is.

use lodestore::Db;
use lodestore::repair::Repair;

use crate::files::{self, DIRECTORY};
use crate::judge::judged;
use crate::{archive, reading, seal};

const REPAIRED: &str = "/repaired";

pub fn run(bytes: &[u8]) {
    let files = seal::directory(archive::unpack(bytes));
    let fs = files::directory(&files);
    let options = files::options(&fs);
    if let Some(repair) = judged(Repair::read(DIRECTORY, &options)) {
        let report = repair.report();
        assert!(!format!("{report:?}").is_empty());
        if judged(repair.write_to(REPAIRED)).is_some() {
            let db = Db::open(REPAIRED, options).expect("what was repaired can be opened");
            db.verify().expect("what was repaired is sound");
            reading::read(&db);
        }
    }
    assert!(files::read(&fs, DIRECTORY) == files, "repair changed the damaged database");
}
