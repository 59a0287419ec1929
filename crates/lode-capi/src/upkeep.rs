//! Flushes, compactions, sizes, properties, checks.

use engine::{Db, Family};

use crate::failure::{Outcome, guarded, guarded_or};
use crate::pass::{Bytes, Out, Text, given, list};
use crate::value::Held;

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_flush(family: Option<&Family>) -> Outcome {
    guarded(|| given(family, "the family")?.flush())
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_flush_all(db: Option<&Db>) -> Outcome {
    guarded(|| given(db, "the database")?.flush_all())
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_sync_log(db: Option<&Db>) -> Outcome {
    guarded(|| given(db, "the database")?.sync_log())
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_wait_for_background(db: Option<&Db>) -> Outcome {
    guarded(|| given(db, "the database")?.wait_for_background())
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_resume(db: Option<&Db>) -> Outcome {
    guarded(|| given(db, "the database")?.resume())
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_compact_range(
    family: Option<&Family>,
    from: Bytes<'_>,
    to: Bytes<'_>,
) -> Outcome {
    guarded(|| given(family, "the family")?.compact_range(from.if_any()?, to.if_any()?))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_rewrite_range(
    family: Option<&Family>,
    from: Bytes<'_>,
    to: Bytes<'_>,
) -> Outcome {
    guarded(|| given(family, "the family")?.rewrite_range(from.if_any()?, to.if_any()?))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_delete_files_in_range(
    family: Option<&Family>,
    begin: Bytes<'_>,
    end: Bytes<'_>,
    tables: Out<'_, u64>,
) -> Outcome {
    guarded(|| {
        let family = given(family, "the family")?;
        let dropped = family.delete_files_in_range(begin.if_any()?, end.if_any()?)?;
        if let Some(tables) = tables {
            tables.write(dropped);
        }
        Ok(())
    })
}

/// `lodestore_range`.
#[repr(C)]
pub struct KeyRange<'a> {
    begin: Bytes<'a>,
    end: Bytes<'a>,
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_approximate_sizes(
    family: Option<&Family>,
    ranges: *const KeyRange<'_>,
    count: usize,
    sizes: *mut u64,
) -> Outcome {
    guarded(|| {
        let family = given(family, "the family")?;
        given((!sizes.is_null() || count == 0).then_some(()), "the place for the sizes")?;
        // SAFETY: the header demands `count` ranges.
        let ranges = unsafe { list(ranges, count) }?;
        let mut keys = Vec::with_capacity(count);
        for range in ranges {
            keys.push((range.begin.get()?, range.end.get()?));
        }
        for (index, size) in family.approximate_sizes(&keys)?.into_iter().enumerate() {
            // SAFETY: the header demands `count` places, and there is one size
            // for each range.
            unsafe { sizes.add(index).write(size) };
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_property(family: Option<&Family>, name: Text<'_>) -> Option<Box<Held>> {
    guarded_or(None, || {
        let text = family?.property(name.get("the property's name").ok()?)?;
        Some(Held::text(text))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_property_names() -> Option<Box<Held>> {
    guarded_or(None, || {
        let names: Vec<String> = Family::property_names().collect();
        Some(Held::text(names.join("\n")))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_verify(db: Option<&Db>) -> Outcome {
    guarded(|| given(db, "the database")?.verify().map(drop))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_checkpoint(db: Option<&Db>, path: Text<'_>) -> Outcome {
    guarded(|| given(db, "the database")?.checkpoint(path.path("the path")?))
}
