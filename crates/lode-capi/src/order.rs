//! The caller's comparator.

use std::cmp::Ordering;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use engine::{Comparator, KeyOrder, Result};

use crate::pass::{Bytes, Text, given, ordering};

/// Something of the caller's that its functions get back; its `destroy` runs
/// once, when nothing of ours uses it any more.
pub(crate) struct Context {
    pub(crate) data: *mut c_void,
    pub(crate) destroy: Option<unsafe extern "C" fn(*mut c_void)>,
}

// SAFETY: the header demands that the functions which get it can be called from
// any thread, several at once; we do nothing else with it.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        if let Some(destroy) = self.destroy {
            // SAFETY: the caller gave both for this, and it happens once.
            unsafe { destroy(self.data) }
        }
    }
}

/// `lodestore_comparator`.
#[repr(C)]
pub struct GivenComparator<'a> {
    context: *mut c_void,
    destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    name: Text<'a>,
    compare: Option<unsafe extern "C" fn(*mut c_void, Bytes<'_>, Bytes<'_>) -> c_int>,
    equal_means_identical: u8,
}

struct Order {
    context: Context,
    name: String,
    compare: unsafe extern "C" fn(*mut c_void, Bytes<'_>, Bytes<'_>) -> c_int,
    equal_means_identical: bool,
}

impl GivenComparator<'_> {
    /// # Errors
    /// `InvalidArgument` if there is no name, or no function.
    pub(crate) fn order(&self) -> Result<KeyOrder> {
        Ok(KeyOrder::Custom(Arc::new(Order {
            name: self.name.get("the comparator's name")?.to_string(),
            compare: given(self.compare, "the comparator's function")?,
            equal_means_identical: self.equal_means_identical != 0,
            context: Context { data: self.context, destroy: self.destroy },
        })))
    }
}

impl Comparator for Order {
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        // SAFETY: the caller gave function and context for each other, and both
        // keys can be read until it returns.
        ordering(unsafe { (self.compare)(self.context.data, Bytes::of(a), Bytes::of(b)) })
    }

    fn equal_means_identical(&self) -> bool {
        self.equal_means_identical
    }
}
