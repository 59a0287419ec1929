//! Tables that are ingested into two families at once, beside the writers.

use lodestore::{
    Db, DbCursor, Family, IngestOptions, Options, ReadOptions, Result, SequenceNumber, TableWriter,
    WriteBatch,
};
use testkit::load::Contents;

const NAMES: [&str; 2] = ["left", "right"];
const KEYS: [&[u8]; 3] = [b"a", b"m", b"z"];
/// Written, without a sync, before each call: between the keys of its tables.
const NOISE: &[u8] = b"k";

/// The families that the tables are of.
#[derive(Clone)]
pub struct Pair(pub [Family; 2]);

impl Pair {
    /// The families of `db`, created if they are missing.
    pub fn of(db: &Db, options: &Options) -> Result<Pair> {
        let family = |name: &str| match db.family(name) {
            Some(family) => Ok(family),
            None => db.create_family(name, options.family.clone()),
        };
        Ok(Pair([family(NAMES[0])?, family(NAMES[1])?]))
    }

    /// The last call that is seen, and seen whole: all keys of both families
    /// tell of the same one. `None` before the first.
    pub fn call_at(&self, at: &ReadOptions) -> Result<Option<u64>> {
        let mut numbers = Vec::new();
        for family in &self.0 {
            for key in KEYS {
                numbers.push(family.get_with(at, key)?.map(|value| number(&value)));
            }
        }
        assert!(numbers.iter().all(|n| *n == numbers[0]), "half of a call is seen: {numbers:?}");
        Ok(numbers[0])
    }
}

/// The ways in which a family can be read.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// By `get`.
    Get,
    /// By `multi_get`.
    MultiGet,
    /// By a cursor.
    Cursor,
}

/// A read of one family that has begun.
pub enum Reading {
    /// Its values are there.
    Values(Vec<Option<Vec<u8>>>),
    /// Its state is held.
    Cursor(DbCursor),
}

impl Reading {
    /// Begins to read `family`.
    pub fn begin(family: &Family, way: Way, at: &ReadOptions) -> Result<Reading> {
        let owned = |value: Option<lodestore::Value>| value.map(|value| value.to_vec());
        Ok(match way {
            Way::Get => Reading::Values(vec![family.get_with(at, KEYS[1])?.map(|v| v.to_vec())]),
            Way::MultiGet => {
                let values = family.multi_get_with(at, &KEYS).into_iter();
                Reading::Values(values.map(|value| value.map(owned)).collect::<Result<_>>()?)
            }
            Way::Cursor => Reading::Cursor(family.cursor_with(at.clone())),
        })
    }

    /// The last call that is seen, and seen whole; 0 before the first.
    pub fn call(self) -> Result<u64> {
        let values = match self {
            Reading::Values(values) => values,
            Reading::Cursor(mut cursor) => {
                let mut values = Vec::new();
                cursor.first();
                while cursor.valid() {
                    if cursor.key() != NOISE {
                        values.push(Some(cursor.value().to_vec()));
                    }
                    cursor.next();
                }
                cursor.status()?;
                assert!(values.is_empty() || values.len() == KEYS.len(), "half of a table");
                values
            }
        };
        let numbers: Vec<u64> =
            values.iter().map(|value| value.as_deref().map_or(0, number)).collect();
        assert!(numbers.iter().all(|n| *n == numbers[0]), "half of a table is seen: {numbers:?}");
        Ok(numbers.first().copied().unwrap_or(0))
    }
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

/// Makes call `call`; the number of its last table.
pub fn ingest(db: &Db, pair: &Pair, options: &Options, call: u64) -> Result<SequenceNumber> {
    let mut noise = WriteBatch::new();
    noise.put_in(&pair.0[(call % 2) as usize], NOISE, &call.to_le_bytes());
    db.write(noise)?;
    let mut tables = Vec::new();
    for (family, name) in pair.0.iter().zip(NAMES) {
        let path = format!("/{name}-{call}.table");
        // Of an earlier attempt, which a crash ended.
        let _ = options.fs.remove(std::path::Path::new(&path));
        let mut writer = TableWriter::create(&path, options, &options.family)?;
        for key in KEYS {
            writer.put(key, &call.to_le_bytes())?;
        }
        writer.finish()?;
        tables.push((family, path));
    }
    let how = IngestOptions { move_files: call % 2 == 0, ..IngestOptions::default() };
    Ok(db.ingest_together(&tables, &how)?.tables[1].sequence)
}

/// Judges what was found after a crash: calls are whole, in order, and those
/// that were acknowledged are there, with what was written before them. How
/// many are there.
pub fn judge(found: &Contents, acknowledged: u64) -> u64 {
    let Some(families) = NAMES.iter().map(|name| found.get(*name)).collect::<Option<Vec<_>>>()
    else {
        assert_eq!(acknowledged, 0, "the families are gone");
        return 0;
    };
    let value = |family: usize, key: &[u8]| families[family].get(key).map_or(0, |v| number(v));
    let kept = value(0, KEYS[0]);
    for family in [0, 1] {
        for key in KEYS {
            assert_eq!(value(family, key), kept, "half of a call is left");
        }
    }
    assert!(kept >= acknowledged, "{acknowledged} calls were acknowledged, {kept} are left");
    let noise = value(0, NOISE).max(value(1, NOISE));
    assert!(noise >= kept, "a write before call {kept} is lost");
    kept
}
