//! Opening, families, and what concerns all of them.

use engine::{Db, Family, adopt};

use crate::failure::{Outcome, guarded, guarded_or, released};
use crate::options::Given;
use crate::pass::{Out, Text, given, invalid, list};
use crate::value::Held;

fn opened(
    path: Text<'_>,
    options: Option<&Given>,
    db: Out<'_, Option<Box<Db>>>,
    open: impl FnOnce(&std::path::Path, engine::Options) -> engine::Result<Db>,
) -> Outcome {
    guarded(|| {
        let place = given(db, "the place for the database")?.write(None);
        let options = options.map(|of| of.0.clone()).unwrap_or_default();
        *place = Some(Box::new(open(path.path("the path")?, options)?));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_open(
    path: Text<'_>,
    options: Option<&Given>,
    db: Out<'_, Option<Box<Db>>>,
) -> Outcome {
    opened(path, options, db, |path, options| Db::open(path, options))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_open_or_adopt(
    path: Text<'_>,
    options: Option<&Given>,
    db: Out<'_, Option<Box<Db>>>,
) -> Outcome {
    opened(path, options, db, |path, options| adopt::open(path, options))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_open_read_only(
    path: Text<'_>,
    options: Option<&Given>,
    db: Out<'_, Option<Box<Db>>>,
) -> Outcome {
    opened(path, options, db, |path, options| Db::open_read_only(path, options))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_close(db: Option<Box<Db>>) {
    released(db);
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_default_family(db: Option<&Db>) -> Option<&Family> {
    db.map(|db| &**db)
}

/// Puts a family's handle at its place.
fn found(
    place: Out<'_, Option<Box<Family>>>,
    find: impl FnOnce() -> engine::Result<Option<Family>>,
) -> Outcome {
    guarded(|| {
        let place = given(place, "the place for the family")?.write(None);
        *place = find()?.map(Box::new);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_family_open(
    db: Option<&Db>,
    name: Text<'_>,
    family: Out<'_, Option<Box<Family>>>,
) -> Outcome {
    found(family, || Ok(given(db, "the database")?.family(name.get("the family's name")?)))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_family_open_or_create(
    db: Option<&Db>,
    name: Text<'_>,
    family: Out<'_, Option<Box<Family>>>,
) -> Outcome {
    found(family, || {
        given(db, "the database")?.family_or_create(name.get("the family's name")?).map(Some)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_family_create(
    db: Option<&Db>,
    name: Text<'_>,
    options: Option<&Given>,
    family: Out<'_, Option<Box<Family>>>,
) -> Outcome {
    found(family, || {
        let (db, name) = (given(db, "the database")?, name.get("the family's name")?);
        let options = match options {
            Some(options) => options.0.family_options(name).clone(),
            None => db.options().family_options(name).clone(),
        };
        db.create_family(name, options).map(Some)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_family_drop(db: Option<&Db>, name: Text<'_>) -> Outcome {
    guarded(|| given(db, "the database")?.drop_family(name.get("the family's name")?))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_family_id(family: Option<&Family>) -> u32 {
    guarded_or(0, || family.map_or(0, |family| family.id().0))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_family_free(family: Option<Box<Family>>) {
    released(family);
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_family_names(db: Option<&Db>) -> Option<Box<Held>> {
    guarded_or(None, || db.map(|db| Held::text(db.family_names().join("\n"))))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_latest_sequence(db: Option<&Db>) -> u64 {
    guarded_or(0, || db.map_or(0, Db::latest_sequence))
}

/// Calls `change` with `count` pairs of a name and a value.
fn with_changes(
    names: *const Text<'_>,
    values: *const Text<'_>,
    count: usize,
    change: impl FnOnce(&[(&str, &str)]) -> engine::Result<()>,
) -> Outcome {
    guarded(|| {
        // SAFETY: the header demands `count` texts in both.
        let (names, values) = unsafe { (list(names, count)?, list(values, count)?) };
        let mut pairs = Vec::with_capacity(count);
        for (name, value) in names.iter().zip(values) {
            pairs.push((name.get("an option's name")?, value.get("an option's value")?));
        }
        change(&pairs)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_set_options(
    db: Option<&Db>,
    names: *const Text<'_>,
    values: *const Text<'_>,
    count: usize,
) -> Outcome {
    with_changes(names, values, count, |changes| given(db, "the database")?.set_options(changes))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_set_family_options(
    family: Option<&Family>,
    names: *const Text<'_>,
    values: *const Text<'_>,
    count: usize,
) -> Outcome {
    with_changes(names, values, count, |changes| {
        given(family, "the family")?.set_family_options(changes)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_counter(
    db: Option<&Db>,
    name: Text<'_>,
    value: Out<'_, u64>,
) -> Outcome {
    guarded(|| {
        let place = given(value, "the place for the counter")?.write(0);
        let (db, name) = (given(db, "the database")?, name.get("the counter's name")?);
        let named = |counter: &engine::Counter| counter.name() == name;
        let counter = engine::Counter::ALL.iter().copied().find(named);
        let counter = counter.ok_or_else(|| invalid(format!("no counter {name:?}")))?;
        *place = db.statistics().get(counter);
        Ok(())
    })
}
