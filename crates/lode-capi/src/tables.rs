//! Tables that are written outside of a database, and taken in.

use std::path::Path;

use engine::{Family, TableWriter};

use crate::failure::{Outcome, guarded, released};
use crate::options::{Given, GivenIngest, ingest_options};
use crate::pass::{Bytes, Out, Text, given, invalid, list};

/// `lodestore_table_writer`; without a writer once it is finished.
pub struct Writing(Option<TableWriter>);

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_table_writer_create(
    path: Text<'_>,
    options: Option<&Given>,
    family: Text<'_>,
    writer: Out<'_, Option<Box<Writing>>>,
) -> Outcome {
    guarded(|| {
        let place = given(writer, "the place for the writer")?.write(None);
        let options = options.map(|of| of.0.clone()).unwrap_or_default();
        let of_family = match family.is_null() {
            true => &options.family,
            false => options.family_options(family.get("the family's name")?),
        };
        let made = TableWriter::create(path.path("the path")?, &options, of_family)?;
        *place = Some(Box::new(Writing(Some(made))));
        Ok(())
    })
}

fn added(
    writer: Option<&mut Writing>,
    add: impl FnOnce(&mut TableWriter) -> engine::Result<()>,
) -> Outcome {
    guarded(|| {
        let writer = given(writer, "the writer")?.0.as_mut();
        add(writer.ok_or_else(|| invalid("the table is finished".to_string()))?)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_table_writer_put(
    writer: Option<&mut Writing>,
    key: Bytes<'_>,
    value: Bytes<'_>,
) -> Outcome {
    added(writer, |writer| writer.put(key.get()?, value.get()?))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_table_writer_delete(
    writer: Option<&mut Writing>,
    key: Bytes<'_>,
) -> Outcome {
    added(writer, |writer| writer.delete(key.get()?))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_table_writer_merge(
    writer: Option<&mut Writing>,
    key: Bytes<'_>,
    operand: Bytes<'_>,
) -> Outcome {
    added(writer, |writer| writer.merge(key.get()?, operand.get()?))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_table_writer_delete_range(
    writer: Option<&mut Writing>,
    begin: Bytes<'_>,
    end: Bytes<'_>,
) -> Outcome {
    added(writer, |writer| writer.delete_range(begin.get()?, end.get()?))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_table_writer_finish(writer: Option<&mut Writing>) -> Outcome {
    guarded(|| {
        let writer = given(writer, "the writer")?.0.take();
        let writer = writer.ok_or_else(|| invalid("the table is finished".to_string()))?;
        writer.finish().map(drop)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_table_writer_free(writer: Option<Box<Writing>>) {
    released(writer);
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_ingest(
    family: Option<&Family>,
    paths: *const Text<'_>,
    count: usize,
    options: Option<&GivenIngest>,
) -> Outcome {
    guarded(|| {
        let family = given(family, "the family")?;
        // SAFETY: the header demands `count` texts.
        let paths = unsafe { list(paths, count) }?;
        let paths = paths.iter().map(|path| path.path("a path"));
        let paths = paths.collect::<engine::Result<Vec<&Path>>>()?;
        family.ingest(&paths, &ingest_options(options)).map(drop)
    })
}
