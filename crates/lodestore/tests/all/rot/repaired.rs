//! Whatever happens to the files, repair builds a database of the rest: what is
//! missing in it, or back, is what the report said could be.

use super::damage::{self, Damage};
use super::sample::{Batch, DIRECTORY, End, FAMILIES, Sample, disk, options, read_files};
use lodestore::repair::{Loss, Repair, Report};
use lodestore::{Db, Error, Fs, MemFs};
use std::collections::BTreeSet;
use std::path::Path;
use testkit::load::contents;

const REPAIRED: &str = "/repaired";
/// No block of the sample has more keys.
const BLOCK_KEYS_MAX: usize = 20;

/// What repairs came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    /// Everything is there again.
    whole: u64,
    /// Something is not as it was, and the report says where.
    told: u64,
    /// A deleted key is back, and the report says that it could be.
    back: u64,
    /// The most keys that one case cost.
    keys_max: usize,
    /// Cases that cost more keys than a block or two have.
    dear: u64,
}

/// Repairs one case and judges what comes out.
fn check(sample: &Sample, damage: &Damage, tally: &mut Tally) {
    let files = damage.done_to(&sample.files);
    let fs = disk(&files);
    let repair = Repair::read(DIRECTORY, &options(&fs));
    let repair = repair.unwrap_or_else(|error| panic!("{}: {error}", damage.what));
    let report = repair.report();
    repair.write_to(REPAIRED).unwrap_or_else(|error| panic!("{}: {error}", damage.what));
    assert!(read_files(&fs) == files, "{}: repair changed the damaged directory", damage.what);
    let db = Db::open(REPAIRED, options(&fs));
    let db = db.unwrap_or_else(|error| panic!("{}: {error}; {report:?}", damage.what));
    db.verify().unwrap_or_else(|error| panic!("{}: {error}", damage.what));
    let wrong = differences(sample, damage, &report, &db, tally);
    match wrong {
        0 => tally.whole += 1,
        _ => tally.told += 1,
    }
    tally.keys_max = tally.keys_max.max(wrong);
    tally.dear += u64::from(wrong > BLOCK_KEYS_MAX);
}

/// How many keys differ from the oracle, each of them excused.
fn differences(
    sample: &Sample,
    damage: &Damage,
    report: &Report,
    db: &Db,
    tally: &mut Tally,
) -> usize {
    let found = contents(db).unwrap_or_else(|error| panic!("{}: {error}", damage.what));
    let in_log = lost_in_log(sample, damage, report);
    let expected = sample.states.last().expect("there is a last one");
    let (mut wrong, mut is_back) = (0, false);
    for name in FAMILIES {
        let empty = Default::default();
        let entries = found.get(name).unwrap_or(&empty);
        let keys: BTreeSet<&Vec<u8>> = sample.keys[name].iter().chain(entries.keys()).collect();
        for key in keys {
            let (is, should) = (entries.get(key), expected[name].get(key));
            if is == should {
                continue;
            }
            wrong += 1;
            let concerns = |loss: &&Loss| {
                loss.sequences.is_none()
                    && (loss.family.is_some() || loss.file.ends_with(".table"))
                    && loss.may_concern(name, key)
                    && (loss.deletes || should.is_some())
            };
            let of_log = in_log.contains(&(name.to_string(), key.clone()));
            let is_told = of_log || report.losses.iter().any(|loss| concerns(&loss));
            let shown = key.escape_ascii();
            assert!(
                is_told,
                "{}: {name} {shown} is {is:?}, not {should:?}: {report:?}",
                damage.what
            );
            is_back |= should.is_none();
        }
    }
    tally.back += u64::from(is_back);
    wrong
}

/// Keys of batches that the report says are lost, or that look like a torn tail.
fn lost_in_log(sample: &Sample, damage: &Damage, report: &Report) -> BTreeSet<(String, Vec<u8>)> {
    let mut keys = BTreeSet::new();
    for (index, Batch { numbers: (first, last), touched }) in (1..).zip(&sample.batches) {
        let is_told = report.losses.iter().filter(|loss| loss.file.ends_with(".wal")).any(|loss| {
            loss.sequences
                .is_none_or(|(from, to)| from <= *last && to.is_none_or(|to| *first <= to))
        });
        let looks_torn = damage.is_in_log() && index > sample.witnessed;
        if is_told || looks_torn {
            keys.extend(touched.iter().cloned());
        }
    }
    keys
}

fn tally(end: End, damages: fn(&Sample) -> Vec<Damage>) -> Tally {
    let sample = Sample::new(end);
    let damages = damages(&sample);
    let mut tally = Tally::default();
    damages.iter().for_each(|damage| check(&sample, damage, &mut tally));
    println!("{} cases: {tally:?}", damages.len());
    tally
}

/// A sound database is repaired to the same, with nothing lost.
#[test]
fn of_a_sound_database_nothing_is_lost() {
    for end in [End::Killed, End::Closed] {
        let sample = Sample::new(end);
        let fs = disk(&sample.files);
        let report = Repair::read(DIRECTORY, &options(&fs)).unwrap().report();
        assert_eq!(
            (&report.losses, &report.manifest, report.tables_rewritten),
            (&vec![], &None, 0)
        );
        assert_eq!(report.families, FAMILIES);
        let mut tally = Tally::default();
        for file in damage::foreign_files() {
            check(&sample, &file, &mut tally);
        }
        assert_eq!((tally.told, tally.keys_max), (0, 0));
    }
}

/// Without its dictionary nothing of a table can be decompressed, nor without
/// the footer that says where it is. There is one of at most 512 bytes, and a
/// footer of some 180; a bit in each 64 is flipped.
#[test]
fn a_flipped_bit_in_a_table_costs_a_block_at_most_or_the_dictionary() {
    let tally = tally(End::Closed, damage::flips_in_tables);
    assert!(tally.whole > 0 && tally.told > 0 && tally.back > 0);
    assert!((1..=13).contains(&tally.dear), "{tally:?}");
}

#[test]
fn lost_and_swapped_tables_are_told_and_found() {
    let lost = tally(End::Closed, damage::lost_tables);
    assert!(lost.whole > 0 && lost.told > 0);
    let swapped = tally(End::Closed, damage::swapped_names);
    assert!(swapped.told == 0 && swapped.whole > 0, "all of it is there under other names");
    let blocks = tally(End::Closed, damage::swapped_blocks);
    assert!(blocks.told > 0);
}

#[test]
fn a_damaged_log_is_read_record_by_record() {
    for end in [End::Killed, End::Closed] {
        let flips = tally(end, damage::flips_in_logs);
        assert!(flips.whole > 0 && flips.told > 0);
        let lost = tally(end, damage::lost_logs);
        assert!(lost.told > 0);
    }
}

#[test]
fn a_lost_manifest_is_made_anew() {
    for end in [End::Killed, End::Closed] {
        let flips = tally(end, damage::flips_in_administration);
        assert!(flips.whole > 0);
        let lost = tally(end, damage::lost_current);
        assert!(lost.whole > 0 && lost.told > 0, "an ingested table belongs to nobody then");
        let older = tally(end, damage::older_manifests);
        assert!(older.whole > 0);
    }
}

/// Where there is something already, or nothing to repair, nothing is written.
#[test]
fn a_repair_needs_a_database_and_an_empty_directory() {
    let sample = Sample::new(End::Closed);
    let fs = disk(&sample.files);
    let before = read_files(&fs);
    let repair = Repair::read(DIRECTORY, &options(&fs)).unwrap();
    assert!(matches!(repair.write_to(DIRECTORY), Err(Error::InvalidArgument { .. })));
    assert!(read_files(&fs) == before);
    // Someone has it open, and goes on.
    let db = Db::open(DIRECTORY, options(&fs)).unwrap();
    assert!(matches!(repair.write_to(REPAIRED), Err(Error::InvalidArgument { .. })));
    assert!(fs.list(Path::new(REPAIRED)).is_err(), "nothing is left of it");
    drop(db);
    let nowhere = Repair::read("/nowhere", &options(&MemFs::new()));
    assert!(matches!(nowhere, Err(Error::Missing { .. })));
}
