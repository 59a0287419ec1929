//! First a byte: 0, then a single edit; or another, then a manifest, squeezed:
//! its edits one by one, what they add up to, and what a directory that holds
//! nothing else says of it.

use std::path::Path;
use std::sync::Arc;

use lodestore::Fs;
use lodestore::inspect::{ManifestFile, Survey};
use lodestore::internals::bytes::{checkpoint_again, edit_again};
use testkit::files::Files;

use crate::files::{self, DIRECTORY};
use crate::judge::judged;
use crate::{archive, seal};

pub fn run(bytes: &[u8]) {
    match bytes.split_first() {
        None => {}
        Some((0, edit)) => {
            // What an edit means is kept by writing it again.
            if let Some(again) = edit_again(edit) {
                assert_eq!(edit_again(&again).as_ref(), Some(&again));
            }
        }
        Some((_, squeezed)) => read(archive::expand(squeezed)),
    }
}

fn read(mut manifest: Vec<u8>) {
    seal::manifest(&mut manifest);
    let files = Files::from([
        ("CURRENT".to_string(), seal::current_of(&manifest)),
        (seal::manifest_name(&manifest), manifest.clone()),
    ]);
    let fs = files::directory(&files);
    let path = Path::new(DIRECTORY).join(seal::manifest_name(&manifest));
    let Some(file) = judged(ManifestFile::open(&fs, &path)) else { return };
    let mut edits = 0;
    let Some(summary) = judged(file.read(&mut |_| edits += 1)) else { return };
    assert!(edits > 0 || summary.families.is_empty());
    // A new manifest would begin with the same.
    assert!(checkpoint_again(&manifest, &path), "a checkpoint loses something");
    let fs: Arc<dyn Fs> = Arc::new(fs);
    let survey = judged(Survey::read(&fs, Path::new(DIRECTORY)));
    if let Some(survey) = survey {
        assert_eq!(format!("{:?}", survey.families), format!("{:?}", summary.families));
    }
}
