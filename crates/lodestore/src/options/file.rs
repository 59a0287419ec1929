//! Options from a file.

use std::path::Path;

use crate::error::{Error, Result};
use crate::fs::{Fs, read_full_at};

/// A longer file is not one of options.
const BYTES_MAX: u64 = 16 << 20;

/// The text of the file `path`.
pub(super) fn read(fs: &dyn Fs, path: &Path) -> Result<String> {
    let file = fs.open(path).map_err(|error| Error::io(path, "open", error))?;
    let bytes = file.length().map_err(|error| Error::io(path, "read length of", error))?;
    let is_no_text = || Error::invalid(format!("{} is no file of options", path.display()));
    if bytes > BYTES_MAX {
        return Err(is_no_text());
    }
    let mut text = vec![0; bytes as usize];
    read_full_at(&*file, 0, &mut text).map_err(|error| Error::io(path, "read", error))?;
    String::from_utf8(text).map_err(|_| is_no_text())
}
