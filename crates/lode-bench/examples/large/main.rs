//! A large database from its first entry to half of it being deleted, within a
//! memory budget, every entry compared: what it took in time, memory and space.
//!
//! `data` says what each entry must be, `measure` watches the steps, and this
//! file does them. Run by `scripts/large-test`.

mod data;
mod measure;

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use clap::Parser;
use lode_bench::histogram::Histogram;
use lode_bench::permutation::Permutation;
use lode_bench::{grouped, parse_bytes, parse_count};
use lodestore::{Db, Options};

use crate::data::{Data, KEY_BYTES, VALUE_BYTES};
use crate::measure::Meter;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Load a permutation, overwrite it, compare it, delete half of it by range and
/// half of the rest key by key, and compare what is left.
#[derive(Parser, Debug)]
struct Arguments {
    /// Directory of the database; it must not exist, and stays.
    directory: PathBuf,
    /// Entries of 16 + 100 bytes.
    #[arg(long, default_value = "100M", value_parser = parse_count)]
    entries: u64,
    /// The limit on the engine's memory.
    #[arg(long, default_value = "256M", value_parser = parse_bytes)]
    memory_budget: u64,
    /// Another seed gives other orders.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> Outcome {
    let arguments = Arguments::parse();
    let options = || Options {
        create_if_missing: true,
        memory_bytes: Some(arguments.memory_budget as usize),
        ..Options::default()
    };
    let mut data = Data::new(arguments.entries);
    let db = Db::open(&arguments.directory, Options { error_if_exists: true, ..options() })?;
    let mut meter = Meter::new(&arguments.directory);

    println!(
        "{} entries of {KEY_BYTES} + {VALUE_BYTES} bytes, budget {} MiB, seed {}",
        grouped(arguments.entries),
        arguments.memory_budget >> 20,
        arguments.seed
    );
    write(&db, &mut meter, "load", &Permutation::new(data.count, arguments.seed), 1)?;
    write(&db, &mut meter, "overwrite", &Permutation::new(data.count, arguments.seed + 1), 2)?;
    data.generation = 2;
    wait(&db, &mut meter)?;
    compare(&db, &mut meter, &data)?;
    point_reads(&db, &mut meter, &data, arguments.seed)?;
    look(&db, &mut meter, &data, "before deleting")?;

    delete_half_by_range(&db, &mut meter, &mut data)?;
    look(&db, &mut meter, &data, "after the range")?;
    delete_half_by_key(&db, &mut meter, &mut data, arguments.seed + 2)?;
    look(&db, &mut meter, &data, "after the keys")?;
    wait(&db, &mut meter)?;
    look(&db, &mut meter, &data, "when quiet")?;
    compare(&db, &mut meter, &data)?;
    meter.waits(&db);

    drop(db);
    let db = Db::open(&arguments.directory, options())?;
    meter.step(&db, "verify", data.count, |_, db| db.verify().map(drop).map_err(Into::into))?;
    compare(&db, &mut meter, &data)?;
    meter.finish(arguments.memory_budget)
}

/// Puts every entry once, in the order of `order`, and tells how long the puts
/// of each tenth took.
fn write(db: &Db, meter: &mut Meter, name: &str, order: &Permutation, generation: u64) -> Outcome {
    let count = order.count();
    meter.step(db, name, count, |meter, db| {
        let mut latencies = Histogram::default();
        let mut begin = Instant::now();
        for position in 0..count {
            let number = order.at(position);
            db.put(&data::key(number), &data::value(number, generation))?;
            let end = Instant::now();
            latencies.add(end - begin);
            begin = end;
            if (position + 1) % count.div_ceil(10) == 0 || position + 1 == count {
                meter.latencies(position + 1, &std::mem::take(&mut latencies));
            }
        }
        Ok(())
    })
}

/// Waits until flushes and compactions are done.
fn wait(db: &Db, meter: &mut Meter) -> Outcome {
    meter.step(db, "until quiet", 0, |_, db| db.wait_for_background().map_err(Into::into))
}

/// Reads everything in order: exactly what `data` says must be there.
fn compare(db: &Db, meter: &mut Meter, data: &Data) -> Outcome {
    meter.step(db, "compare all", data.live(), |_, db| {
        let mut cursor = db.cursor();
        cursor.first();
        for number in data.numbers() {
            let wanted = format!("key {number}");
            if !cursor.valid() {
                cursor.status()?;
                return Err(format!("the database ends before {wanted}").into());
            }
            if cursor.key() != data::key(number) {
                let found = String::from_utf8_lossy(cursor.key()).into_owned();
                return Err(format!("found key {found:?} in place of {wanted}").into());
            }
            if cursor.value() != data::value(number, data.generation) {
                return Err(format!("{wanted} has a wrong value").into());
            }
            cursor.next();
        }
        cursor.status()?;
        match cursor.valid() {
            false => Ok(()),
            true => Err("the database has more keys than it should".into()),
        }
    })
}

/// Gets a million entries in random order.
fn point_reads(db: &Db, meter: &mut Meter, data: &Data, seed: u64) -> Outcome {
    let reads = data.count.min(1_000_000);
    let order = Permutation::new(data.count, seed + 100);
    meter.step(db, "random gets", reads, |_, db| {
        for number in (0..reads).map(|position| order.at(position)) {
            let value = db.get(&data::key(number))?;
            if value.as_deref() != Some(&data::value(number, data.generation)) {
                return Err(format!("key {number} has a wrong value").into());
            }
        }
        Ok(())
    })
}

/// What a reader meets now: seeks to random places, and scans from some.
fn look(db: &Db, meter: &mut Meter, data: &Data, when: &str) -> Outcome {
    const SEEKS: u64 = 2_000;
    const SCANS: u64 = 20;
    let scanned = (data.count / 1_000).clamp(1, 100_000);
    let order = Permutation::new(data.count, 7);
    println!("{when}:");
    meter.step(db, "seeks", SEEKS, |_, db| {
        for number in (0..SEEKS).map(|i| order.at(i % data.count)) {
            let mut cursor = db.cursor();
            cursor.seek(&data::key(number));
            let found = cursor.valid().then(|| cursor.key().to_vec());
            cursor.status()?;
            if found != data.next_from(number).map(|next| data::key(next).to_vec()) {
                return Err(format!("a seek to {number} found {found:?}").into());
            }
        }
        Ok(())
    })?;
    meter.step(db, "scans", SCANS * scanned, |_, db| {
        for number in (0..SCANS).map(|i| data.count / SCANS * i) {
            let mut cursor = db.cursor();
            cursor.seek(&data::key(number));
            for _ in 0..scanned {
                if !cursor.valid() {
                    break;
                }
                cursor.next();
            }
            cursor.status()?;
        }
        Ok(())
    })
}

fn delete_half_by_range(db: &Db, meter: &mut Meter, data: &mut Data) -> Outcome {
    let (from, to) = (data.count / 4, data.count / 4 * 3);
    meter.step(db, "delete half by range", 1, |_, db| {
        db.delete_range(&data::key(from), &data::key(to)).map_err(Into::into)
    })?;
    data.deleted = from..to;
    Ok(())
}

/// Deletes each live key of an odd number, in random order.
fn delete_half_by_key(db: &Db, meter: &mut Meter, data: &mut Data, seed: u64) -> Outcome {
    let order = Permutation::new(data.count, seed);
    let deleted = order_of_deletes(&order, data).count() as u64;
    meter.step(db, "delete half by key", deleted, |meter, db| {
        let mut latencies = Histogram::default();
        let mut begin = Instant::now();
        for number in order_of_deletes(&order, data) {
            db.delete(&data::key(number))?;
            let end = Instant::now();
            latencies.add(end - begin);
            begin = end;
        }
        meter.latencies(deleted, &latencies);
        Ok(())
    })?;
    data.odd_are_deleted = true;
    Ok(())
}

fn order_of_deletes<'a>(order: &'a Permutation, data: &'a Data) -> impl Iterator<Item = u64> + 'a {
    let numbers = (0..data.count).map(|position| order.at(position));
    numbers.filter(|number| number % 2 == 1 && data.is_live(*number))
}
