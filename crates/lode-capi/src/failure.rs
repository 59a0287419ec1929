//! Errors, with a code and a text; panics become one.

use std::any::Any;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use engine::Error;

use crate::filesystem;

/// `lodestore_error`.
pub struct Failure {
    code: c_int,
    message: CString,
    /// What the caller's file system said of it, if it was asked.
    reason: Option<CString>,
}

/// What every call that can fail gives: null if it did not.
pub(crate) type Outcome = Option<Box<Failure>>;

/// The code of a panic, and of errors that this build does not know.
const INTERNAL: c_int = 10;

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = match &error {
            Error::Io { .. } => 1,
            Error::Corruption { .. } => 2,
            Error::Incompatible { .. } => 3,
            Error::InvalidArgument { .. } => 4,
            Error::Busy { .. } => 5,
            Error::Stalled { .. } => 6,
            Error::Missing { .. } => 7,
            Error::MergeFailed { .. } => 8,
            Error::ReadOnly { .. } => 9,
            _ => INTERNAL,
        };
        let reason = filesystem::reason(&error).map(without_zeros);
        Failure { reason, ..Failure::new(code, &error.to_string()) }
    }
}

/// `text` for C, where a zero byte ends it.
fn without_zeros(text: &str) -> CString {
    let bytes: Vec<u8> = text.bytes().filter(|byte| *byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

impl Failure {
    /// Bytes without a file, of which `what` is wrong.
    #[cfg(any(test, feature = "leveldb-files"))]
    pub(crate) fn corruption(what: &str) -> Failure {
        Failure::new(2, &format!("Corruption: {what}"))
    }

    fn new(code: c_int, message: &str) -> Failure {
        Failure { code, message: without_zeros(message), reason: None }
    }

    fn of_panic(panic: &(dyn Any + Send)) -> Failure {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Failure::new(INTERNAL, &format!("Internal error: {}", text.unwrap_or("a panic")))
    }
}

/// Does `work`; what goes wrong is returned, and never thrown.
pub(crate) fn guarded(work: impl FnOnce() -> engine::Result<()>) -> Outcome {
    let failure = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return None,
        Ok(Err(error)) => error.into(),
        Err(panic) => Failure::of_panic(&*panic),
    };
    Some(Box::new(failure))
}

/// Does `work`, which has no way to fail; `otherwise` after a panic.
pub(crate) fn guarded_or<T>(otherwise: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(otherwise)
}

/// Lets go of what the caller owned.
pub(crate) fn released<T>(owned: Option<Box<T>>) {
    guarded_or((), || drop(owned));
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_error_code(error: Option<&Failure>) -> c_int {
    error.map_or(0, |error| error.code)
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_error_message(error: Option<&Failure>) -> *const c_char {
    error.map_or(c"OK".as_ptr(), |error| error.message.as_ptr())
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_error_reason(error: Option<&Failure>) -> *const c_char {
    let reason = error.and_then(|error| error.reason.as_ref());
    reason.map_or(std::ptr::null(), |reason| reason.as_ptr())
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_error_free(error: Option<Box<Failure>>) {
    released(error);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A panic is an error like any other, with its text.
    #[test]
    fn panics_become_errors() {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let failure = guarded(|| panic!("so much for {}", 7)).expect("it failed");
        let kept = guarded_or(5, || panic!("quietly"));
        std::panic::set_hook(hook);
        assert_eq!(failure.code, INTERNAL);
        assert_eq!(failure.message.to_bytes(), b"Internal error: so much for 7");
        assert_eq!(kept, 5);
        assert!(guarded(|| Ok(())).is_none());
    }

    #[test]
    fn errors_have_their_code_and_text() {
        let missing = || Err(Error::Missing { what: "no \0 such".to_string() });
        let failure = guarded(missing).expect("it failed");
        assert_eq!((failure.code, failure.message.to_bytes()), (7, &b"Missing: no  such"[..]));
    }
}
