//! Options of databases, by name; of writes and reads, one function each.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use engine::{Cache, FamilyOptions, IngestOptions, Options, ReadOptions, Result, WriteOptions};

use crate::failure::{Outcome, guarded, guarded_or, released};
use crate::filesystem::GivenFileSystem;
use crate::listener::GivenListener;
use crate::merge::{self, GivenOperator};
use crate::order::GivenComparator;
use crate::pass::{Bytes, Text, given};
use crate::snapshot::Kept;
use crate::value::Held;

/// `lodestore_options`.
pub struct Given(pub(crate) Options);

/// Changes the options of the named family; for null those of every family that
/// has none of its own.
fn change_family(
    options: Option<&mut Given>,
    family: Text<'_>,
    change: impl FnOnce(&mut FamilyOptions) -> Result<()>,
) -> Outcome {
    guarded(|| {
        let options = &mut given(options, "options")?.0;
        if family.is_null() {
            return change(&mut options.family);
        }
        let name = family.get("the family's name")?;
        let mut of_family = options.family_options(name).clone();
        change(&mut of_family)?;
        options.families.insert(name.to_string(), of_family);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_options_create() -> Option<Box<Given>> {
    guarded_or(None, || Some(Box::new(Given(Options::default()))))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_options_free(options: Option<Box<Given>>) {
    released(options);
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_options_set(
    options: Option<&mut Given>,
    name: Text<'_>,
    value: Text<'_>,
) -> Outcome {
    guarded(|| {
        let (name, value) = (name.get("the option's name")?, value.get("the option's value")?);
        given(options, "options")?.0.set(name, value)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_options_set_family(
    options: Option<&mut Given>,
    family: Text<'_>,
    name: Text<'_>,
    value: Text<'_>,
) -> Outcome {
    change_family(options, family, |of_family| {
        of_family.set(name.get("the option's name")?, value.get("the option's value")?)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_options_apply_text(
    options: Option<&mut Given>,
    text: Text<'_>,
) -> Outcome {
    guarded(|| given(options, "options")?.0.apply_text(text.get("the text")?))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_options_text(options: Option<&Given>) -> Option<Box<Held>> {
    guarded_or(None, || options.map(|options| Held::text(options.0.to_text())))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_options_set_comparator(
    options: Option<&mut Given>,
    family: Text<'_>,
    comparator: Option<&GivenComparator<'_>>,
) -> Outcome {
    change_family(options, family, |of_family| {
        of_family.order = given(comparator, "the comparator")?.order()?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_options_set_merge_operator(
    options: Option<&mut Given>,
    family: Text<'_>,
    operator: Option<&GivenOperator<'_>>,
) -> Outcome {
    change_family(options, family, |of_family| {
        of_family.merge_operator = Some(given(operator, "the merge operator")?.operator()?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_options_use_merge_operator(
    options: Option<&mut Given>,
    family: Text<'_>,
    name: Text<'_>,
    delimiter: Bytes<'_>,
) -> Outcome {
    change_family(options, family, |of_family| {
        let name = name.get("the merge operator's name")?;
        of_family.merge_operator = Some(merge::built_in(name, delimiter.get()?)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_options_set_listener(
    options: Option<&mut Given>,
    listener: Option<&GivenListener>,
) -> Outcome {
    guarded(|| {
        let listener = given(listener, "the listener")?.listener()?;
        given(options, "options")?.0.listener = Some(listener);
        Ok(())
    })
}

/// `lodestore_cache`: a block cache that several databases can share.
pub struct SharedCache(Arc<Cache>);

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cache_create(capacity_bytes: usize) -> Option<Box<SharedCache>> {
    guarded_or(None, || Some(Box::new(SharedCache(Cache::new(capacity_bytes)))))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cache_used_bytes(cache: Option<&SharedCache>) -> usize {
    guarded_or(0, || cache.map_or(0, |cache| cache.0.used_bytes()))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_cache_free(cache: Option<Box<SharedCache>>) {
    released(cache);
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_options_set_cache(
    options: Option<&mut Given>,
    cache: Option<&SharedCache>,
) -> Outcome {
    guarded(|| {
        let cache = Arc::clone(&given(cache, "the cache")?.0);
        given(options, "options")?.0.cache = Some(cache);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_options_set_file_system(
    options: Option<&mut Given>,
    file_system: *const GivenFileSystem,
) -> Outcome {
    guarded(|| {
        let options = &mut given(options, "options")?.0;
        // SAFETY: the header demands that the whole of it can be read, if it is not
        // null.
        options.fs = unsafe { GivenFileSystem::at(file_system) }?.file_system()?;
        Ok(())
    })
}

/// `lodestore_write_options`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct GivenWrite {
    sync: u8,
    no_slowdown: u8,
    deadline_micros: u64,
}

/// What null stands for too.
pub(crate) fn write_options(given: Option<&GivenWrite>) -> WriteOptions {
    given.map_or_else(WriteOptions::default, |of| WriteOptions {
        sync: of.sync != 0,
        no_slowdown: of.no_slowdown != 0,
        deadline: (of.deadline_micros > 0).then(|| Duration::from_micros(of.deadline_micros)),
    })
}

/// `lodestore_ingest_options`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct GivenIngest {
    move_files: u8,
    trust: u8,
}

pub(crate) fn ingest_options(given: Option<&GivenIngest>) -> IngestOptions {
    given.map_or_else(IngestOptions::default, |of| IngestOptions {
        move_files: of.move_files != 0,
        verify: of.trust == 0,
    })
}

/// `lodestore_read_options`.
pub struct GivenRead(pub(crate) ReadOptions);

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_read_options_create() -> Option<Box<GivenRead>> {
    guarded_or(None, || Some(Box::new(GivenRead(ReadOptions::default()))))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_read_options_free(options: Option<Box<GivenRead>>) {
    released(options);
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_read_options_set_snapshot(
    options: Option<&mut GivenRead>,
    snapshot: Option<&Kept>,
) -> Outcome {
    guarded(|| {
        given(options, "options")?.0.snapshot = snapshot.map(|kept| kept.0.clone());
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_read_options_set_fill_cache(
    options: Option<&mut GivenRead>,
    fill_cache: u8,
) -> Outcome {
    guarded(|| {
        given(options, "options")?.0.fill_cache = fill_cache != 0;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_read_options_set_bounds(
    options: Option<&mut GivenRead>,
    lower: Bytes<'_>,
    upper: Bytes<'_>,
) -> Outcome {
    guarded(|| {
        let options = &mut given(options, "options")?.0;
        options.lower_bound = lower.if_any()?.map(<[u8]>::to_vec);
        options.upper_bound = upper.if_any()?.map(<[u8]>::to_vec);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_read_options_set_prefix(
    options: Option<&mut GivenRead>,
    prefix: Bytes<'_>,
) -> Outcome {
    guarded(|| {
        given(options, "options")?.0.prefix = prefix.if_any()?.map(<[u8]>::to_vec);
        Ok(())
    })
}

/// The default where the caller gave none.
pub(crate) fn read_options(given: Option<&GivenRead>) -> Cow<'_, ReadOptions> {
    given.map_or_else(|| Cow::Owned(ReadOptions::default()), |of| Cow::Borrowed(&of.0))
}
