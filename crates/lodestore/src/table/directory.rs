//! Where the blocks of an open table are, and which keys it certainly lacks:
//! wholly resident, or in partitions that are read like blocks.

use std::path::Path;

use crate::error::{Error, Result};
use crate::fs::ReadableFile;
use crate::key::{FileId, KeyOrder};
use crate::leveldb::filter::Filters;

use super::Checked;
use super::filter::Filter;
use super::format::{self, Footer, HEADER_BYTES, Section, tag};
use super::index::Index;
use super::meta::TableMeta;
use super::partitions::Partitions;
use super::properties::Properties;
use super::reader::BlockIndex;

#[derive(Debug)]
pub(super) enum Directory {
    Resident {
        index: Index,
        filter: Option<Filter>,
    },
    Partitioned(Partitions),
    /// Of a LevelDB table: a filter for each block, if any.
    Foreign {
        index: Index,
        filters: Option<Filters>,
    },
}

/// A table's file that is being opened, and what is known of it.
pub(super) struct Source<'a> {
    pub(super) file: &'a dyn ReadableFile,
    pub(super) path: &'a Path,
    pub(super) id: FileId,
    pub(super) footer: &'a Footer,
}

impl Source<'_> {
    /// A section that must be there.
    pub(super) fn section(&self, tag: u32) -> Result<&Section> {
        let missing = || format!("section {tag} is missing");
        let section = self.footer.section(tag);
        section.ok_or_else(|| Error::corruption(self.path, self.footer.offset, missing()))
    }

    pub(super) fn read(&self, section: &Section) -> Result<Vec<u8>> {
        format::read_section(self.file, section, self.id, self.path)
    }
}

impl Directory {
    /// Loads what stays resident. A damaged filter is left out.
    ///
    /// # Errors
    /// `Corruption` if it contradicts itself or what else is known.
    pub(super) fn load(
        source: &Source<'_>,
        properties: &Properties,
        meta: &TableMeta,
        order: &KeyOrder,
    ) -> Result<Directory> {
        let (directory, section) = match source.footer.section(tag::PARTITIONS) {
            Some(section) => (load_partitions(source, section, order)?, section),
            None => (load_resident(source, order)?, source.section(tag::INDEX)?),
        };
        check(&directory, source.footer, properties, meta)
            .map_err(|what| Error::corruption(source.path, section.offset, what))?;
        Ok(directory)
    }

    /// Blocks of entries.
    #[inline]
    pub(super) fn blocks(&self) -> BlockIndex {
        match self {
            Directory::Resident { index, .. } | Directory::Foreign { index, .. } => {
                index.blocks() as BlockIndex
            }
            Directory::Partitioned(partitions) => partitions.blocks(),
        }
    }

    /// Where the last block of entries ends.
    pub(super) fn data_end(&self) -> u64 {
        match self {
            Directory::Resident { index, .. } | Directory::Foreign { index, .. } => {
                index.block_offset(index.blocks())
            }
            Directory::Partitioned(partitions) => partitions.data_end(),
        }
    }

    /// Where the last block of any kind ends.
    pub(super) fn end(&self) -> u64 {
        match self {
            Directory::Resident { .. } | Directory::Foreign { .. } => self.data_end(),
            Directory::Partitioned(partitions) => partitions.end(),
        }
    }

    /// Memory that is always taken.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Directory::Resident { index, filter } => {
                index.memory_bytes() + filter.as_ref().map_or(0, Filter::memory_bytes)
            }
            Directory::Partitioned(partitions) => partitions.memory_bytes(),
            Directory::Foreign { index, filters } => {
                index.memory_bytes() + filters.as_ref().map_or(0, Filters::memory_bytes)
            }
        }
    }

    fn has_straddlers(&self) -> bool {
        match self {
            Directory::Resident { index, .. } | Directory::Foreign { index, .. } => {
                index.has_straddlers()
            }
            Directory::Partitioned(partitions) => partitions.has_straddlers(),
        }
    }
}

fn load_resident(source: &Source<'_>, order: &KeyOrder) -> Result<Directory> {
    let section = source.section(tag::INDEX)?;
    let index = Index::decode(&source.read(section)?, order)
        .map_err(|undecodable| undecodable.at(source.path, section.offset))?;
    Ok(Directory::Resident { index, filter: load_filter(source, order)? })
}

/// The filter, if there is a sound one that may be asked.
fn load_filter(source: &Source<'_>, order: &KeyOrder) -> Result<Option<Filter>> {
    let section = source.footer.section(tag::FILTER);
    let Some(section) = section.filter(|_| order.equal_means_identical()) else {
        return Ok(None);
    };
    match source.read(section) {
        Ok(bytes) => Ok(Filter::decode(&bytes)),
        Err(error) if error.is_corruption() => Ok(None),
        Err(error) => Err(error),
    }
}

fn load_partitions(source: &Source<'_>, section: &Section, order: &KeyOrder) -> Result<Directory> {
    let end = source.footer.sections.iter().map(|section| section.offset).min();
    let bytes = source.read(section)?;
    let partitions = Partitions::decode(&bytes, order, end.unwrap_or(0));
    partitions
        .map(Directory::Partitioned)
        .map_err(|undecodable| undecodable.at(source.path, section.offset))
}

fn check(
    directory: &Directory,
    footer: &Footer,
    properties: &Properties,
    meta: &TableMeta,
) -> Checked<()> {
    if let Directory::Resident { index, .. } = directory
        && index.block_offset(0) != HEADER_BYTES as u64
    {
        return Err("the first block does not follow the header");
    }
    if footer.sections.iter().any(|section| directory.end() > section.offset) {
        return Err("the last block overlaps a section");
    }
    let blocks = directory.blocks();
    if u64::from(blocks) != properties.blocks || blocks == BlockIndex::MAX {
        return Err("the index has another number of blocks than the table");
    }
    if meta.sequence_override.is_some() && directory.has_straddlers() {
        return Err("a table with one sequence number has a key twice");
    }
    Ok(())
}
