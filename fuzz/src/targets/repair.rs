//! Repair of a directory of files: what comes of it is a sound database, and
//! the damaged one stays as it is.

use lodestore::repair::Repair;
use lodestore::{Db, Error};

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
            match Db::open(REPAIRED, options) {
                Ok(db) => {
                    db.verify().expect("what was repaired is sound");
                    reading::read(&db);
                }
                // It names an extractor or an operator that these options lack.
                Err(Error::InvalidArgument { .. }) => {}
                Err(error) => panic!("what was repaired cannot be opened: {error}"),
            }
        }
    }
    assert!(files::read(&fs, DIRECTORY) == files, "repair changed the damaged database");
}
