//! What came of a repair.

use crate::key::SequenceNumber;

/// What a damaged database holds, and what it has lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// What is wrong with the manifest; `None` if it says which files count.
    pub manifest: Option<String>,
    /// Names of the families.
    pub families: Vec<String>,
    /// Tables that are sound.
    pub tables: u64,
    /// Tables of which a part was recovered, or all of the entries.
    pub tables_rewritten: u64,
    /// Entries of the log that no table holds yet.
    pub log_entries: u64,
    /// What could not be recovered.
    pub losses: Vec<Loss>,
    /// What else is not as it was, or cannot be known.
    pub notes: Vec<String>,
}

/// Something that could not be recovered: in a range of keys entries may be
/// missing, so that keys are absent or have older values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The file's name.
    pub file: String,
    /// What happened to it.
    pub what: String,
    /// The family concerned; `None` if it may be any.
    pub family: Option<String>,
    /// The first key that may be concerned; `None`: there is no bound.
    pub from: Option<Vec<u8>>,
    /// The last one.
    pub to: Option<Vec<u8>>,
    /// Of the log: the numbers that the lost entries have, if they are in
    /// between; without an end, up to the newest that were written.
    pub sequences: Option<(SequenceNumber, Option<SequenceNumber>)>,
    /// True if deletes may be among what was lost: what they deleted may be
    /// back.
    pub deletes: bool,
}

impl Loss {
    /// True if the loss may concern `key` of `family`, in bytewise order.
    pub fn may_concern(&self, family: &str, key: &[u8]) -> bool {
        self.family.as_ref().is_none_or(|name| name == family)
            && self.from.as_ref().is_none_or(|from| &from[..] <= key)
            && self.to.as_ref().is_none_or(|to| key <= &to[..])
    }
}
