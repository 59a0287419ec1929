//! Rot: whatever happens to the files of a closed database, it is refused with
//! the name of a file and stays as it is, or it opens and shows nothing wrong:
//! each read gives what is right or an error that names the file.
//!
//! Exempt are bytes of the log above the last durable witness: they look like a
//! tail that was torn off, and the first batches up to there are shown.

mod damage;
mod judge;
mod repaired;
mod sample;

use damage::Damage;
use judge::{Tally, judge};
use lodestore::inspect::{ManifestFile, Survey, TableFile};
use lodestore::{Db, Fs, KeyOrder};
use sample::{DIRECTORY, End, FAMILIES, OTHER, Sample, disk, options, read_files};
use std::path::Path;
use std::sync::Arc;

fn tally(sample: &Sample, damages: &[Damage]) -> Tally {
    let mut tally = Tally::default();
    damages.iter().for_each(|damage| judge(sample, damage, &mut tally));
    println!("{} cases: {tally:?}", damages.len());
    tally
}

/// The database has what the other tests damage, in every state that matters.
#[test]
fn the_sample_has_every_kind_of_file() {
    let sample = Sample::new(End::Killed);
    let fs: Arc<dyn Fs> = Arc::new(disk(&sample.files));
    let survey = Survey::read(&fs, Path::new(DIRECTORY)).unwrap();
    let tables = |family: &str, level: usize| survey.family(family).unwrap().levels[level].clone();
    for family in FAMILIES {
        assert!(!tables(family, 0).is_empty() && !tables(family, 6).is_empty(), "{survey:?}");
        assert!(tables(family, 0).iter().any(|table| table.range_deletes > 0));
        assert!(tables(family, 0).iter().any(|table| table.tombstones > 0));
    }
    assert!(tables("default", 6).len() > 1, "a level of several tables");
    let mut all = survey.family("default").unwrap().levels.iter().flatten();
    assert!(all.any(|table| table.sequence_override.is_some()), "one was ingested");
    let properties = |family: &str| {
        let path = Path::new(DIRECTORY).join(tables(family, 6)[0].file_name());
        TableFile::open(&*fs, &path, KeyOrder::Bytewise).unwrap().properties()
    };
    assert!(properties(OTHER).partitioned && !properties("default").partitioned);
    // How Zstandard's dictionaries begin.
    let begin = 0xec30_a437_u32.to_le_bytes();
    let deep = &sample.files[&tables(OTHER, 6)[0].file_name()];
    assert!(deep.windows(4).any(|bytes| bytes == begin), "there is a dictionary");
    assert_eq!(sample.logs().len(), 2, "live segments");
    assert!(!sample.names("OPTIONS-").is_empty());
    let mut edits = 0;
    let manifest = ManifestFile::open_current(&*fs, Path::new(DIRECTORY)).unwrap();
    manifest.read(&mut |_| edits += 1).unwrap();
    assert!(edits > 5, "{edits} edits");
}

#[test]
fn a_flipped_bit_in_a_table_is_never_shown() {
    let sample = Sample::new(End::Killed);
    let tally = tally(&sample, &damage::flips_in_tables(&sample));
    assert!(tally.found_on_read > 0 && tally.found_by_verify > 0);
    assert_eq!((tally.torn_tail, tally.harmless), (0, 0), "every byte of a table has a checksum");
}

#[test]
fn a_flipped_bit_in_the_log_is_refused_or_a_torn_tail() {
    for end in [End::Killed, End::NeverSynced] {
        let sample = Sample::new(end);
        let tally = tally(&sample, &damage::flips_in_logs(&sample));
        assert!(tally.refused > 0 && tally.torn_tail > 0 && tally.harmless > 0);
        assert_eq!((tally.found_on_read, tally.found_by_verify), (0, 0));
    }
}

/// The manifest knows how far the log goes: nothing looks like a torn tail.
#[test]
fn in_the_log_of_a_closed_database_all_damage_is_found() {
    let sample = Sample::new(End::Closed);
    for damages in [damage::flips_in_logs(&sample), damage::lost_logs(&sample)] {
        let tally = tally(&sample, &damages);
        assert!(tally.refused > 0);
        assert_eq!((tally.found_on_read, tally.torn_tail), (0, 0));
    }
}

#[test]
fn a_flipped_bit_in_manifest_or_current_loses_nothing() {
    let sample = Sample::new(End::Killed);
    let tally = tally(&sample, &damage::flips_in_administration(&sample));
    assert!(tally.refused > 0 && tally.harmless > 0);
    assert_eq!((tally.found_on_read, tally.torn_tail), (0, 0));
}

#[test]
fn files_under_each_others_name_are_noticed() {
    let sample = Sample::new(End::Killed);
    let tally = tally(&sample, &damage::swapped_names(&sample));
    assert!(tally.refused > 0 && tally.found_on_read > 0);
    assert_eq!((tally.harmless, tally.torn_tail), (0, 0));
}

#[test]
fn blocks_in_each_others_place_are_noticed() {
    let sample = Sample::new(End::Killed);
    let tally = tally(&sample, &damage::swapped_blocks(&sample));
    assert!(tally.found_on_read > 0);
    assert_eq!((tally.harmless, tally.torn_tail), (0, 0));
}

#[test]
fn lost_tables_are_never_missing_keys() {
    let sample = Sample::new(End::Killed);
    let tally = tally(&sample, &damage::lost_tables(&sample));
    assert!(tally.refused > 0 && tally.found_on_read > 0);
    assert_eq!((tally.harmless, tally.torn_tail), (0, 0));
}

#[test]
fn without_current_or_manifest_nothing_is_opened_or_created() {
    let sample = Sample::new(End::Killed);
    let tally = tally(&sample, &damage::lost_current(&sample));
    assert_eq!(tally, Tally { refused: tally.refused, ..Tally::default() });
}

#[test]
fn an_older_manifest_never_hides_what_was_written_since() {
    for end in [End::Killed, End::NeverSynced, End::Closed] {
        let sample = Sample::new(end);
        let tally = tally(&sample, &damage::older_manifests(&sample));
        assert!(tally.refused > 0);
        assert_eq!((tally.found_on_read, tally.torn_tail), (0, 0));
    }
}

#[test]
fn lost_and_foreign_logs_are_noticed() {
    for end in [End::Killed, End::NeverSynced] {
        let sample = Sample::new(end);
        let tally = tally(&sample, &damage::lost_logs(&sample));
        assert!(tally.refused > 0 && tally.torn_tail > 0);
        assert_eq!((tally.found_on_read, tally.found_by_verify), (0, 0));
    }
}

/// Files of others are no damage, and stay as they are.
#[test]
fn foreign_files_are_left_alone() {
    let sample = Sample::new(End::Killed);
    for damage in damage::foreign_files() {
        let mut counts = Tally::default();
        judge(&sample, &damage, &mut counts);
        assert_eq!(counts, Tally { harmless: 1, ..Tally::default() }, "{}", damage.what);
        let files = damage.done_to(&sample.files);
        let fs = disk(&files);
        drop(Db::open(DIRECTORY, options(&fs)).unwrap());
        let left = read_files(&fs);
        for name in &damage.blamed {
            assert_eq!(left.get(name), files.get(name), "{}", damage.what);
        }
    }
}
