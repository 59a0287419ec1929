//! The list of all options that can be text: parsing, printing, changing an
//! open database and the table in the guide go by it, so that they agree.
//!
//! A field that is not listed here does not compile.

use crate::error::{Error, Result};

use super::kind::{Count, Interval, List, Maybe, Name, Seconds, Size, Switch, Text, Unit};
use super::nearest::nearest;
use super::{FamilyOptions, Options};

/// An option, as users know it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OptionInfo {
    /// The field's name.
    pub name: &'static str,
    /// In what it is given; empty for a plain number.
    pub unit: &'static str,
    /// Its default, as text.
    pub default: String,
    /// When a change of an open database takes effect; `None` if it is fixed
    /// while the database is open.
    pub live: Option<&'static str>,
    /// What it does.
    pub about: &'static str,
}

/// An option of `T`.
pub(super) struct Descriptor<T> {
    pub(super) name: &'static str,
    unit: &'static str,
    live: Option<&'static str>,
    about: &'static str,
    parse_into: fn(&mut T, &str) -> std::result::Result<(), String>,
    /// `None` if the value cannot be text.
    pub(super) print: fn(&T) -> Option<String>,
}

macro_rules! catalogue {
    (
        $owner:ident, $list:ident, not text: ($($other:ident)*);
        $($name:ident: $kind:ty, $live:expr, $about:literal;)+
    ) => {
        const $list: &[Descriptor<$owner>] = &[$(Descriptor {
            name: stringify!($name),
            unit: <$kind as Unit>::UNIT,
            live: $live,
            about: $about,
            parse_into: |options, text| {
                options.$name = <$kind as Text<_>>::parse(text)?;
                Ok(())
            },
            print: |options| <$kind as Text<_>>::print(&options.$name),
        },)+];

        /// Every field is in the list, or said to be no text.
        const _: fn($owner) = |options| {
            let $owner { $($name: _,)+ $($other: _,)* } = options;
        };

        impl Catalogued for $owner {
            const ALL: &'static [Descriptor<$owner>] = $list;
        }
    };
}

const AT_ONCE: Option<&str> = Some("at once");
const NEXT_WRITE: Option<&str> = Some("next write");
const NEXT_TABLE: Option<&str> = Some("next table");
const NEXT_PICK: Option<&str> = Some("next choice of a compaction");
const FIXED: Option<&str> = None;

catalogue! {
    Options, DATABASE,
    not text: (fs scheduler budget rate_limiter cache statistics listener family families);
    create_if_missing: Switch, FIXED, "Create the database if there is none.";
    error_if_exists: Switch, FIXED, "Refuse to open a database that exists.";
    open_files_max: Maybe<Count>, AT_ONCE,
        "Files that may be open for reading at once. Default: what the process may open.";
    background_threads: Count, FIXED, "Threads for compactions; one more flushes.";
    memory_bytes: Maybe<Size>, AT_ONCE,
        "One limit on memtables, cache, indexes, filters and buffers. Default: none.";
    background_bytes_per_second: Size, AT_ONCE,
        "What flushes and compactions may write to tables a second; 0: as much as they can.";
    cache_bytes: Size, AT_ONCE, "The block cache, if there is no limit on memory.";
    row_cache_bytes: Size, AT_ONCE,
        "A cache of single rows, for reads that come back to keys without neighbours; 0: none.";
    latencies: Switch, FIXED, "Time operations; the frequent ones by sample.";
    status_interval: Maybe<Interval>, AT_ONCE,
        "How often the database tells other processes how it is, for `lode top`. Default: never.";
    logging: Switch, FIXED, "Keep a write-ahead log.";
    log_mapped: Switch, FIXED,
        "Write the log through a mapping where that is safe; `no`: one `write(2)` a commit group.";
    direct_reads: Switch, FIXED,
        "Read tables past the page cache, many blocks at once: for far more data than memory.";
    mapped_bytes_max: Size, FIXED,
        "Tables of so many bytes in all are mapped: what the page cache has is read without a call.";
    preload_tables: Switch, FIXED,
        "Read indexes and filters when the database is opened and tables are made, not at a table's first use.";
    log_bytes_max: Size, NEXT_WRITE,
        "Families that hold old log segments back are flushed once these together exceed this.";
}

catalogue! {
    FamilyOptions, FAMILY, not text: ();
    order: Name, FIXED, "The order of keys: `leveldb.BytewiseComparator`, `idb_cmp1` (Chrome's IndexedDB), or one of \
         your own, which is given in code.";
    merge_operator: Maybe<Name>, FIXED,
        "How operands become values. Default: as stored. One of your own is given in code.";
    prefix_extractor: Maybe<Name>, FIXED,
        "What filters know of keys besides the keys: `none`, `fixed:BYTES`, `capped:BYTES`, \
         `delimiter:0xHH`. Default: as stored.";
    memtable_bytes: Size, NEXT_WRITE, "A memtable of this size is sealed and flushed.";
    sealed_memtables_max: Count, AT_ONCE, "Sealed memtables that may wait for their flush.";
    block_bytes: Size, NEXT_TABLE, "Blocks are closed at this size, before compression.";
    compression: Name, NEXT_TABLE,
        "How blocks are compressed: `none`, `snappy`, `lz4`, `zstd:LEVEL`.";
    compression_by_level: List, NEXT_TABLE,
        "The same by level, where that says something else: level 0, the first level in use \
         after it, and so on.";
    compression_bottommost: Maybe<Name>, NEXT_TABLE,
        "The same for the deepest level, whatever the others say. Default: no difference.";
    dictionary_bytes: Size, NEXT_TABLE,
        "A Zstandard dictionary that compactions make for a table has at most this; 0: none.";
    dictionary_training_bytes: Size, NEXT_TABLE,
        "The beginning of a table that its dictionary is made of.";
    filter_bits_per_key: Count, NEXT_TABLE,
        "Filter bits for each key, six more in a small table above older ones; 0: no filter.";
    filter_bits_per_key_bottommost: Maybe<Count>, NEXT_TABLE,
        "The same for the deepest level; 0 where nearly all keys that are looked up exist. \
         Default: no difference.";
    partition_bytes: Maybe<Size>, NEXT_TABLE,
        "Index and filter of a table are divided into parts of this size. Default: 4096 under \
         a limit on memory, else they are not.";
    table_bytes: Size, NEXT_TABLE, "Compactions close a table at this size.";
    level0_compaction_files: Count, NEXT_PICK, "Level-0 tables that start a compaction; half where little is below.";
    level0_slowdown_files: Count, AT_ONCE, "Level-0 tables beyond which writers are paced.";
    level0_stop_files: Count, AT_ONCE, "Level-0 tables at which writers wait.";
    debt_slowdown_bytes: Size, AT_ONCE,
        "Bytes that compactions have yet to read and write beyond which writers are paced.";
    debt_stop_bytes: Size, AT_ONCE, "The same, at which writers wait.";
    level1_bytes: Size, NEXT_PICK, "Target size of the first level below level 0.";
    level_multiplier: Count, NEXT_PICK, "How many times larger each further level is.";
    tombstone_percent: Count, NEXT_PICK,
        "Tables of which this part is tombstones are compacted; 0: not because of that.";
    tombstone_age_seconds: Seconds, NEXT_PICK,
        "So are tables whose tombstones may be as old as this; 0: not because of that.";
}

/// Options that are in a list.
pub(super) trait Catalogued: Clone + Default + 'static {
    const ALL: &'static [Descriptor<Self>];
}

/// What users are told of the options of `T`.
pub(super) fn infos<T: Catalogued>() -> Vec<OptionInfo> {
    let info = |descriptor: &Descriptor<T>| OptionInfo {
        name: descriptor.name,
        unit: descriptor.unit,
        default: (descriptor.print)(&T::default()).expect("every default can be text"),
        live: descriptor.live,
        about: descriptor.about,
    };
    T::ALL.iter().map(info).collect()
}

fn find<T: Catalogued>(name: &str) -> Option<&'static Descriptor<T>> {
    T::ALL.iter().find(|descriptor| descriptor.name == name)
}

/// Sets one option; says what is wrong.
pub(super) fn set<T: Catalogued>(
    options: &mut T,
    name: &str,
    text: &str,
) -> std::result::Result<(), String> {
    let descriptor = find::<T>(name).ok_or_else(|| unknown::<T>(name))?;
    (descriptor.parse_into)(options, text).map_err(|what| format!("{name}: {what}"))
}

/// What to say of a name that is no option of `T`.
fn unknown<T: Catalogued>(name: &str) -> String {
    if find::<Options>(name).is_some() {
        return format!("{name} is an option of the database, not of a family");
    }
    if find::<FamilyOptions>(name).is_some() {
        return format!("{name} is an option of families, not of the database");
    }
    match nearest(name, T::ALL.iter().map(|descriptor| descriptor.name)) {
        Some(known) => format!("there is no option {name}; did you mean {known}?"),
        None => format!("there is no option {name}"),
    }
}

/// `options` with all of `changes`, or with none: the caller has still to
/// validate them.
///
/// # Errors
/// `InvalidArgument` names an option that is unknown, given twice, or fixed
/// while the database is open.
pub(super) fn changed<T: Catalogued>(options: &T, changes: &[(&str, &str)]) -> Result<T> {
    let mut changed = options.clone();
    for (place, (name, text)) in changes.iter().enumerate() {
        if changes[..place].iter().any(|(other, _)| other == name) {
            return Err(Error::invalid(format!("{name} is given twice")));
        }
        set(&mut changed, name, text).map_err(Error::invalid)?;
        if find::<T>(name).is_some_and(|descriptor| descriptor.live.is_none()) {
            let what = format!("{name} is fixed while the database is open");
            return Err(Error::invalid(what));
        }
    }
    Ok(changed)
}
