//! `get`, `put`, `delete`: one key; `delete-range`: a range of them.

use std::ffi::OsString;

use clap::Args;
use lodestore::WriteOptions;
use serde_json::{Map, json};

use super::target::{Absent, Target};
use crate::Done;
use crate::failure::Failure;

/// `lode db get`
#[derive(Debug, Args)]
pub struct Get {
    /// The key
    key: OsString,
}

/// `lode db put`
#[derive(Debug, Args)]
pub struct Put {
    /// The key
    key: OsString,
    /// Its value
    value: OsString,
    /// Create the database and the family if they are not there
    #[arg(long)]
    create: bool,
    /// Return only when the write survives a power failure
    #[arg(long)]
    sync: bool,
}

/// `lode db delete`
#[derive(Debug, Args)]
pub struct Delete {
    /// The key; no error if it is not there
    key: OsString,
    /// Return only when the write survives a power failure
    #[arg(long)]
    sync: bool,
}

/// `lode db delete-range`
#[derive(Debug, Args)]
pub struct DeleteRange {
    /// The first key that is removed
    begin: OsString,
    /// The first key after it that is kept
    end: OsString,
    /// Return only when the write survives a power failure
    #[arg(long)]
    sync: bool,
}

/// Prints the value as it is, followed by a line feed.
/// # Errors: `Negative` if the key is not there.
pub fn get(target: &Target, get: &Get) -> Done {
    let key = target.bytes(&get.key)?;
    let (_db, family) = target.open_for_reading()?;
    let value = family.get(&key)?;
    let mut output = target.output();
    if output.is_json() {
        let mut object = Map::new();
        output.add_bytes(&mut object, "key", &key);
        object.insert("found".to_string(), json!(value.is_some()));
        if let Some(value) = &value {
            output.add_bytes(&mut object, "value", value);
        }
        output.object(object)?;
    } else if let Some(value) = &value {
        output.raw(value)?;
    }
    let shown = output.shown(&key);
    output.finish()?;
    match value {
        Some(_) => Ok(()),
        None => Err(Failure::Negative(format!("there is no key '{shown}'"))),
    }
}

/// Stores an entry.
pub fn put(target: &Target, put: &Put) -> Done {
    let (key, value) = (target.bytes(&put.key)?, target.bytes(&put.value)?);
    let absent = if put.create { Absent::Create } else { Absent::Refuse };
    let (_db, family) = target.open_for_writing(absent)?;
    Ok(family.put_with(&WriteOptions { sync: put.sync, ..Default::default() }, &key, &value)?)
}

/// Removes an entry.
pub fn delete(target: &Target, delete: &Delete) -> Done {
    let key = target.bytes(&delete.key)?;
    let (_db, family) = target.open_for_writing(Absent::Refuse)?;
    Ok(family.delete_with(&WriteOptions { sync: delete.sync, ..Default::default() }, &key)?)
}

/// Removes all entries of a range.
pub fn delete_range(target: &Target, range: &DeleteRange) -> Done {
    let (begin, end) = (target.bytes(&range.begin)?, target.bytes(&range.end)?);
    let (_db, family) = target.open_for_writing(Absent::Refuse)?;
    Ok(family.delete_range_with(
        &WriteOptions { sync: range.sync, ..WriteOptions::default() },
        &begin,
        &end,
    )?)
}
