//! How the databases are opened, and their families are created.

use std::sync::Arc;

use lodestore::{
    AddU64, Append, Compression, FamilyOptions, KeyOrder, MemFs, Options, PrefixExtractor,
    Scheduler,
};

use super::any_case::AnyCase;

/// Options for every set: families of different sets have different names.
pub fn options(fs: &MemFs) -> Options {
    let plain = plain();
    let families = [of_plain(&plain), of_odd(&plain), of_unlogged(&plain)].concat();
    Options {
        create_if_missing: true,
        fs: Arc::new(fs.clone()),
        scheduler: Some(Scheduler::seeded(1, 1)),
        family: plain,
        families: families.into_iter().map(|(name, of)| (name.to_string(), of)).collect(),
        ..Options::default()
    }
}

/// Small blocks, and nothing that happens unless it is asked for.
fn plain() -> FamilyOptions {
    FamilyOptions {
        block_bytes: 256,
        compression: Compression::None,
        memtable_bytes: 1 << 20,
        // Compactions come when they are asked for.
        level0_compaction_files: 20,
        tombstone_percent: 0,
        tombstone_age_seconds: 0,
        ..FamilyOptions::default()
    }
}

type Named = (&'static str, FamilyOptions);

/// Those of the set `database`.
fn of_plain(plain: &FamilyOptions) -> Vec<Named> {
    let lz4 = FamilyOptions {
        compression: Compression::Lz4,
        prefix_extractor: Some(PrefixExtractor::Fixed(4)),
        ..plain.clone()
    };
    let snappy = FamilyOptions {
        compression: Compression::Snappy,
        partition_bytes: Some(128),
        merge_operator: Some(Arc::new(Append::with_delimiter(b","))),
        ..plain.clone()
    };
    let zstd = FamilyOptions {
        prefix_extractor: Some(PrefixExtractor::Delimiter(b'/')),
        ..with_dictionary(plain)
    };
    let counters = FamilyOptions {
        merge_operator: Some(Arc::new(AddU64)),
        filter_bits_per_key: 0,
        ..plain.clone()
    };
    vec![("default", lz4), ("snappy", snappy), ("zstd", zstd), ("counters", counters)]
}

fn with_dictionary(plain: &FamilyOptions) -> FamilyOptions {
    FamilyOptions {
        block_bytes: 512,
        compression: Compression::Zstd { level: 3 },
        dictionary_bytes: 512,
        dictionary_training_bytes: 64 << 10,
        ..plain.clone()
    }
}

/// Those of the set `odd`.
fn of_odd(plain: &FamilyOptions) -> Vec<Named> {
    let in_order = |order: KeyOrder| FamilyOptions { order, ..plain.clone() };
    let any_case = in_order(KeyOrder::Custom(Arc::new(AnyCase)));
    let indexed_db = in_order(KeyOrder::built_in("idb_cmp1").expect("the library has it"));
    let versions = FamilyOptions {
        // Its name in the manifest has the delimiter.
        merge_operator: Some(Arc::new(Append::with_delimiter(b";"))),
        ..plain.clone()
    };
    let capped =
        FamilyOptions { prefix_extractor: Some(PrefixExtractor::Capped(6)), ..plain.clone() };
    let unfiltered = FamilyOptions {
        partition_bytes: Some(128),
        filter_bits_per_key: 0,
        compression: Compression::Lz4,
        ..plain.clone()
    };
    let divided = FamilyOptions { partition_bytes: Some(128), ..with_dictionary(plain) };
    let pages = FamilyOptions { block_bytes: 4096, ..plain.clone() };
    vec![
        ("any-case", any_case),
        ("indexed-db", indexed_db),
        ("versions", versions),
        ("capped", capped),
        ("unfiltered", unfiltered),
        ("divided", divided),
        ("pages", pages),
    ]
}

/// Those of the set `unlogged`.
fn of_unlogged(plain: &FamilyOptions) -> Vec<Named> {
    let compression = Compression::Lz4;
    // No flush that nobody asked for.
    let large = FamilyOptions { compression, memtable_bytes: 64 << 20, ..plain.clone() };
    let wide = FamilyOptions { block_bytes: 128 << 10, ..large.clone() };
    vec![("long", large.clone()), ("wide", wide), ("sequences", large)]
}
