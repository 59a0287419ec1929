//! Functions, as a caller in C would write them, over a file system of the engine's.

use std::ffi::{CStr, c_int, c_void};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use engine::Fs;
use engine::fs::{FileLock, LockError, ReadableFile, WritableFile};

use crate::filesystem::{GivenFileSystem, Listed, lodestore_names_add};
use crate::merge::{Made, lodestore_result_set};
use crate::pass::{Bytes, Text};

/// What a caller hands over for `fs`: without the functions that it lacks.
pub(super) fn functions(fs: Arc<dyn Fs>) -> GivenFileSystem {
    let able = fs.capabilities();
    GivenFileSystem {
        size: size_of::<GivenFileSystem>(),
        context: Box::into_raw(Box::new(fs)).cast(),
        destroy: Some(released::<Arc<dyn Fs>>),
        open: Some(open),
        read: Some(read),
        close_readable: Some(close_readable),
        create: Some(create),
        append: Some(append),
        sync: Some(sync),
        close_writable: Some(close_writable),
        length: Some(length),
        list: Some(list),
        remove: Some(remove),
        rename: Some(rename),
        create_directory: Some(create_directory),
        remove_directory: Some(remove_directory),
        sync_directory: Some(sync_directory),
        lock: Some(lock),
        unlock: Some(unlock),
        hard_link: able.hard_links.then_some(hard_link),
        overwrite: able.overwriting.then_some(overwrite),
        truncate: able.truncation.then_some(truncate),
        preallocate: able.preallocation.then_some(preallocate),
    }
}

// All that follow get, as the engine promises, the context from above, and the files
// and locks that they gave themselves: a SAFETY sentence for each would say that.

fn fs_of<'a>(context: *mut c_void) -> &'a dyn Fs {
    // SAFETY: see above.
    unsafe { &**context.cast::<Arc<dyn Fs>>() }
}

fn writer_of<'a>(file: *mut c_void) -> &'a mut Box<dyn WritableFile> {
    // SAFETY: see above; one thread at a time uses it.
    unsafe { &mut *file.cast::<Box<dyn WritableFile>>() }
}

fn kept<T>(value: T) -> *mut c_void {
    Box::into_raw(Box::new(value)).cast()
}

fn given_back<T>(value: *mut c_void) -> T {
    // SAFETY: see above; it happens once.
    *unsafe { Box::from_raw(value.cast::<T>()) }
}

extern "C" fn released<T>(value: *mut c_void) {
    drop(given_back::<T>(value));
}

/// A number of errno.h for what happened, and the words.
fn answer(outcome: io::Result<()>, why: &mut Made) -> c_int {
    let Err(error) = outcome else { return 0 };
    lodestore_result_set(Some(why), Bytes::of(error.to_string().as_bytes()));
    error.raw_os_error().unwrap_or(match error.kind() {
        ErrorKind::NotFound => libc::ENOENT,
        ErrorKind::AlreadyExists => libc::EEXIST,
        ErrorKind::StorageFull => libc::ENOSPC,
        ErrorKind::Interrupted => libc::EINTR,
        _ => libc::EIO,
    })
}

fn path(text: Text<'_>) -> &Path {
    match text.path("a path").expect("the engine gives paths") {
        here if here == Path::new(".") => Path::new(""),
        path => path,
    }
}

type At<'a> = &'a mut *mut c_void;

extern "C" fn open(fs: *mut c_void, at: Text<'_>, file: At<'_>, why: &mut Made) -> c_int {
    answer(fs_of(fs).open(path(at)).map(|opened| *file = kept(opened)), why)
}

extern "C" fn read(
    _fs: *mut c_void,
    file: *mut c_void,
    offset: u64,
    buffer: *mut u8,
    size: usize,
    count: &mut usize,
    why: &mut Made,
) -> c_int {
    // SAFETY: the engine promises so many bytes there.
    let buffer = unsafe { std::slice::from_raw_parts_mut(buffer, size) };
    // SAFETY: see above.
    let file = unsafe { &*file.cast::<Arc<dyn ReadableFile>>() };
    answer(file.read_at(offset, buffer).map(|read| *count = read), why)
}

extern "C" fn close_readable(_fs: *mut c_void, file: *mut c_void) {
    drop(given_back::<Arc<dyn ReadableFile>>(file));
}

extern "C" fn create(fs: *mut c_void, at: Text<'_>, file: At<'_>, why: &mut Made) -> c_int {
    answer(fs_of(fs).create(path(at)).map(|created| *file = kept(created)), why)
}

extern "C" fn overwrite(fs: *mut c_void, at: Text<'_>, file: At<'_>, why: &mut Made) -> c_int {
    answer(fs_of(fs).overwrite(path(at)).map(|opened| *file = kept(opened)), why)
}

extern "C" fn append(_: *mut c_void, file: *mut c_void, bytes: Bytes<'_>, why: &mut Made) -> c_int {
    let bytes = bytes.get().expect("the engine gives bytes");
    answer(writer_of(file).append(bytes), why)
}

extern "C" fn sync(_: *mut c_void, file: *mut c_void, why: &mut Made) -> c_int {
    answer(writer_of(file).sync(), why)
}

extern "C" fn truncate(_: *mut c_void, file: *mut c_void, length: u64, why: &mut Made) -> c_int {
    answer(writer_of(file).truncate(length), why)
}

extern "C" fn preallocate(_: *mut c_void, file: *mut c_void, length: u64, why: &mut Made) -> c_int {
    answer(writer_of(file).preallocate(length), why)
}

extern "C" fn close_writable(_: *mut c_void, file: *mut c_void, why: &mut Made) -> c_int {
    answer(given_back::<Box<dyn WritableFile>>(file).close(), why)
}

extern "C" fn length(fs: *mut c_void, at: Text<'_>, bytes: &mut u64, why: &mut Made) -> c_int {
    answer(fs_of(fs).length(path(at)).map(|length| *bytes = length), why)
}

extern "C" fn list(fs: *mut c_void, at: Text<'_>, names: &mut Listed, why: &mut Made) -> c_int {
    let listed = fs_of(fs).list(path(at)).map(|found| {
        for name in found.into_iter().chain([".".to_string(), "..".to_string()]) {
            let name = [name.as_bytes(), b"\0"].concat();
            let name = CStr::from_bytes_with_nul(&name).expect("names have no zero byte");
            lodestore_names_add(Some(&mut *names), Text::of(name));
        }
    });
    answer(listed, why)
}

extern "C" fn remove(fs: *mut c_void, at: Text<'_>, why: &mut Made) -> c_int {
    answer(fs_of(fs).remove(path(at)), why)
}

extern "C" fn rename(fs: *mut c_void, from: Text<'_>, to: Text<'_>, why: &mut Made) -> c_int {
    answer(fs_of(fs).rename(path(from), path(to)), why)
}

extern "C" fn hard_link(fs: *mut c_void, from: Text<'_>, to: Text<'_>, why: &mut Made) -> c_int {
    answer(fs_of(fs).hard_link(path(from), path(to)), why)
}

extern "C" fn create_directory(fs: *mut c_void, at: Text<'_>, why: &mut Made) -> c_int {
    answer(fs_of(fs).create_directory(path(at)), why)
}

extern "C" fn remove_directory(fs: *mut c_void, at: Text<'_>, why: &mut Made) -> c_int {
    answer(fs_of(fs).remove_directory(path(at)), why)
}

extern "C" fn sync_directory(fs: *mut c_void, at: Text<'_>, why: &mut Made) -> c_int {
    answer(fs_of(fs).sync_directory(path(at)), why)
}

extern "C" fn lock(fs: *mut c_void, at: Text<'_>, lock: At<'_>, why: &mut Made) -> c_int {
    match fs_of(fs).lock(path(at)) {
        Ok(taken) => {
            *lock = kept(taken);
            0
        }
        Err(LockError::Held { .. }) => libc::EBUSY,
        Err(LockError::Io(error)) => answer(Err(error), why),
    }
}

extern "C" fn unlock(_fs: *mut c_void, lock: *mut c_void) {
    drop(given_back::<Box<dyn FileLock>>(lock));
}
