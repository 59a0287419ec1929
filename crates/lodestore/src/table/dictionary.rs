//! Dictionaries for Zstandard: what the blocks of a table have in common.
//!
//! blocks held back -> [`Samples::train`] -> the compressor, a section
//! section -> [`Dictionary`], digested once -> every block that is read
//!
//! A dictionary is kept only if it saves more than it takes: on records that
//! have little in common, or in a small table, there is none.

use std::fmt;

use zstd::zstd_safe::DDict;

use super::block_end::BlockEnd;
use super::codec::Compressor;
use super::{Checked, Compression, DICTIONARY_BYTES_MAX, DICTIONARY_BYTES_MIN};

/// A dictionary has at most this part of what it is made of: more would learn
/// the samples by heart.
const SAMPLES_PER_DICTIONARY: usize = 8;

/// Fewer blocks (of large values, say) tell nothing of what blocks have in
/// common.
const SAMPLES_MIN: usize = 8;

/// About what making one takes beside the samples: tables of counts of a fixed
/// size.
pub(super) const TRAINING_BYTES: usize = 12 << 20;

/// A dictionary of an open table.
pub(super) struct Dictionary(DDict<'static>);

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionary").field("memory_bytes", &self.memory_bytes()).finish()
    }
}

impl Dictionary {
    /// Digests a section. Says what is wrong with it.
    pub(super) fn decode(section: &[u8]) -> Checked<Dictionary> {
        if section.is_empty() || section.len() > DICTIONARY_BYTES_MAX {
            return Err("a dictionary of an impossible length");
        }
        DDict::try_create(section).map(Dictionary).ok_or("a malformed dictionary")
    }

    pub(super) fn digested(&self) -> &DDict<'static> {
        &self.0
    }

    /// Memory that it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.0.sizeof()
    }
}

/// A block that waits for the dictionary that it will be compressed with.
#[derive(Debug)]
pub(super) struct HeldBlock {
    pub(super) raw: Vec<u8>,
    pub(super) end: BlockEnd,
}

/// The first blocks of a table.
#[derive(Debug)]
pub(super) struct Samples {
    compression: Compression,
    dictionary_bytes: usize,
    /// So much is enough.
    bytes_max: usize,
    bytes: usize,
    pub(super) blocks: Vec<HeldBlock>,
}

impl Samples {
    pub(super) fn new(
        compression: Compression,
        dictionary_bytes: usize,
        bytes_max: usize,
    ) -> Samples {
        Samples { compression, dictionary_bytes, bytes_max, bytes: 0, blocks: Vec::new() }
    }

    pub(super) fn hold(&mut self, raw: Vec<u8>, end: BlockEnd) {
        self.bytes += raw.len();
        self.blocks.push(HeldBlock { raw, end });
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn are_enough(&self) -> bool {
        self.bytes >= self.bytes_max
    }

    /// The dictionary of these blocks, if one pays.
    pub(super) fn train(&self) -> Option<Vec<u8>> {
        let bytes = self.dictionary_bytes.min(self.bytes / SAMPLES_PER_DICTIONARY);
        if bytes < DICTIONARY_BYTES_MIN || self.blocks.len() < SAMPLES_MIN {
            return None;
        }
        let samples: Vec<&[u8]> = self.blocks.iter().map(|block| &block.raw[..]).collect();
        // Too few samples, or samples that are all alike: no dictionary.
        let dictionary = zstd::dict::from_samples(&samples, bytes).ok()?;
        let without = self.compressed_bytes(None)?;
        let with = self.compressed_bytes(Some(&dictionary))?;
        (with + dictionary.len() < without).then_some(dictionary)
    }

    fn compressed_bytes(&self, dictionary: Option<&[u8]>) -> Option<usize> {
        let mut compressor = Compressor::new(self.compression).ok()?;
        if let Some(dictionary) = dictionary {
            compressor.set_dictionary(dictionary)?;
        }
        Some(self.blocks.iter().map(|block| compressor.stored_bytes(&block.raw)).sum())
    }
}
