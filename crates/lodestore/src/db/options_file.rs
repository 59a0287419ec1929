//! The file that says with which options the database is open.
//!
//! It is for people, and for opening the database so again; nothing depends on
//! it. So a failure to write it is noted and does no harm.

use std::path::Path;

use crate::error::{Error, Result};
use crate::filename;
use crate::fs::read_all;
use crate::options::Options;

use super::engine::Engine;

/// So many are kept: the newest, and what it was before.
const KEPT: usize = 2;

const HEADING: &str = "# The options that this database was last open with. They are not needed to\n\
    # open it; `Options::load` reads them.\n\n";

/// The files of options in the directory.
#[derive(Debug, Default)]
pub(crate) struct OptionsFiles {
    /// Ascending.
    numbers: Vec<u64>,
    /// Why the newest options are in none of them.
    failure: Option<Error>,
}

impl OptionsFiles {
    /// Notes a file that was there at opening.
    pub(crate) fn found(&mut self, number: u64) {
        self.numbers.push(number);
        self.numbers.sort_unstable();
    }

    /// Why the newest options could not be written, in words; or nothing.
    pub(crate) fn failure(&self) -> String {
        self.failure.as_ref().map(Error::to_string).unwrap_or_default()
    }
}

impl Engine {
    /// The options that hold now, with those of every family.
    pub(crate) fn current_options(&self) -> Options {
        let mut options = self.options.lock().clone();
        for family in self.families.load().all() {
            let of_family = (*family.options()).as_ref().clone();
            options.families.insert(family.name.clone(), of_family);
        }
        options
    }

    /// Writes the options that hold now to a new file, and removes the oldest;
    /// unless the newest file says the same.
    pub(crate) fn keep_options(&self) {
        if self.read_only {
            return;
        }
        let mut files = self.options_files.lock();
        let text = self.text_to_keep();
        if files.numbers.last().is_some_and(|&number| self.is_kept(number, &text)) {
            files.failure = None;
            return;
        }
        let number = self.versions.new_file_number();
        files.failure = self.write_options(number, &text).err();
        if files.failure.is_none() {
            files.numbers.push(number);
        }
        while files.numbers.len() > KEPT {
            let path = filename::options_path(&self.shared.directory, files.numbers.remove(0));
            // What stays behind is looked at by the next open.
            let _ = self.shared.fs.remove(&path);
        }
    }

    fn text_to_keep(&self) -> String {
        let mut options = self.current_options();
        // These are about one opening.
        (options.create_if_missing, options.error_if_exists) = (false, false);
        HEADING.to_string() + &options.to_text()
    }

    fn is_kept(&self, number: u64, text: &str) -> bool {
        let path = filename::options_path(&self.shared.directory, number);
        read_all(&*self.shared.fs, &path).is_ok_and(|kept| kept == text.as_bytes())
    }

    fn write_options(&self, number: u64, text: &str) -> Result<()> {
        let (fs, directory) = (&self.shared.fs, &self.shared.directory);
        let temporary = filename::temporary_path(directory, number);
        let written = self.write_text(&temporary, text).and_then(|()| {
            let path = filename::options_path(directory, number);
            fs.rename(&temporary, &path).map_err(|error| Error::io(&path, "rename to", error))
        });
        written.inspect_err(|_| {
            let _ = fs.remove(&temporary); // else the next open does it
        })
    }

    fn write_text(&self, path: &Path, text: &str) -> Result<()> {
        let fs = &self.shared.fs;
        let mut file = fs.create(path).map_err(|error| Error::io(path, "create", error))?;
        let written = file.append(text.as_bytes()).and_then(|()| file.sync());
        written.and_then(|()| file.close()).map_err(|error| Error::io(path, "write", error))
    }
}
