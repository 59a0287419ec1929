//! Puts, deletes, gets.

use engine::{Family, WriteOptions};

use crate::failure::{Failure, Outcome, guarded};
use crate::options::{GivenRead, GivenWrite, read_options, write_options};
use crate::pass::{Bytes, Out, given, list};
use crate::value::Held;

fn written(
    family: Option<&Family>,
    options: Option<&GivenWrite>,
    write: impl FnOnce(&Family, &WriteOptions) -> engine::Result<()>,
) -> Outcome {
    guarded(|| write(given(family, "the family")?, &write_options(options)))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_put(
    family: Option<&Family>,
    options: Option<&GivenWrite>,
    key: Bytes<'_>,
    value: Bytes<'_>,
) -> Outcome {
    written(family, options, |family, how| family.put_with(how, key.get()?, value.get()?))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_delete(
    family: Option<&Family>,
    options: Option<&GivenWrite>,
    key: Bytes<'_>,
) -> Outcome {
    written(family, options, |family, how| family.delete_with(how, key.get()?))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_single_delete(
    family: Option<&Family>,
    options: Option<&GivenWrite>,
    key: Bytes<'_>,
) -> Outcome {
    written(family, options, |family, how| family.single_delete_with(how, key.get()?))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_delete_range(
    family: Option<&Family>,
    options: Option<&GivenWrite>,
    begin: Bytes<'_>,
    end: Bytes<'_>,
) -> Outcome {
    written(family, options, |family, how| family.delete_range_with(how, begin.get()?, end.get()?))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_merge(
    family: Option<&Family>,
    options: Option<&GivenWrite>,
    key: Bytes<'_>,
    operand: Bytes<'_>,
) -> Outcome {
    written(family, options, |family, how| family.merge_with(how, key.get()?, operand.get()?))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_get(
    family: Option<&Family>,
    options: Option<&GivenRead>,
    key: Bytes<'_>,
    value: Out<'_, Option<Box<Held>>>,
) -> Outcome {
    guarded(|| {
        let place = given(value, "the place for the value")?.write(None);
        let family = given(family, "the family")?;
        *place = family.get_with(&read_options(options), key.get()?)?.map(Held::value);
        Ok(())
    })
}

/// Copies a value to the caller's buffer, as far as there is room.
///
/// # Safety
/// `capacity` bytes at `buffer` can be written, if it is not null.
unsafe fn fill(value: &[u8], buffer: *mut u8, capacity: usize) {
    if !buffer.is_null() {
        // SAFETY: the caller promises the room; a value is no part of it.
        unsafe { buffer.copy_from_nonoverlapping(value.as_ptr(), value.len().min(capacity)) }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_get_into(
    family: Option<&Family>,
    options: Option<&GivenRead>,
    key: Bytes<'_>,
    buffer: *mut u8,
    capacity: usize,
    size: Out<'_, usize>,
    found: Out<'_, u8>,
) -> Outcome {
    guarded(|| {
        let found = given(found, "the place for whether it was found")?.write(0);
        let size = given(size, "the place for the size")?.write(0);
        let family = given(family, "the family")?;
        if let Some(value) = family.get_with(&read_options(options), key.get()?)? {
            (*found, *size) = (1, value.len());
            // SAFETY: the header demands `capacity` bytes of room.
            unsafe { fill(&value, buffer, capacity) };
        }
        Ok(())
    })
}

/// Writes `made` to the `index`th place from `first` on.
///
/// # Safety
/// There are places up to that one, or `first` is null.
unsafe fn put<T>(first: *mut T, index: usize, made: T) {
    if !first.is_null() {
        // SAFETY: the caller promises the place; what is there is not read.
        unsafe { first.add(index).write(made) }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_multi_get(
    family: Option<&Family>,
    options: Option<&GivenRead>,
    keys: *const Bytes<'_>,
    count: usize,
    values: *mut Option<Box<Held>>,
    errors: *mut Option<Box<Failure>>,
) -> Outcome {
    guarded(|| {
        let family = given(family, "the family")?;
        given((!values.is_null() || count == 0).then_some(()), "the place for the values")?;
        // SAFETY: the header demands `count` keys.
        let keys = unsafe { list(keys, count) }?;
        let keys = keys.iter().map(|key| key.get()).collect::<engine::Result<Vec<_>>>()?;
        let mut first_failure = Ok(());
        for (index, got) in
            family.multi_get_with(&read_options(options), &keys).into_iter().enumerate()
        {
            let (value, failure) = match got {
                Ok(value) => (value.map(Held::value), None),
                Err(error) => {
                    if errors.is_null() && first_failure.is_ok() {
                        first_failure = Err(error.clone());
                    }
                    (None, Some(Box::new(error.into())))
                }
            };
            // SAFETY: the header demands `count` places in each that is not null.
            unsafe {
                put(values, index, value);
                put(errors, index, failure);
            }
        }
        first_failure
    })
}
