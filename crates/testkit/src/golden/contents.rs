//! What a reader sees of a database, as text.

use lodestore::{Db, Result};

use super::family;
use super::shown::shown;

/// The longest key or value that is written out.
const WHOLE_BYTES_MAX: usize = 512;

/// All that a database holds, as text: a line `[FAMILY]`, then a line for each
/// key and its value, in order.
///
/// # Errors
/// What reading gives.
pub fn contents(db: &Db) -> Result<String> {
    let mut text = String::new();
    for name in db.family_names() {
        text += &format!("[{name}]\n");
        for entry in family(db, &name).range(..) {
            let (key, value) = entry?;
            let (key, value) = (shown(&key, WHOLE_BYTES_MAX), shown(&value, WHOLE_BYTES_MAX));
            text += &format!("{key} = {value}\n");
        }
    }
    Ok(text)
}
