//! LevelDB, by its C interface and the system's library.
//!
//! Every object of the library is owned by an [`Owned`], which gives it back
//! when it is dropped, errors or not.

use std::ffi::{CStr, CString, c_char, c_int, c_uchar};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr::{NonNull, null_mut};

use crate::engine::{Change, Changes, Direction, Engine, Result};
use crate::failure::Failure;
use crate::lanes::{Codec, Settings};

/// The library's objects, of which only addresses are known.
mod c {
    use super::{c_char, c_int, c_uchar};

    /// Declares types of which there are only pointers.
    macro_rules! opaque {
        ($($name:ident)+) => {
            $(#[repr(C)] pub struct $name { _private: [u8; 0] })+
        };
    }
    opaque!(Db Options ReadOptions WriteOptions Cache Filter Iterator Batch);

    // Source of the signatures: leveldb/c.h of version 1.23.
    #[link(name = "leveldb")]
    unsafe extern "C" {
        pub fn leveldb_open(o: *const Options, name: *const c_char, e: *mut *mut c_char)
        -> *mut Db;
        pub fn leveldb_close(db: *mut Db);
        pub fn leveldb_put(
            db: *mut Db,
            o: *const WriteOptions,
            key: *const c_char,
            key_bytes: usize,
            value: *const c_char,
            value_bytes: usize,
            e: *mut *mut c_char,
        );
        pub fn leveldb_delete(
            db: *mut Db,
            o: *const WriteOptions,
            key: *const c_char,
            key_bytes: usize,
            e: *mut *mut c_char,
        );
        pub fn leveldb_write(
            db: *mut Db,
            o: *const WriteOptions,
            b: *mut Batch,
            e: *mut *mut c_char,
        );
        pub fn leveldb_get(
            db: *mut Db,
            o: *const ReadOptions,
            key: *const c_char,
            key_bytes: usize,
            value_bytes: *mut usize,
            e: *mut *mut c_char,
        ) -> *mut c_char;
        pub fn leveldb_create_iterator(db: *mut Db, o: *const ReadOptions) -> *mut Iterator;
        pub fn leveldb_iter_destroy(i: *mut Iterator);
        pub fn leveldb_iter_valid(i: *const Iterator) -> c_uchar;
        pub fn leveldb_iter_seek_to_first(i: *mut Iterator);
        pub fn leveldb_iter_seek_to_last(i: *mut Iterator);
        pub fn leveldb_iter_seek(i: *mut Iterator, key: *const c_char, key_bytes: usize);
        pub fn leveldb_iter_next(i: *mut Iterator);
        pub fn leveldb_iter_prev(i: *mut Iterator);
        pub fn leveldb_iter_key(i: *const Iterator, bytes: *mut usize) -> *const c_char;
        pub fn leveldb_iter_value(i: *const Iterator, bytes: *mut usize) -> *const c_char;
        pub fn leveldb_iter_get_error(i: *const Iterator, e: *mut *mut c_char);
        pub fn leveldb_writebatch_create() -> *mut Batch;
        pub fn leveldb_writebatch_destroy(b: *mut Batch);
        pub fn leveldb_writebatch_put(
            b: *mut Batch,
            key: *const c_char,
            key_bytes: usize,
            value: *const c_char,
            value_bytes: usize,
        );
        pub fn leveldb_writebatch_delete(b: *mut Batch, key: *const c_char, key_bytes: usize);
        pub fn leveldb_options_create() -> *mut Options;
        pub fn leveldb_options_destroy(o: *mut Options);
        pub fn leveldb_options_set_create_if_missing(o: *mut Options, yes: c_uchar);
        pub fn leveldb_options_set_write_buffer_size(o: *mut Options, bytes: usize);
        pub fn leveldb_options_set_max_open_files(o: *mut Options, files: c_int);
        pub fn leveldb_options_set_cache(o: *mut Options, cache: *mut Cache);
        pub fn leveldb_options_set_block_size(o: *mut Options, bytes: usize);
        pub fn leveldb_options_set_max_file_size(o: *mut Options, bytes: usize);
        pub fn leveldb_options_set_compression(o: *mut Options, codec: c_int);
        pub fn leveldb_options_set_filter_policy(o: *mut Options, filter: *mut Filter);
        pub fn leveldb_filterpolicy_create_bloom(bits: c_int) -> *mut Filter;
        pub fn leveldb_filterpolicy_destroy(filter: *mut Filter);
        pub fn leveldb_cache_create_lru(bytes: usize) -> *mut Cache;
        pub fn leveldb_cache_destroy(cache: *mut Cache);
        pub fn leveldb_readoptions_create() -> *mut ReadOptions;
        pub fn leveldb_readoptions_destroy(o: *mut ReadOptions);
        pub fn leveldb_readoptions_set_verify_checksums(o: *mut ReadOptions, yes: c_uchar);
        pub fn leveldb_writeoptions_create() -> *mut WriteOptions;
        pub fn leveldb_writeoptions_destroy(o: *mut WriteOptions);
        pub fn leveldb_writeoptions_set_sync(o: *mut WriteOptions, yes: c_uchar);
        pub fn leveldb_free(bytes: *mut c_char);
        pub fn leveldb_major_version() -> c_int;
        pub fn leveldb_minor_version() -> c_int;
    }

    /// `leveldb_snappy_compression` of the header.
    pub const SNAPPY: c_int = 1;
}

/// An object of the library that is given back in the end.
struct Owned<T> {
    at: NonNull<T>,
    give_back: unsafe extern "C" fn(*mut T),
}

impl<T> Owned<T> {
    /// # Safety
    /// `at` comes from the library, belongs to the caller, and `give_back` is
    /// the call that ends its life.
    unsafe fn new(at: *mut T, give_back: unsafe extern "C" fn(*mut T)) -> Result<Owned<T>> {
        let at = NonNull::new(at);
        let at = at.ok_or_else(|| Failure::Failed("LevelDB: out of memory".to_string()))?;
        Ok(Owned { at, give_back })
    }

    fn as_ptr(&self) -> *mut T {
        self.at.as_ptr()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: `new` was promised that this call ends the life of `at`, and
        // nobody uses it afterwards.
        unsafe { (self.give_back)(self.at.as_ptr()) }
    }
}

/// Fields are dropped in this order: the database before what it uses.
struct LevelDb {
    db: Owned<c::Db>,
    read: Owned<c::ReadOptions>,
    write: Owned<c::WriteOptions>,
    synced: Owned<c::WriteOptions>,
    _options: Owned<c::Options>,
    _cache: Option<Owned<c::Cache>>,
    _filter: Option<Owned<c::Filter>>,
}

// SAFETY: the library's documentation: a database may be used by several
// threads without more ado. The options are not changed after `open`.
unsafe impl Send for LevelDb {}
// SAFETY: as above; iterators and batches never leave the call that made them.
unsafe impl Sync for LevelDb {}

/// The version of the library.
pub fn version() -> String {
    // SAFETY: these calls take nothing and return numbers.
    let (major, minor) = unsafe { (c::leveldb_major_version(), c::leveldb_minor_version()) };
    format!("{major}.{minor}")
}

/// See [`super::open`].
pub fn open(directory: &Path, settings: &Settings) -> Result<Box<dyn Engine>> {
    if settings.codec == Some(Codec::Lz4) {
        return Err(Failure::Cannot("LevelDB has no LZ4".to_string()));
    }
    let name = CString::new(directory.as_os_str().as_bytes())
        .map_err(|_| Failure::Usage("LevelDB: a path must not contain a zero byte".to_string()))?;
    // SAFETY: each of the objects is new and is given back by its own call.
    let (options, read, write, synced) = unsafe {
        (
            Owned::new(c::leveldb_options_create(), c::leveldb_options_destroy)?,
            Owned::new(c::leveldb_readoptions_create(), c::leveldb_readoptions_destroy)?,
            Owned::new(c::leveldb_writeoptions_create(), c::leveldb_writeoptions_destroy)?,
            Owned::new(c::leveldb_writeoptions_create(), c::leveldb_writeoptions_destroy)?,
        )
    };
    let cache = settings.cache_bytes.map(|bytes| {
        // SAFETY: as above.
        unsafe { Owned::new(c::leveldb_cache_create_lru(bytes.size()), c::leveldb_cache_destroy) }
    });
    let filter = settings.filter_bits.map(|bits| {
        let create = c::leveldb_filterpolicy_create_bloom;
        // SAFETY: as above.
        unsafe { Owned::new(create(bits as c_int), c::leveldb_filterpolicy_destroy) }
    });
    let (cache, filter) = (cache.transpose()?, filter.transpose()?);
    set_options(&options, settings, cache.as_ref(), filter.as_ref());
    // SAFETY: the options are alive and nobody else has them.
    unsafe {
        c::leveldb_readoptions_set_verify_checksums(
            read.as_ptr(),
            c_uchar::from(settings.verify_checksums.unwrap_or(false)),
        );
        c::leveldb_writeoptions_set_sync(synced.as_ptr(), 1);
    }
    let mut error = null_mut();
    // SAFETY: options and name are alive; `error` is where the call may leave a
    // string. Cache and filter outlive the database, see `LevelDb`.
    let db = unsafe { c::leveldb_open(options.as_ptr(), name.as_ptr(), &mut error) };
    check(error)?;
    // SAFETY: the database was opened just now and is closed by this call.
    let db = unsafe { Owned::new(db, c::leveldb_close)? };
    let (_options, _cache, _filter) = (options, cache, filter);
    Ok(Box::new(LevelDb { db, read, write, synced, _options, _cache, _filter }))
}

fn set_options(
    options: &Owned<c::Options>,
    settings: &Settings,
    cache: Option<&Owned<c::Cache>>,
    filter: Option<&Owned<c::Filter>>,
) {
    let to = options.as_ptr();
    // SAFETY: the options are alive and nobody else has them; so are cache and
    // filter, which the caller keeps for as long as the options.
    unsafe {
        c::leveldb_options_set_create_if_missing(to, 1);
        if let Some(bytes) = settings.memtable_bytes {
            c::leveldb_options_set_write_buffer_size(to, bytes.size());
        }
        if let Some(bytes) = settings.block_bytes {
            c::leveldb_options_set_block_size(to, bytes.size());
        }
        if let Some(bytes) = settings.table_bytes {
            c::leveldb_options_set_max_file_size(to, bytes.size());
        }
        if let Some(files) = settings.open_files {
            c::leveldb_options_set_max_open_files(to, files as c_int);
        }
        if settings.codec == Some(Codec::Snappy) {
            c::leveldb_options_set_compression(to, c::SNAPPY);
        }
        if let Some(cache) = cache {
            c::leveldb_options_set_cache(to, cache.as_ptr());
        }
        if let Some(filter) = filter {
            c::leveldb_options_set_filter_policy(to, filter.as_ptr());
        }
    }
}

/// Turns what a call left in its error argument into a failure, and frees it.
fn check(error: *mut c_char) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: a string of the library's, ended by a zero byte, ours to free.
    let text = unsafe {
        let text = CStr::from_ptr(error).to_string_lossy().into_owned();
        c::leveldb_free(error);
        text
    };
    Err(Failure::Failed(format!("LevelDB: {text}")))
}

fn address(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}

impl LevelDb {
    fn put_as(&self, options: &Owned<c::WriteOptions>, key: &[u8], value: &[u8]) -> Result<()> {
        let mut error = null_mut();
        // SAFETY: database and options are alive; key and value have the lengths
        // that are given with them.
        unsafe {
            c::leveldb_put(
                self.db.as_ptr(),
                options.as_ptr(),
                address(key),
                key.len(),
                address(value),
                value.len(),
                &mut error,
            );
        }
        check(error)
    }
}

impl Engine for LevelDb {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_as(&self.write, key, value)
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_as(&self.synced, key, value)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        let mut error = null_mut();
        let (db, options) = (self.db.as_ptr(), self.write.as_ptr());
        // SAFETY: as in `put_as`.
        unsafe { c::leveldb_delete(db, options, address(key), key.len(), &mut error) };
        check(error)
    }

    fn write(&self, changes: &Changes) -> Result<()> {
        // SAFETY: the batch is new and is given back by its own call.
        let batch =
            unsafe { Owned::new(c::leveldb_writebatch_create(), c::leveldb_writebatch_destroy)? };
        let to = batch.as_ptr();
        for change in changes.iter() {
            match change {
                Change::Put(key, value) => {
                    let (key_at, value_at) = (address(key), address(value));
                    let (key, value) = (key.len(), value.len());
                    // SAFETY: the batch is alive and copies key and value, which
                    // have the lengths that are given with them.
                    unsafe { c::leveldb_writebatch_put(to, key_at, key, value_at, value) };
                }
                // SAFETY: as above.
                Change::Delete(key) => unsafe {
                    c::leveldb_writebatch_delete(to, address(key), key.len());
                },
            }
        }
        let mut error = null_mut();
        let (db, options) = (self.db.as_ptr(), self.write.as_ptr());
        // SAFETY: database, options and batch are alive.
        unsafe { c::leveldb_write(db, options, batch.as_ptr(), &mut error) };
        check(error)
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let (mut error, mut bytes) = (null_mut(), 0);
        let (db, options) = (self.db.as_ptr(), self.read.as_ptr());
        // SAFETY: as in `put_as`; `bytes` is where the call leaves the length.
        let value =
            unsafe { c::leveldb_get(db, options, address(key), key.len(), &mut bytes, &mut error) };
        check(error)?;
        if value.is_null() {
            return Ok(false);
        }
        // SAFETY: the value is ours to free by this call.
        let value = unsafe { Owned::new(value, c::leveldb_free)? };
        // SAFETY: it has `bytes` bytes and stays until the end of this function.
        visit(unsafe { std::slice::from_raw_parts(value.as_ptr().cast(), bytes) });
        Ok(true)
    }

    fn scan(
        &self,
        from: Option<&[u8]>,
        direction: Direction,
        limit: u64,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        let mut cursor = Cursor::new(self)?;
        cursor.seek(from, direction);
        let mut left = limit;
        while left > 0 && cursor.is_valid() {
            let (key, value) = cursor.entry();
            left -= 1;
            if !visit(key, value) || left == 0 {
                break;
            }
            cursor.step(direction);
        }
        cursor.status()
    }

    fn wait_until_quiet(&self) -> Result<()> {
        // It has no such call; what the process does is watched.
        Ok(())
    }

    fn bytes_written(&self) -> Option<u64> {
        None
    }
}

/// An iterator. It is given back before the database, which it borrows.
struct Cursor<'a> {
    at: Owned<c::Iterator>,
    _db: &'a LevelDb,
}

impl<'a> Cursor<'a> {
    fn new(db: &'a LevelDb) -> Result<Cursor<'a>> {
        // SAFETY: database and options are alive; the iterator is new and is
        // given back by its own call.
        let at = unsafe {
            let at = c::leveldb_create_iterator(db.db.as_ptr(), db.read.as_ptr());
            Owned::new(at, c::leveldb_iter_destroy)?
        };
        Ok(Cursor { at, _db: db })
    }

    fn seek(&mut self, from: Option<&[u8]>, direction: Direction) {
        let at = self.at.as_ptr();
        // SAFETY: the iterator is alive and the key has the length given with it.
        unsafe {
            match (from, direction) {
                (None, Direction::Forward) => c::leveldb_iter_seek_to_first(at),
                (None, Direction::Backward) => c::leveldb_iter_seek_to_last(at),
                (Some(key), _) => c::leveldb_iter_seek(at, address(key), key.len()),
            }
        }
        if let (Some(key), Direction::Backward) = (from, direction) {
            // It has no seek to the greatest key that is not above.
            match self.is_valid() {
                // SAFETY: as above.
                false => unsafe { c::leveldb_iter_seek_to_last(at) },
                true if self.entry().0 != key => self.step(direction),
                true => {}
            }
        }
    }

    fn is_valid(&self) -> bool {
        // SAFETY: the iterator is alive.
        unsafe { c::leveldb_iter_valid(self.at.as_ptr()) != 0 }
    }

    /// The entry it is at; it must be valid.
    fn entry(&self) -> (&[u8], &[u8]) {
        let (mut key_bytes, mut value_bytes) = (0, 0);
        // SAFETY: the iterator is alive and valid. Key and value stay where they
        // are until it moves, which needs it exclusively.
        unsafe {
            let key = c::leveldb_iter_key(self.at.as_ptr(), &mut key_bytes);
            let value = c::leveldb_iter_value(self.at.as_ptr(), &mut value_bytes);
            (
                std::slice::from_raw_parts(key.cast(), key_bytes),
                std::slice::from_raw_parts(value.cast(), value_bytes),
            )
        }
    }

    /// Moves on; it must be valid.
    fn step(&mut self, direction: Direction) {
        // SAFETY: the iterator is alive and valid.
        unsafe {
            match direction {
                Direction::Forward => c::leveldb_iter_next(self.at.as_ptr()),
                Direction::Backward => c::leveldb_iter_prev(self.at.as_ptr()),
            }
        }
    }

    fn status(&self) -> Result<()> {
        let mut error = null_mut();
        // SAFETY: the iterator is alive.
        unsafe { c::leveldb_iter_get_error(self.at.as_ptr(), &mut error) };
        check(error)
    }
}
