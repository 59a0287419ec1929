//! Which errors hostile bytes may lead to.

use lodestore::Error;

/// The result, if it is one.
///
/// # Panics
/// If the error does not say that the bytes, or what the caller asked of them,
/// are at fault: a plain I/O error would send its reader to look at the disk.
pub fn judged<T>(result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            judge(&error);
            None
        }
    }
}

/// # Panics
/// As [`judged`].
pub fn judge(error: &Error) {
    match error {
        Error::Corruption { .. }
        | Error::Incompatible { .. }
        | Error::InvalidArgument { .. }
        | Error::Missing { .. }
        | Error::MergeFailed { .. } => {}
        // Writing stops for a failure in the background; that one is judged.
        Error::ReadOnly { cause } => judge(cause),
        other => panic!("hostile bytes gave {other:?}: {other}"),
    }
    assert!(!error.to_string().is_empty());
}
