//! Reading the files of a database that somebody else may have open.

use std::path::Path;

use crate::error::{Error, Result};

/// How often the database may change while its files are read.
const TRIES: usize = 20;

/// What `look` makes of the state of the database in `directory`, which `read` tells
/// and which was the same before and after.
///
/// # Errors
/// Those of `read`, and of `look` in a state that lasted; `InvalidArgument` if the
/// database changes faster than it can be read.
pub(crate) fn settled<S, T>(
    directory: &Path,
    read: &dyn Fn() -> Result<S>,
    is_same: impl Fn(&S, &S) -> bool,
    look: &dyn Fn(&S) -> Result<T>,
) -> Result<T> {
    let mut before = read()?;
    for _ in 0..TRIES {
        let found = look(&before);
        // A flush or a compaction may have moved what was looked for from a file
        // not read yet to one that the manifest did not name yet.
        let after = read()?;
        if is_same(&before, &after) {
            return found;
        }
        before = after;
    }
    let what = "its tables change faster than they can be read";
    Err(Error::invalid(format!("{}: {what}; try again", directory.display())))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// What was found, damage too, counts only if the state was the same afterwards.
    #[test]
    fn what_is_found_belongs_to_one_state() {
        let (reads, looks) = (Cell::new(0), Cell::new(0));
        let states = [1, 2, 3, 3, 3];
        let read = || Ok(states[reads.replace(reads.get() + 1)]);
        let look = |state: &u32| match looks.replace(looks.get() + 1) {
            0 => Err(Error::corruption(Path::new("moved"), 0, "a table that is gone")),
            _ => Ok(*state),
        };
        let same = |a: &u32, b: &u32| a == b;
        assert_eq!(settled(Path::new("db"), &read, same, &look).unwrap(), 3);
        assert_eq!((reads.get(), looks.get()), (4, 3));
        let restless = settled(Path::new("db"), &|| Ok(0), |_, _| false, &|_| Ok(0));
        assert!(restless.unwrap_err().to_string().contains("try again"));
    }
}
