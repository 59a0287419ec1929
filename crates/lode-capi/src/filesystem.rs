//! The caller's file system: functions of C as an [`Fs`].
//!
//! engine -> [`Calls`] -> a function of the caller's -> a number of errno.h, and
//! perhaps a text -> `io::Error`
//!
//! | part | job |
//! |---|---|
//! | `files` | the engine's traits over these calls |

use std::ffi::{CString, c_int, c_void};
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use engine::{Error, Fs, Result};

use crate::merge::Made;
use crate::order::Context;
use crate::pass::{Bytes, Text, given, invalid};

mod files;

use files::GivenFs;

type OnPath = unsafe extern "C" fn(*mut c_void, Text<'_>, &mut Made) -> c_int;
type OnPaths = unsafe extern "C" fn(*mut c_void, Text<'_>, Text<'_>, &mut Made) -> c_int;
type Open = unsafe extern "C" fn(*mut c_void, Text<'_>, &mut *mut c_void, &mut Made) -> c_int;
type Measure = unsafe extern "C" fn(*mut c_void, Text<'_>, &mut u64, &mut Made) -> c_int;
type List = unsafe extern "C" fn(*mut c_void, Text<'_>, &mut Listed, &mut Made) -> c_int;
type Read = unsafe extern "C" fn(
    *mut c_void,
    *mut c_void,
    offset: u64,
    buffer: *mut u8,
    size: usize,
    count: &mut usize,
    &mut Made,
) -> c_int;
type Append = unsafe extern "C" fn(*mut c_void, *mut c_void, Bytes<'_>, &mut Made) -> c_int;
type OnFile = unsafe extern "C" fn(*mut c_void, *mut c_void, &mut Made) -> c_int;
type ToLength = unsafe extern "C" fn(*mut c_void, *mut c_void, u64, &mut Made) -> c_int;
type Release = unsafe extern "C" fn(*mut c_void, *mut c_void);

/// `lodestore_file_system`.
#[repr(C)]
pub struct GivenFileSystem {
    size: usize,
    context: *mut c_void,
    destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    open: Option<Open>,
    read: Option<Read>,
    close_readable: Option<Release>,
    create: Option<Open>,
    append: Option<Append>,
    sync: Option<OnFile>,
    close_writable: Option<OnFile>,
    length: Option<Measure>,
    list: Option<List>,
    remove: Option<OnPath>,
    rename: Option<OnPaths>,
    create_directory: Option<OnPath>,
    remove_directory: Option<OnPath>,
    sync_directory: Option<OnPath>,
    lock: Option<Open>,
    unlock: Option<Release>,
    hard_link: Option<OnPaths>,
    overwrite: Option<Open>,
    truncate: Option<ToLength>,
    preallocate: Option<ToLength>,
}

impl GivenFileSystem {
    /// # Errors
    /// `InvalidArgument` for null, or for one of another version of the header.
    ///
    /// # Safety
    /// At `place`, if it is not null, so many bytes can be read as the first
    /// field says.
    pub(crate) unsafe fn at<'a>(place: *const GivenFileSystem) -> Result<&'a GivenFileSystem> {
        given((!place.is_null()).then_some(()), "the file system")?;
        // SAFETY: the size comes first, and is part of every version.
        let size = unsafe { (&raw const (*place).size).read() };
        if size != size_of::<GivenFileSystem>() {
            let expected = size_of::<GivenFileSystem>();
            return Err(invalid(format!(
                "the file system's size is {size}, not sizeof(lodestore_file_system), {expected}"
            )));
        }
        // SAFETY: all of it is there.
        Ok(unsafe { &*place })
    }

    /// # Errors
    /// `InvalidArgument` if a function is missing that must be there. Nothing is
    /// the engine's then, and `destroy` is not called.
    pub(crate) fn file_system(&self) -> Result<Arc<dyn Fs>> {
        let calls = Calls {
            open: given(self.open, "the file system's open")?,
            read: given(self.read, "the file system's read")?,
            close_readable: given(self.close_readable, "the file system's close_readable")?,
            create: given(self.create, "the file system's create")?,
            append: given(self.append, "the file system's append")?,
            sync: given(self.sync, "the file system's sync")?,
            close_writable: given(self.close_writable, "the file system's close_writable")?,
            length: given(self.length, "the file system's length")?,
            list: given(self.list, "the file system's list")?,
            remove: given(self.remove, "the file system's remove")?,
            rename: given(self.rename, "the file system's rename")?,
            create_directory: given(self.create_directory, "the file system's create_directory")?,
            remove_directory: given(self.remove_directory, "the file system's remove_directory")?,
            sync_directory: given(self.sync_directory, "the file system's sync_directory")?,
            lock: given(self.lock, "the file system's lock")?,
            unlock: given(self.unlock, "the file system's unlock")?,
            hard_link: self.hard_link,
            overwrite: self.overwrite,
            truncate: self.truncate,
            preallocate: self.preallocate,
            context: Context { data: self.context, destroy: self.destroy },
        };
        Ok(Arc::new(GivenFs(Arc::new(calls))))
    }
}

/// The functions, once they are known to be there.
struct Calls {
    open: Open,
    read: Read,
    close_readable: Release,
    create: Open,
    append: Append,
    sync: OnFile,
    close_writable: OnFile,
    length: Measure,
    list: List,
    remove: OnPath,
    rename: OnPaths,
    create_directory: OnPath,
    remove_directory: OnPath,
    sync_directory: OnPath,
    lock: Open,
    unlock: Release,
    hard_link: Option<OnPaths>,
    overwrite: Option<Open>,
    truncate: Option<ToLength>,
    preallocate: Option<ToLength>,
    context: Context,
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a file system of the caller's at {:?}", self.context.data)
    }
}

// In all calls below the caller gave function, context and, where there is one,
// file for each other; the header says what he may do with the rest, which lasts
// until he returns.
impl Calls {
    /// What `function`, which gets the context, came to.
    fn outcome(&self, function: impl FnOnce(*mut c_void, &mut Made) -> c_int) -> io::Result<()> {
        let mut text = Made::default();
        match function(self.context.data, &mut text) {
            0 => Ok(()),
            code => Err(failure(code, text)),
        }
    }

    fn on_path(&self, function: OnPath, path: &Path) -> io::Result<()> {
        let path = for_c(path)?;
        // SAFETY: see above.
        self.outcome(|context, text| unsafe { function(context, Text::of(&path), text) })
    }

    fn on_paths(&self, function: OnPaths, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (for_c(from)?, for_c(to)?);
        self.outcome(|context, text| {
            // SAFETY: see above.
            unsafe { function(context, Text::of(&from), Text::of(&to), text) }
        })
    }

    /// What the caller calls the file that he opened, or the lock.
    fn opened(&self, function: Open, path: &Path) -> io::Result<*mut c_void> {
        let (path, mut handle) = (for_c(path)?, std::ptr::null_mut());
        self.outcome(|context, text| {
            // SAFETY: see above.
            unsafe { function(context, Text::of(&path), &mut handle, text) }
        })?;
        Ok(handle)
    }
}

/// The error that a number of errno.h stands for, with the caller's text if he
/// gave one.
fn failure(code: c_int, text: Made) -> io::Error {
    let error = io::Error::from_raw_os_error(code);
    match text.0 {
        // Where descriptors run out the engine goes by the number, and closes some.
        Some(text) if !matches!(code, libc::EMFILE | libc::ENFILE) => {
            io::Error::new(error.kind(), Told(String::from_utf8_lossy(&text).into_owned()))
        }
        _ => error,
    }
}

/// The caller's own words for a failure.
#[derive(Debug)]
struct Told(String);

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Told {}

/// What the caller's file system said when `error` came about.
pub(crate) fn reason(error: &Error) -> Option<&str> {
    match error {
        Error::Io { source, .. } => {
            source.get_ref()?.downcast_ref::<Told>().map(|told| told.0.as_str())
        }
        Error::ReadOnly { cause } => reason(cause),
        _ => None,
    }
}

/// # Errors
/// `InvalidInput` for a path with a zero byte.
fn for_c(path: &Path) -> io::Result<CString> {
    match path.as_os_str().as_bytes() {
        b"" => Ok(c".".to_owned()),
        bytes => Ok(CString::new(bytes)?),
    }
}

/// `lodestore_names`: where the names in a directory are put.
#[derive(Default)]
pub struct Listed(Vec<String>);

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_names_add(names: Option<&mut Listed>, name: Text<'_>) {
    let (Some(names), Ok(name)) = (names, name.path("a name")) else { return };
    let name = name.to_string_lossy();
    // Some list these two, and some what is in directories below.
    if name != "." && name != ".." && !name.contains('/') {
        names.0.push(name.into_owned());
    }
}

#[cfg(test)]
mod tests;
