//! A thread that writes batches, and reads what it has written.

use crate::crew::Crew;
use crate::plan::Trouble;
use crate::promise::{Event, WRITERS, writer};
use lodestore::{Db, Error, Family, Result, WriteBatch, WriteOptions};
use std::time::Duration;
use testkit::load::{APPEND, Families};
use testkit::random::Random;

/// Writes `batches` batches of writer `id`, or until the incarnation ends.
pub fn write(crew: &Crew, db: &Db, families: &Families, id: u8, batches: u64, mut random: Random) {
    let writer = writer(crew.seed, id);
    let append = db.family(APPEND).expect("it was created");
    let mut own = crew.start.clone();
    let last = own.batches_of(id) + batches;
    while own.batches_of(id) < last {
        let index = own.batches_of(id) + 1;
        let mut batch = writer.batch(index, families);
        let changes = u64::from(batch.len() as u32);
        let is_there = match write_batch(crew, db, &mut batch, &mut random) {
            Ok((sequence, synced)) => {
                crew.acknowledge(Event::Batch { writer: id, index, sequence });
                if synced {
                    crew.acknowledge(Event::Lasting { sequence });
                }
                crew.count(|report| report.operations += changes);
                true
            }
            Err(error) => {
                if !crew.mend(db, &error) {
                    return;
                }
                let marker = || db.get(writer.marker().as_bytes());
                let Some(marker) = crew.persist(db, marker) else { return };
                let there = marker.map_or(0, |n| u64::from_le_bytes(n[..].try_into().expect("8")));
                assert!(there == index || there + 1 == index, "{there} is there, not {index}");
                there == index
            }
        };
        let mut kept: [u64; WRITERS as usize] = std::array::from_fn(|id| own.batches_of(id as u8));
        kept[usize::from(id)] += u64::from(is_there);
        own.go_on_to(crew.seed, kept);
        let look = |family: &Family, name: &str, key: &str| -> Result<()> {
            let found = family.get(key.as_bytes())?;
            let expected = own.entries(name).and_then(|entries| entries.get(key.as_bytes()));
            assert_eq!(found.as_deref(), expected.map(|v| &v[..]), "{name}, {key}: after {index}");
            Ok(())
        };
        for _ in 0..random.below(6) {
            let key = format!("{id:02}/{:03}", random.below(50));
            let (family, name) =
                if random.one_in(3) { (&append, APPEND) } else { (&**db, "default") };
            if let Err(error) = look(family, name, &key) {
                crew.excuse(&error);
            }
            crew.count(|report| report.operations += 1);
        }
    }
}

/// Writes one batch; its number, and whether it was synced.
fn write_batch(
    crew: &Crew,
    db: &Db,
    batch: &mut WriteBatch,
    random: &mut Random,
) -> Result<(u64, bool)> {
    let synced = random.one_in(5) && crew.trouble != Trouble::NoLog;
    let patient = WriteOptions { sync: synced, ..WriteOptions::default() };
    // What is refused must leave nothing: the same batch is written again.
    let sequence = match db.write_with(&impatient(random, patient), batch) {
        Err(Error::Stalled { .. }) => db.write_with(&patient, batch)?,
        result => result?,
    };
    Ok((sequence, synced))
}

/// Now and then a write that may not wait, or not for long.
fn impatient(random: &mut Random, patient: WriteOptions) -> WriteOptions {
    let deadline = Duration::from_millis(random.between(0, 3) as u64);
    match random.below(6) {
        0 => WriteOptions { no_slowdown: true, ..patient },
        1 => WriteOptions { deadline: Some(deadline), ..patient },
        _ => patient,
    }
}
