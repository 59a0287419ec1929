//! The caller's merge operator.

use std::ffi::c_void;
use std::sync::Arc;

use engine::{AddU64, Append, MergeOperator, Result, SharedMergeOperator};

use crate::order::Context;
use crate::pass::{Bytes, Text, given, invalid};

/// `lodestore_result`: where a merge operator puts what it made, and a file system
/// the text of a failure.
#[derive(Default)]
pub struct Made(pub(crate) Option<Vec<u8>>);

type FullMerge = unsafe extern "C" fn(
    *mut c_void,
    key: Bytes<'_>,
    existing: Bytes<'_>,
    operands: *const Bytes<'_>,
    count: usize,
    result: &mut Made,
);
type PartialMerge = unsafe extern "C" fn(
    *mut c_void,
    key: Bytes<'_>,
    older: Bytes<'_>,
    newer: Bytes<'_>,
    result: &mut Made,
);

/// `lodestore_merge_operator`.
#[repr(C)]
pub struct GivenOperator<'a> {
    context: *mut c_void,
    destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    name: Text<'a>,
    full_merge: Option<FullMerge>,
    partial_merge: Option<PartialMerge>,
}

struct Operator {
    context: Context,
    name: String,
    full_merge: FullMerge,
    partial_merge: Option<PartialMerge>,
}

impl GivenOperator<'_> {
    /// # Errors
    /// `InvalidArgument` if there is no name, or no function.
    pub(crate) fn operator(&self) -> Result<SharedMergeOperator> {
        Ok(Arc::new(Operator {
            name: self.name.get("the merge operator's name")?.to_string(),
            full_merge: given(self.full_merge, "the merge operator's function")?,
            partial_merge: self.partial_merge,
            context: Context { data: self.context, destroy: self.destroy },
        }))
    }
}

/// One that is built in: `add_u64`, or `append` with what it puts between.
///
/// # Errors
/// `InvalidArgument` for another name.
pub(crate) fn built_in(name: &str, delimiter: &[u8]) -> Result<SharedMergeOperator> {
    match name {
        "add_u64" => Ok(Arc::new(AddU64)),
        "append" => Ok(Arc::new(Append::with_delimiter(delimiter))),
        _ => Err(invalid(format!("no merge operator {name:?} is built in: add_u64, append"))),
    }
}

impl MergeOperator for Operator {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        let operands: Vec<Bytes<'_>> = operands.iter().map(|bytes| Bytes::of(bytes)).collect();
        let existing = existing.map_or(Bytes::NONE, Bytes::of);
        let (data, mut made) = (self.context.data, Made::default());
        // SAFETY: the caller gave function and context for each other, and all
        // bytes can be read until it returns.
        unsafe {
            let key = Bytes::of(key);
            (self.full_merge)(data, key, existing, operands.as_ptr(), operands.len(), &mut made);
        }
        made.0
    }

    fn partial_merge(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        let (merge, mut made) = (self.partial_merge?, Made::default());
        let (older, newer) = (Bytes::of(older), Bytes::of(newer));
        // SAFETY: as above.
        unsafe { merge(self.context.data, Bytes::of(key), older, newer, &mut made) };
        made.0
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_result_set(result: Option<&mut Made>, bytes: Bytes<'_>) {
    if let Some(result) = result {
        // No bytes make no result, also where there was one before.
        result.0 = bytes.get().ok().map(<[u8]>::to_vec);
    }
}
