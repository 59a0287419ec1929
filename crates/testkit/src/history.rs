//! Small histories for crash tests, and what may be left of one.
//!
//! Ingesting tables is a batch too, and a synced one.
//!
//! The rule: the recovered state is that of the batches 1..k for one k, the
//! same in every family. Nothing that was promised to last may be missing: k
//! is at least the last batch acknowledged before a killed process, or the
//! last one synced before a power loss. A family that was created or dropped,
//! and acknowledged, stays so; one step may be in doubt, the one that failed.

use crate::command::{
    Action, Change, Command, DEFAULT_FAMILY, Form, Operator, Output, Schema, Settings,
};
use crate::load::{Contents, difference_in};
use crate::model::Database;
use crate::orders::Order;
use crate::random::Random;
use crate::surface::Surface;
use crate::text::Datum;

/// The key of the number of the last batch that was written, and of the last
/// that was ingested. They differ so that tables may come in while memtables
/// hold nothing of their keys.
const MARKERS: [&[u8]; 2] = [b"~batch", b"~ingested"];
const SCHEMA: Schema = Schema { order: Order::Bytewise, operator: Operator::Append };

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The process was killed: the file system keeps what it was given.
    Kill,
    /// Power went: only what was synced must be there.
    PowerLoss,
}

/// The command that opens a history's database, now or after a crash.
pub fn open() -> Command {
    let knobs = [
        ("memtable", "4096"),
        ("table", "4096"),
        ("block", "256"),
        ("level0", "2"),
        ("level1", "8192"),
        ("multiplier", "2"),
        ("threads", "1"),
        ("log", "16384"),
    ];
    let knobs = knobs.map(|(name, value)| (name.to_string(), value.to_string())).to_vec();
    let schemas = vec![(DEFAULT_FAMILY.to_string(), SCHEMA)];
    Command::Open {
        name: "db".to_string(),
        settings: Settings { create: true, knobs, schemas, ..Settings::default() },
    }
}

/// Other options from then on, which a file is to say.
fn set_options(random: &mut Random, families: &[String]) -> Command {
    let codec = random.pick(&["none", "lz4", "zstd:1"]).to_string();
    let changes = vec![
        ("compression_bottommost".to_string(), codec),
        ("memtable_bytes".to_string(), format!("{}KiB", random.between(2, 8))),
    ];
    Command::SetOptions { family: Some(random.pick(families).clone()), changes }
}

/// A history of `steps` commands after the opening: batches over families that
/// come and go, flushes, compactions, reopenings. Every batch holds a marker.
pub fn history(seed: u64, steps: usize) -> Vec<Command> {
    let mut random = Random::new(seed);
    let mut families = vec![DEFAULT_FAMILY.to_string(), "a".to_string()];
    let mut commands = vec![open(), create("a")];
    let mut batches = 0;
    for _ in 0..steps {
        commands.push(match random.below(25) {
            0 => Command::Flush { family: None },
            1 => Command::Flush { family: Some(random.pick(&families).clone()) },
            2 => Command::Compact {
                family: random.pick(&families).clone(),
                from: None,
                to: None,
                rewrite: random.below(3) == 0,
            },
            3 => Command::SyncLog,
            4 => Command::Wait,
            5 => open(),
            9 | 10 => {
                batches += 1;
                ingest(&mut random, &families, batches)
            }
            24 => set_options(&mut random, &families),
            6..=8 => match families.iter().position(|name| name == "b") {
                Some(at) => Command::DropFamily { name: families.remove(at) },
                None => {
                    families.push("b".to_string());
                    create("b")
                }
            },
            _ => {
                batches += 1;
                batch(&mut random, &families, batches)
            }
        });
    }
    commands
}

fn create(name: &str) -> Command {
    Command::CreateFamily { name: name.to_string(), schema: SCHEMA }
}

fn batch(random: &mut Random, families: &[String], number: u64) -> Command {
    let mut changes = Vec::new();
    for _ in 0..random.between(1, 6) {
        let first = random.below(25);
        let family = random.pick(families).clone();
        changes.push(change(random, family, first, number));
    }
    changes.push(marker(MARKERS[0], number));
    Command::Write { changes, form: Form::Batch, sync: random.one_in(6) }
}

/// Tables of some families with some keys each; the marker is in the last.
fn ingest(random: &mut Random, families: &[String], number: u64) -> Command {
    let mut tables = Vec::new();
    for _ in 0..random.between(0, 2) {
        let family = random.pick(families).clone();
        let (mut first, count) = (random.below(20), random.between(1, 4));
        let mut changes = Vec::new();
        for _ in 0..count {
            changes.push(change(random, family.clone(), first, number));
            first += random.between(1, 3);
        }
        // A range delete of no keys is not enough for a table.
        first += 1;
        let key = Datum::Literal(format!("{first:02}").into_bytes());
        changes.push(Change { family, key, action: Action::Delete });
        tables.push(changes);
    }
    tables.push(vec![marker(MARKERS[1], number)]);
    Command::Ingest { tables, moved: random.one_in(2) }
}

fn change(random: &mut Random, family: String, first: usize, number: u64) -> Change {
    let length = random.below(700);
    let value = Datum::Generated { length, seed: random.word() >> 40 };
    let end = format!("{:02}", first + random.below(8));
    let action = match random.below(7) {
        0 => Action::Delete,
        6 => Action::DeleteRange(Datum::Literal(end.into_bytes())),
        1 => Action::Merge(Datum::Literal(number.to_string().into_bytes())),
        _ => Action::Put(value),
    };
    Change { family, key: Datum::Literal(format!("{first:02}").into_bytes()), action }
}

fn marker(key: &[u8], number: u64) -> Change {
    Change {
        family: DEFAULT_FAMILY.to_string(),
        key: Datum::Literal(key.to_vec()),
        action: Action::Put(Datum::Literal(number.to_le_bytes().to_vec())),
    }
}

/// Runs a history up to its first failure; how many commands were acknowledged.
pub fn run(history: &[Command], surface: &mut dyn Surface) -> usize {
    let fails = |command: &Command| matches!(surface.run(command), Output::Failed(_));
    history.iter().position(fails).unwrap_or(history.len())
}

/// Judges what was found after a crash, when the first `done` commands had
/// been acknowledged and the next one had not. Gives k.
///
/// # Errors
/// What is wrong, in words.
pub fn judge(
    history: &[Command],
    done: usize,
    crash: Crash,
    found: &Contents,
) -> Result<u64, String> {
    let kept = batches_in(found)?;
    let in_doubt = (done + 1).min(history.len());
    let least = batches_lasting(&history[..done], crash);
    let most = batches_written(&history[..in_doubt]);
    if kept < least || kept > most {
        return Err(format!("batches {least} to {most} may be the last one, {kept} is"));
    }
    let strict = difference(&history[..done], &history[..in_doubt], kept, found);
    match strict {
        None => Ok(kept),
        Some(difference) => {
            let doubtful = &history[..in_doubt];
            match self::difference(doubtful, doubtful, kept, found) {
                None => Ok(kept),
                Some(_) => Err(format!("after batch {kept}: {difference}")),
            }
        }
    }
}

/// The number of the last batch that is there.
fn batches_in(found: &Contents) -> Result<u64, String> {
    let default = found.get(DEFAULT_FAMILY).ok_or("there is no default family")?;
    let mut last = 0;
    for marker in MARKERS.iter().filter_map(|key| default.get(*key)) {
        let marker = marker[..].try_into().map_err(|_| "the marker is damaged")?;
        last = last.max(u64::from_le_bytes(marker));
    }
    Ok(last)
}

fn batches_written(history: &[Command]) -> u64 {
    history.iter().filter(|command| is_batch(command)).count() as u64
}

/// True for what writes the marker, and with it counts wholly or not at all.
fn is_batch(command: &Command) -> bool {
    matches!(command, Command::Write { .. } | Command::Ingest { .. })
}

/// The last batch that had to survive.
fn batches_lasting(history: &[Command], crash: Crash) -> u64 {
    let is_synced = |command: &Command| {
        matches!(
            command,
            Command::Write { sync: true, .. }
                | Command::Ingest { .. }
                | Command::SyncLog
                | Command::Flush { family: None }
        )
    };
    let lasts = |command: &Command| is_synced(command) || crash == Crash::Kill && is_batch(command);
    let last = history.iter().rposition(lasts);
    last.map_or(0, |last| batches_written(&history[..=last]))
}

/// How `found` differs from the state of the first `kept` batches among
/// `writes` with the families as they are after `families`.
fn difference(
    families: &[Command],
    writes: &[Command],
    kept: u64,
    found: &Contents,
) -> Option<String> {
    let mut database = Database::with_default_schema(SCHEMA);
    let mut batch = 0;
    for (i, command) in writes.iter().enumerate() {
        match command {
            Command::Write { changes, .. } => {
                batch += 1;
                if batch <= kept {
                    database.write(changes).expect("the history is sound");
                }
            }
            Command::Ingest { tables, .. } => {
                batch += 1;
                if batch <= kept {
                    database.ingest(tables).expect("the history is sound");
                }
            }
            Command::CreateFamily { name, schema } if i < families.len() => {
                database.create_family(name, *schema);
            }
            Command::DropFamily { name } if i < families.len() => database.drop_family(name),
            _ => {}
        }
    }
    let names: Vec<&String> = found.keys().collect();
    let mut expected = database.family_names();
    expected.sort();
    if names.iter().ne(expected.iter().collect::<Vec<_>>().iter()) {
        return Some(format!("the families should be {expected:?} and are {names:?}"));
    }
    expected.iter().find_map(|name| {
        let entries = database.entries(name)?.into_iter().collect();
        difference_in(name, &entries, &found[name])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Read;
    use crate::model::Model;

    fn contents(model: &mut Model, history: &[Command]) -> Contents {
        let Output::Text(names) = model.run(&Command::Families) else {
            panic!("the model is open after {} commands", history.len())
        };
        let entries = |name: &str| {
            let read = Read::of(name);
            match model.run(&Command::Scan { read, reverse: false }) {
                Output::Entries(entries, None) => entries.into_iter().collect(),
                other => panic!("a scan gave {other:?}"),
            }
        };
        let mut entries = entries;
        names.lines().map(|name| (name.to_string(), entries(name))).collect()
    }

    /// The judge accepts what really happened, and nothing that it must not:
    /// an acknowledged batch missing, half a batch, a family back from the dead.
    #[test]
    fn the_judge_is_strict() {
        for seed in 0..50 {
            let history = history(seed, 40);
            let mut model = Model::default();
            assert_eq!(run(&history, &mut model), history.len());
            let found = contents(&mut model, &history);
            let all = batches_written(&history);
            assert_eq!(judge(&history, history.len(), Crash::Kill, &found), Ok(all));

            let mut torn = found.clone();
            let default = torn.get_mut(DEFAULT_FAMILY).expect("it is always there");
            default.insert(b"zz".to_vec(), Vec::new());
            assert!(judge(&history, history.len(), Crash::PowerLoss, &torn).is_err());

            let mut revived = found.clone();
            revived.insert("c".to_string(), Default::default());
            assert!(judge(&history, history.len(), Crash::Kill, &revived).is_err());

            let mut earlier = Model::default();
            let last = history.iter().rposition(is_batch);
            let last = last.expect("a history writes");
            run(&history[..last], &mut earlier);
            let before = contents(&mut earlier, &history);
            assert!(judge(&history, history.len(), Crash::Kill, &before).is_err());
        }
    }
}
