//! What a table says of itself, for tables that no manifest describes.

use std::path::Path;

use crate::error::{Error, Result};
use crate::fs::ReadableFile;

use super::TableFamily;
use super::format::{self, Footer, tag};
use super::meta::{TableFormat, TableMeta};
use super::properties::Properties;
use super::reader::check_header;

/// A table by its own account.
#[derive(Clone, Debug)]
pub(crate) struct Description {
    footer: Footer,
    /// Without number and creation time.
    pub(crate) meta: TableMeta,
    /// The name of the order of its keys.
    pub(crate) order_name: String,
    /// The family that it was written for, if it says so.
    pub(crate) family: Option<TableFamily>,
    /// Whose prefixes its filter knows.
    pub(crate) prefix_extractor: Option<String>,
}

impl Description {
    /// # Errors
    /// `Incompatible` if this build may read the table but not rewrite it.
    pub(crate) fn check_rewritable(&self, path: &Path) -> Result<()> {
        self.footer.features.check_writable(path)
    }
}

/// Reads header, footer and properties of `file`; `path` is named in errors.
///
/// # Errors
/// `Corruption` if it is no table or not the whole of one, `Incompatible` if
/// another build wrote it and this one cannot read it.
pub(crate) fn describe(file: &dyn ReadableFile, path: &Path) -> Result<Description> {
    let bytes = file.length().map_err(|error| Error::io(path, "read length of", error))?;
    let footer = Footer::read(file, bytes, path)?;
    check_header(file, footer.id, path)?;
    let missing = || Error::corruption(path, footer.offset, "the properties are missing");
    let section = footer.section(tag::PROPERTIES).ok_or_else(missing)?;
    let stored = format::read_section(file, section, footer.id, path)?;
    let stated = Properties::decode(&stored, section.offset, path)?;
    let meta = meta(&footer, bytes, &stated);
    let Properties { order_name, family, prefix_extractor, .. } = stated;
    Ok(Description { footer, meta, order_name, family, prefix_extractor })
}

/// What a manifest says of a table of `bytes` bytes, without number and time
/// of creation.
pub(super) fn meta(footer: &Footer, bytes: u64, stated: &Properties) -> TableMeta {
    TableMeta {
        id: footer.id,
        bytes,
        checksum: footer.witness,
        format: TableFormat::Native,
        smallest: stated.smallest.clone(),
        largest: stated.largest.clone(),
        sequence_min: stated.sequence_min,
        sequence_max: stated.sequence_max,
        entries: stated.entries,
        tombstones: stated.tombstones,
        range_tombstones: stated.range_deletes,
        key_bytes: stated.key_bytes,
        value_bytes: stated.value_bytes,
        ..TableMeta::default()
    }
}
