//! A database that is driven through the functions of the header alone.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::sync::Arc;

use engine::{Db, Family, Fs};

use super::over;
use crate::batch::*;
use crate::cursor::*;
use crate::data::*;
use crate::database::*;
use crate::failure::*;
use crate::files::*;
use crate::options::*;
use crate::pass::{Bytes, Text};
use crate::upkeep::*;

pub(super) const PATH: &CStr = c"/home/db";

pub(super) type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// One batch: keys, and values or deletions.
pub(super) type Changes = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// What a failed call says: its code and its text.
pub(super) type Told = (i32, String);

/// What came of a call; every failure has a code of the header's and a text.
pub(super) fn told(outcome: Outcome) -> Result<(), Told> {
    let Some(failure) = outcome else { return Ok(()) };
    let code = lodestore_error_code(Some(&failure));
    // SAFETY: the text ends with a zero byte and lasts as long as the failure.
    let text = unsafe { CStr::from_ptr(lodestore_error_message(Some(&failure))) };
    let text = text.to_string_lossy().into_owned();
    assert!((1..=9).contains(&code) && !text.is_empty(), "{code}: {text}");
    lodestore_error_free(Some(failure));
    Err((code, text))
}

/// Small limits, so that a short life has flushes and compactions.
pub(super) fn options(fs: Arc<dyn Fs>) -> Box<Given> {
    let mut options = lodestore_options_create().expect("there is memory");
    let functions = over::functions(fs);
    told(lodestore_options_set_file_system(Some(&mut options), &functions)).expect("it is whole");
    for (name, value) in [(c"create_if_missing", c"true"), (c"background_threads", c"1")] {
        let set = lodestore_options_set(Some(&mut options), Text::of(name), Text::of(value));
        told(set).expect("there is such an option");
    }
    let family = c"[family]\nmemtable_bytes = 4KiB\ntable_bytes = 4KiB\nblock_bytes = 256\n\
                   level0_compaction_files = 2\n";
    told(lodestore_options_apply_text(Some(&mut options), Text::of(family))).expect("these too");
    options
}

/// An open database.
pub(super) struct Opened(Option<Box<Db>>);

impl Drop for Opened {
    fn drop(&mut self) {
        lodestore_close(self.0.take());
    }
}

impl Opened {
    pub(super) fn open(options: &Given) -> Result<Opened, Told> {
        let mut place = MaybeUninit::uninit();
        told(lodestore_open(Text::of(PATH), Some(options), Some(&mut place)))?;
        // SAFETY: the call has written to it, whatever came of it.
        Ok(Opened(unsafe { place.assume_init() }))
    }

    pub(super) fn open_or_adopt(options: &Given) -> Result<Opened, Told> {
        let mut place = MaybeUninit::uninit();
        told(lodestore_open_or_adopt(Text::of(PATH), Some(options), Some(&mut place)))?;
        // SAFETY: as above.
        Ok(Opened(unsafe { place.assume_init() }))
    }

    fn family(&self) -> Option<&Family> {
        lodestore_default_family(self.0.as_deref())
    }

    pub(super) fn write(&self, changes: &Changes, sync: bool) -> Result<(), Told> {
        let mut how = MaybeUninit::<GivenWrite>::zeroed();
        // SAFETY: `sync` is the first byte of it, and zeros are valid for the rest.
        let how = unsafe {
            how.as_mut_ptr().cast::<u8>().write(u8::from(sync));
            how.assume_init()
        };
        match &changes[..] {
            [(key, Some(value))] => {
                let (key, value) = (Bytes::of(key), Bytes::of(value));
                told(lodestore_put(self.family(), Some(&how), key, value))
            }
            [(key, None)] => told(lodestore_delete(self.family(), Some(&how), Bytes::of(key))),
            _ => {
                let mut batch = lodestore_batch_create();
                for (key, value) in changes {
                    let (key, batch) = (Bytes::of(key), batch.as_deref_mut());
                    told(match value {
                        Some(value) => lodestore_batch_put(batch, None, key, Bytes::of(value)),
                        None => lodestore_batch_delete(batch, None, key),
                    })?;
                }
                let written =
                    lodestore_write(self.0.as_deref(), Some(&how), batch.as_deref_mut(), None);
                lodestore_batch_free(batch);
                told(written)
            }
        }
    }

    pub(super) fn flush(&self) -> Result<(), Told> {
        told(lodestore_flush(self.family()))
    }

    pub(super) fn sync_log(&self) -> Result<(), Told> {
        told(lodestore_sync_log(self.0.as_deref()))
    }

    pub(super) fn compact(&self) -> Result<(), Told> {
        told(lodestore_compact_range(self.family(), Bytes::NONE, Bytes::NONE))
    }

    pub(super) fn verify(&self) -> Result<(), Told> {
        told(lodestore_verify(self.0.as_deref()))
    }

    pub(super) fn entries(&self) -> Result<Entries, Told> {
        let mut place = MaybeUninit::uninit();
        told(lodestore_cursor_create(self.family(), None, Some(&mut place)))?;
        // SAFETY: as above.
        let mut cursor = unsafe { place.assume_init() };
        let mut entries = Entries::new();
        let mut valid = lodestore_cursor_first(cursor.as_deref_mut());
        while valid != 0 {
            let key = lodestore_cursor_key(cursor.as_deref()).get().expect("it is at a key");
            let value = lodestore_cursor_value(cursor.as_deref()).get().expect("it is at a key");
            entries.insert(key.to_vec(), value.to_vec());
            valid = lodestore_cursor_next(cursor.as_deref_mut());
        }
        let status = told(lodestore_cursor_status(cursor.as_deref()));
        lodestore_cursor_free(cursor);
        status.map(|()| entries)
    }
}

pub(super) fn roll_back(options: &Given) -> Result<(), Told> {
    told(lodestore_adopt_roll_back(Text::of(PATH), Some(options)))
}

pub(super) fn destroy(options: &Given) -> Result<(), Told> {
    told(lodestore_destroy(Text::of(PATH), Some(options)))
}

pub(super) fn checkpoint(db: &Opened, path: &str) -> Result<(), Told> {
    let path = CString::new(path).expect("it has no zero byte");
    told(lodestore_checkpoint(db.0.as_deref(), Text::of(&path)))
}
