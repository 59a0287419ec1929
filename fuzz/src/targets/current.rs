//! `CURRENT`, beside a manifest of that name or without.

use std::path::Path;
use std::sync::Arc;

use lodestore::inspect::{ManifestFile, Survey};
use lodestore::{Db, Fs};
use testkit::files::Files;

use crate::files::{self, DIRECTORY};
use crate::judge::judged;
use crate::seal;

pub fn run(bytes: &[u8]) {
    for current in [bytes.to_vec(), seal::current(bytes)] {
        let files = Files::from([("CURRENT".to_string(), current)]);
        let fs = files::directory(&files);
        judged(ManifestFile::open_current(&fs, Path::new(DIRECTORY)).map_err(not_found));
        let opened = Db::open(DIRECTORY, files::options(&fs));
        assert!(judged(opened).is_none(), "there is no manifest");
        assert_eq!(files::read(&fs, DIRECTORY), files, "a refused open changed something");
        let fs: Arc<dyn Fs> = Arc::new(fs);
        assert!(judged(Survey::read(&fs, Path::new(DIRECTORY))).is_none());
    }
}

/// A manifest that is named and not there: whoever asked for that one file is
/// told so.
fn not_found(error: lodestore::Error) -> lodestore::Error {
    match error {
        lodestore::Error::Io { path, source, .. }
            if source.kind() == std::io::ErrorKind::NotFound =>
        {
            lodestore::Error::Missing { what: path.display().to_string() }
        }
        other => other,
    }
}
