//! Bytes, names and results across the boundary.

use std::ffi::{CStr, c_char, c_int};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::path::Path;
use std::{ptr, slice};

use engine::{Error, Result};

/// Where a result goes; whatever is there is overwritten, never read.
pub(crate) type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// `lodestore_bytes`: so many bytes at an address, which may be null if there
/// are none.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes<'a> {
    data: *const u8,
    size: usize,
    lives: PhantomData<&'a [u8]>,
}

impl<'a> Bytes<'a> {
    /// No bytes, and no address either.
    pub(crate) const NONE: Bytes<'static> =
        Bytes { data: ptr::null(), size: 0, lives: PhantomData };

    pub(crate) fn of(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes { data: bytes.as_ptr(), size: bytes.len(), lives: PhantomData }
    }

    /// # Errors
    /// `InvalidArgument` for bytes at a null address, or more than there can be.
    pub(crate) fn get(self) -> Result<&'a [u8]> {
        if self.size == 0 {
            return Ok(&[]);
        }
        if self.data.is_null() || self.size > isize::MAX as usize {
            return Err(invalid(format!("{} bytes at address {:?}", self.size, self.data)));
        }
        // SAFETY: the caller promises, by the header, that so many bytes can be
        // read there until the call returns.
        Ok(unsafe { slice::from_raw_parts(self.data, self.size) })
    }

    /// [`Bytes::get`]; `None` for the null address.
    pub(crate) fn if_any(self) -> Result<Option<&'a [u8]>> {
        match self.data.is_null() && self.size == 0 {
            true => Ok(None),
            false => self.get().map(Some),
        }
    }
}

/// A text that ends with a zero byte; null is none.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Text<'a> {
    data: *const c_char,
    lives: PhantomData<&'a CStr>,
}

impl<'a> Text<'a> {
    pub(crate) fn of(text: &'a CStr) -> Text<'a> {
        Text { data: text.as_ptr(), lives: PhantomData }
    }

    pub(crate) fn is_null(self) -> bool {
        self.data.is_null()
    }

    /// The bytes; `None` for null.
    fn bytes(self) -> Option<&'a [u8]> {
        if self.data.is_null() {
            return None;
        }
        // SAFETY: the caller promises, by the header, that a zero byte ends the
        // text, which can be read until the call returns.
        Some(unsafe { CStr::from_ptr(self.data) }.to_bytes())
    }

    /// # Errors
    /// `InvalidArgument` for null or what is not UTF-8; `what` names the text.
    pub(crate) fn get(self, what: &str) -> Result<&'a str> {
        let bytes = self.bytes().ok_or_else(|| is_null(what))?;
        std::str::from_utf8(bytes).map_err(|_| invalid(format!("{what} is not UTF-8")))
    }

    /// The same as a path, which may be any bytes.
    pub(crate) fn path(self, what: &str) -> Result<&'a Path> {
        use std::os::unix::ffi::OsStrExt;
        let bytes = self.bytes().ok_or_else(|| is_null(what))?;
        Ok(Path::new(std::ffi::OsStr::from_bytes(bytes)))
    }
}

/// `count` things one after the other at `first`; null is none.
///
/// # Safety
/// They are there until the call returns, if `first` is not null.
pub(crate) unsafe fn list<'a, T>(first: *const T, count: usize) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if first.is_null() || count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(invalid(format!("{count} elements at address {first:?}")));
    }
    // SAFETY: the caller promises it.
    Ok(unsafe { slice::from_raw_parts(first, count) })
}

/// What a pointer leads to, which must not be null; `what` names it.
pub(crate) fn given<T>(pointer: Option<T>, what: &str) -> Result<T> {
    pointer.ok_or_else(|| is_null(what))
}

/// What C takes for true.
pub(crate) fn truth(is_true: bool) -> u8 {
    u8::from(is_true)
}

/// `memcmp`'s result as an order.
pub(crate) fn ordering(sign: c_int) -> std::cmp::Ordering {
    sign.cmp(&0)
}

pub(crate) fn invalid(what: String) -> Error {
    Error::InvalidArgument { what }
}

fn is_null(what: &str) -> Error {
    invalid(format!("{what} is null"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No bytes may have any address; some must have one.
    #[test]
    fn null_is_no_place_for_bytes() {
        assert_eq!(Bytes::NONE.get().unwrap(), b"");
        assert_eq!(Bytes::NONE.if_any().unwrap(), None);
        assert_eq!(Bytes::of(b"").if_any().unwrap(), Some(&b""[..]));
        assert_eq!(Bytes::of(b"ab").get().unwrap(), b"ab");
        let wrong = Bytes { data: ptr::null(), size: 3, lives: PhantomData };
        assert!(wrong.get().is_err() && wrong.if_any().is_err());
        let negative = Bytes { size: usize::MAX, ..Bytes::of(b"x") };
        assert!(negative.get().is_err());
    }

    #[test]
    fn texts_end_with_a_zero_byte() {
        let text = |bytes: &'static CStr| Text { data: bytes.as_ptr(), lives: PhantomData };
        assert_eq!(text(c"name").get("it").unwrap(), "name");
        assert!(text(c"\xff").get("it").is_err());
        assert_eq!(text(c"\xff").path("it").unwrap().as_os_str().len(), 1);
        let null = Text { data: ptr::null(), lives: PhantomData };
        assert_eq!(null.get("it").unwrap_err().to_string(), "Invalid argument: it is null");
    }
}
