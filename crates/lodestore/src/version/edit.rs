//! One change of what the database consists of.
//!
//! | tag | must be understood | body |
//! |---|---|---|
//! | 1 | yes | next file number: varint |
//! | 2 | yes | last sequence number: varint |
//! | 3 | yes | next family id: varint |
//! | 4 | yes | a family's oldest log in use: family, log number (varints) |
//! | 5 | yes | a family created: the fields below |
//! | 6 | yes | a family dropped: family (varint) |
//! | 7 | yes | a table added: family, level (varints), the table's fields |
//! | 8 | yes | a table deleted: family, level, number (varints) |
//! | 10 | yes | the newest log that was synced: number, durable bytes (varints) |
//!
//! A family's fields:
//!
//! | tag | must be understood | body |
//! |---|---|---|
//! | 1 | yes | id: varint |
//! | 2 | yes | name: UTF-8 |
//! | 3 | yes | name of the comparator: UTF-8 |
//! | 4 | yes | name of the merge operator: UTF-8, if it has one |
//! | 5 | no | name of the prefix extractor: UTF-8, if it has one |
//!
//! Whatever the order of the fields, an edit means: families are created,
//! then tables deleted, then tables added, then families dropped.

use crate::coding::{Reader, put_varint};
use crate::error::Undecodable;
use crate::key::SequenceNumber;
use crate::table::meta::TableMeta;
use crate::version::field::{
    Fields, corrupt, keep_unknown, number, optional, put_bytes, put_number, required, set_once,
    skip_unknown, text,
};
use crate::version::levels::LEVELS;
use crate::version::table_field;
use crate::wal::DurableLog;

const NEXT_FILE: u64 = required(1);
const LAST_SEQUENCE: u64 = required(2);
const NEXT_FAMILY: u64 = required(3);
const LOG_NUMBER: u64 = required(4);
const FAMILY_CREATED: u64 = required(5);
const FAMILY_DROPPED: u64 = required(6);
const TABLE_ADDED: u64 = required(7);
const TABLE_DELETED: u64 = required(8);
const DURABLE_LOG: u64 = required(10);

const FAMILY_ID: u64 = required(1);
const FAMILY_NAME: u64 = required(2);
const FAMILY_COMPARATOR: u64 = required(3);
const FAMILY_MERGE_OPERATOR: u64 = required(4);
const FAMILY_PREFIX_EXTRACTOR: u64 = optional(5);

/// What the database knows of a family for ever.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FamilyDescriptor {
    /// Never given to another family of this database.
    pub(crate) id: u32,
    pub(crate) name: String,
    /// The name of its order of keys.
    pub(crate) comparator: String,
    /// The name of its merge operator.
    pub(crate) merge_operator: Option<String>,
    /// The name of what maps its keys to prefixes.
    pub(crate) prefix_extractor: Option<String>,
    /// Fields of later builds that need not be known here, as they are stored.
    pub(crate) unknown: Vec<u8>,
}

/// One change. What is `None` or empty stays as it was.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct VersionEdit {
    /// Every file number from here on is free.
    pub(crate) next_file_number: Option<u64>,
    /// A sequence number that is not below any that was given out to data in
    /// the tables.
    pub(crate) last_sequence: Option<SequenceNumber>,
    /// Every family id from here on is free.
    pub(crate) next_family_id: Option<u32>,
    /// (family, log): logs below this number hold nothing of this family that
    /// is not in its tables.
    pub(crate) log_numbers: Vec<(u32, u64)>,
    pub(crate) families_created: Vec<FamilyDescriptor>,
    pub(crate) families_dropped: Vec<u32>,
    /// (family, level, table).
    pub(crate) tables_added: Vec<(u32, usize, TableMeta)>,
    /// (family, level, number).
    pub(crate) tables_deleted: Vec<(u32, usize, u64)>,
    /// The newest log that was synced, and how far.
    pub(crate) durable_log: Option<DurableLog>,
}

impl VersionEdit {
    /// Appends the edit's bytes.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        if let Some(number) = self.next_file_number {
            put_number(out, NEXT_FILE, number);
        }
        if let Some(sequence) = self.last_sequence {
            put_number(out, LAST_SEQUENCE, sequence);
        }
        if let Some(id) = self.next_family_id {
            put_number(out, NEXT_FAMILY, u64::from(id));
        }
        let mut body = Vec::new();
        let mut put = |tag, fill: &dyn Fn(&mut Vec<u8>)| {
            body.clear();
            fill(&mut body);
            put_bytes(out, tag, &body);
        };
        for family in &self.families_created {
            put(FAMILY_CREATED, &|body| family.encode(body));
        }
        for &(family, log) in &self.log_numbers {
            put(LOG_NUMBER, &|body| put_varints(body, &[u64::from(family), log]));
        }
        for &(family, level, number) in &self.tables_deleted {
            let numbers = [u64::from(family), level as u64, number];
            put(TABLE_DELETED, &|body| put_varints(body, &numbers));
        }
        for (family, level, meta) in &self.tables_added {
            put(TABLE_ADDED, &|body| {
                put_varints(body, &[u64::from(*family), *level as u64]);
                table_field::encode(meta, body);
            });
        }
        if let Some(DurableLog { number, bytes }) = self.durable_log {
            put(DURABLE_LOG, &|body| put_varints(body, &[number, bytes]));
        }
        for &family in &self.families_dropped {
            put(FAMILY_DROPPED, &|body| put_varints(body, &[u64::from(family)]));
        }
    }

    /// The edit that `bytes` are.
    pub(crate) fn decode(bytes: &[u8]) -> Result<VersionEdit, Undecodable> {
        let mut edit = VersionEdit::default();
        for field in Fields::new(bytes) {
            let (tag, body) = field?;
            edit.take(tag, body)?;
        }
        Ok(edit)
    }

    fn take(&mut self, tag: u64, body: &[u8]) -> Result<(), Undecodable> {
        let mut rest = Reader::new(body);
        match tag {
            NEXT_FILE => {
                let next = number(body, "the next file number")?;
                set_once(&mut self.next_file_number, next, "the next file number")?;
            }
            LAST_SEQUENCE => {
                let last = table_field::sequence(body)?;
                set_once(&mut self.last_sequence, last, "the last sequence number")?;
            }
            NEXT_FAMILY => {
                let next = family_id(&mut rest)?;
                set_once(&mut self.next_family_id, next, "the next family id")?;
            }
            LOG_NUMBER => self.log_numbers.push((family_id(&mut rest)?, varint(&mut rest)?)),
            FAMILY_CREATED => self.families_created.push(FamilyDescriptor::decode(body)?),
            FAMILY_DROPPED => self.families_dropped.push(family_id(&mut rest)?),
            TABLE_ADDED => {
                let (family, level) = (family_id(&mut rest)?, level(&mut rest)?);
                self.tables_added.push((family, level, table_field::decode(rest.rest())?));
                return Ok(());
            }
            TABLE_DELETED => {
                let (family, level) = (family_id(&mut rest)?, level(&mut rest)?);
                self.tables_deleted.push((family, level, varint(&mut rest)?));
            }
            DURABLE_LOG => {
                let log = DurableLog { number: varint(&mut rest)?, bytes: varint(&mut rest)? };
                set_once(&mut self.durable_log, log, "the newest synced log")?;
            }
            unknown => return skip_unknown(unknown, "an edit"),
        }
        let counted_body = !matches!(tag, NEXT_FILE | LAST_SEQUENCE | FAMILY_CREATED);
        if counted_body && !rest.is_empty() {
            return Err(corrupt(format!("field {} of an edit is too long", tag >> 1)));
        }
        Ok(())
    }
}

impl FamilyDescriptor {
    fn encode(&self, out: &mut Vec<u8>) {
        put_number(out, FAMILY_ID, u64::from(self.id));
        put_bytes(out, FAMILY_NAME, self.name.as_bytes());
        put_bytes(out, FAMILY_COMPARATOR, self.comparator.as_bytes());
        if let Some(name) = &self.merge_operator {
            put_bytes(out, FAMILY_MERGE_OPERATOR, name.as_bytes());
        }
        if let Some(name) = &self.prefix_extractor {
            put_bytes(out, FAMILY_PREFIX_EXTRACTOR, name.as_bytes());
        }
        out.extend_from_slice(&self.unknown);
    }

    fn decode(bytes: &[u8]) -> Result<FamilyDescriptor, Undecodable> {
        let mut family = FamilyDescriptor::default();
        let (mut id, mut name, mut comparator) = (None, None, None);
        for field in Fields::new(bytes) {
            let (tag, body) = field?;
            match tag {
                FAMILY_ID => set_once(&mut id, whole_u32(body)?, "a family's id")?,
                FAMILY_NAME => set_once(&mut name, text(body, "a family's name")?, "name")?,
                FAMILY_COMPARATOR => {
                    set_once(&mut comparator, text(body, "a comparator's name")?, "comparator")?;
                }
                FAMILY_MERGE_OPERATOR => {
                    family.merge_operator = Some(text(body, "a merge operator's name")?);
                }
                FAMILY_PREFIX_EXTRACTOR => {
                    family.prefix_extractor = Some(text(body, "a prefix extractor's name")?);
                }
                unknown => keep_unknown(unknown, body, "a family", &mut family.unknown)?,
            }
        }
        let missing = |what| move || corrupt(format!("a family without {what}"));
        family.id = id.ok_or_else(missing("id"))?;
        family.name = name.ok_or_else(missing("name"))?;
        family.comparator = comparator.ok_or_else(missing("comparator"))?;
        Ok(family)
    }
}

fn put_varints(out: &mut Vec<u8>, values: &[u64]) {
    for &value in values {
        put_varint(out, value);
    }
}

fn varint(rest: &mut Reader<'_>) -> Result<u64, Undecodable> {
    rest.varint().ok_or_else(|| corrupt("a number in an edit ends early"))
}

fn family_id(rest: &mut Reader<'_>) -> Result<u32, Undecodable> {
    let id = varint(rest)?;
    u32::try_from(id).map_err(|_| corrupt(format!("family id {id} is too large")))
}

fn whole_u32(body: &[u8]) -> Result<u32, Undecodable> {
    let value = number(body, "a field of a family")?;
    u32::try_from(value).map_err(|_| corrupt(format!("{value} in a family is too large")))
}

/// A level that this build has.
fn level(rest: &mut Reader<'_>) -> Result<usize, Undecodable> {
    let level = varint(rest)?;
    match usize::try_from(level) {
        Ok(known) if known < LEVELS => Ok(known),
        _ => Err(Undecodable::Unknown(format!("level {level} of {LEVELS} levels"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field of a later build.
    fn hint(number: u64) -> Vec<u8> {
        let mut field = Vec::new();
        put_bytes(&mut field, optional(number), b"hint");
        field
    }

    fn full() -> VersionEdit {
        let family = FamilyDescriptor {
            id: u32::MAX,
            name: "größe".into(),
            comparator: "c".into(),
            merge_operator: Some("m".into()),
            prefix_extractor: Some(String::new()),
            unknown: hint(77),
        };
        let plain = FamilyDescriptor { comparator: "c".into(), ..FamilyDescriptor::default() };
        VersionEdit {
            durable_log: Some(DurableLog { number: 9, bytes: u64::MAX }),
            next_file_number: Some(u64::MAX),
            last_sequence: Some(0),
            next_family_id: Some(3),
            log_numbers: vec![(0, 7), (u32::MAX, 0)],
            families_created: vec![family, plain],
            families_dropped: vec![5],
            tables_added: vec![(0, 6, TableMeta { number: 4, ..TableMeta::default() })],
            tables_deleted: vec![(0, 5, 4), (1, 0, u64::MAX)],
        }
    }

    /// What is written is what is read, for everything that an edit can say.
    #[test]
    fn every_part_of_an_edit_survives() {
        for edit in [full(), VersionEdit::default()] {
            let mut bytes = Vec::new();
            edit.encode(&mut bytes);
            assert_eq!(VersionEdit::decode(&bytes), Ok(edit));
        }
    }

    /// A later program's edit: what may be skipped is, the rest is refused.
    #[test]
    fn fields_of_later_programs_are_skipped_or_refused() {
        let mut bytes = Vec::new();
        full().encode(&mut bytes);
        bytes.extend(hint(1_000));
        assert_eq!(VersionEdit::decode(&bytes), Ok(full()));
        put_bytes(&mut bytes, required(1_001), b"law");
        assert!(matches!(VersionEdit::decode(&bytes), Err(Undecodable::Unknown(_))));
        let mut family = Vec::new();
        full().families_created[0].encode(&mut family);
        put_number(&mut family, required(6), 8);
        let timestamps = FamilyDescriptor::decode(&family);
        assert!(matches!(timestamps, Err(Undecodable::Unknown(_))), "{timestamps:?}");
    }

    /// Deeper levels are a later program's, not damage.
    #[test]
    fn levels_that_are_not_known_are_refused_as_such() {
        for (level, is_known) in [(LEVELS as u8 - 1, true), (LEVELS as u8, false), (100, false)] {
            let mut bytes = Vec::new();
            put_bytes(&mut bytes, TABLE_DELETED, &[0, level, 2]);
            match VersionEdit::decode(&bytes) {
                Ok(_) => assert!(is_known, "{level}"),
                Err(Undecodable::Unknown(what)) if !is_known => assert!(what.contains("level")),
                other => panic!("level {level}: {other:?}"),
            }
        }
    }

    /// Hostile bytes give an error or an edit; they never panic or allocate
    /// what a length field claims.
    #[test]
    fn changed_bytes_never_panic() {
        let mut bytes = Vec::new();
        full().encode(&mut bytes);
        for place in 0..bytes.len() {
            for flip in [1, 0x40, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[place] ^= flip;
                let _ = VersionEdit::decode(&changed);
            }
            let _ = VersionEdit::decode(&bytes[..place]);
        }
    }

    /// A body with bytes behind its last number is not what we write.
    #[test]
    fn a_body_that_is_too_long_is_corrupt() {
        let mut bytes = Vec::new();
        put_bytes(&mut bytes, TABLE_DELETED, &[0, 1, 2]);
        assert!(VersionEdit::decode(&bytes).is_ok());
        bytes.clear();
        put_bytes(&mut bytes, TABLE_DELETED, &[0, 1, 2, 3]);
        assert!(matches!(VersionEdit::decode(&bytes), Err(Undecodable::Corrupt(_))));
    }
}
