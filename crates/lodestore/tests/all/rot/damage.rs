//! What can happen to the files of a closed database.

use super::sample::{BATCHES, DIRECTORY, Sample};
use std::path::Path;
use testkit::files::Files;
use testkit::random::Random;

/// A bit is flipped in each piece of this size.
const PIECE_BYTES: usize = 64;

/// One case.
pub struct Damage {
    /// What was done, for messages.
    pub what: String,
    changes: Vec<(String, Change)>,
    /// Files of which an error must name one.
    pub blamed: Vec<String>,
    /// So many batches of the log must be there if it opens: fewer than all
    /// only where bytes above the last durable witness were hit.
    pub batches_min: u64,
}

enum Change {
    Flip { at: usize, bit: u8 },
    Bytes(Vec<u8>),
    Gone,
}

impl Damage {
    fn new(what: String) -> Damage {
        Damage { what, changes: Vec::new(), blamed: Vec::new(), batches_min: BATCHES }
    }

    fn with(mut self, name: &str, change: Change) -> Damage {
        self.changes.push((name.to_string(), change));
        self.blame(name)
    }

    fn blame(mut self, name: &str) -> Damage {
        self.blamed.push(name.to_string());
        self
    }

    fn with_batches(mut self, batches_min: u64) -> Damage {
        self.batches_min = batches_min;
        self
    }

    /// True if the log was touched.
    pub fn is_in_log(&self) -> bool {
        self.changes.iter().any(|(name, _)| name.ends_with(".wal"))
    }

    /// The sound files after it.
    pub fn done_to(&self, files: &Files) -> Files {
        let mut files = files.clone();
        for (name, change) in &self.changes {
            match change {
                Change::Gone => drop(files.remove(name)),
                Change::Bytes(bytes) => drop(files.insert(name.clone(), bytes.clone())),
                Change::Flip { at, bit } => {
                    files.get_mut(name).expect("it is there")[*at] ^= 1 << bit;
                }
            }
        }
        files
    }
}

/// A bit in every piece of a file.
fn flips(sample: &Sample, name: &str, seed: u64) -> Vec<Damage> {
    let mut random = Random::new(seed);
    let length = sample.files[name].len();
    let mut damages = Vec::new();
    for start in (0..length).step_by(PIECE_BYTES) {
        let at = start + random.below(PIECE_BYTES.min(length - start));
        let bit = random.below(8) as u8;
        let damage = Damage::new(format!("bit {bit} of byte {at} of {length} of {name} flipped"));
        damages.push(damage.with(name, Change::Flip { at, bit }));
    }
    damages
}

/// Flipped bits in tables.
pub fn flips_in_tables(sample: &Sample) -> Vec<Damage> {
    sample.names(".table").iter().flat_map(|name| flips(sample, name, 1)).collect()
}

/// Flipped bits in the log. What was synced before something later was written
/// has a witness.
pub fn flips_in_logs(sample: &Sample) -> Vec<Damage> {
    let logs = sample.logs();
    let flips = logs.iter().flat_map(|name| flips(sample, name, 2));
    flips.map(|damage| damage.with_batches(sample.witnessed)).collect()
}

/// Flipped bits in manifest, `CURRENT` and options.
pub fn flips_in_administration(sample: &Sample) -> Vec<Damage> {
    let names = ["MANIFEST-", "CURRENT", "OPTIONS-"].iter().flat_map(|part| sample.names(part));
    let names: Vec<String> = names.collect();
    names.iter().flat_map(|name| flips(sample, name, 3)).collect()
}

fn swapped(sample: &Sample, a: &str, b: &str) -> Damage {
    Damage::new(format!("{a} and {b} swapped"))
        .with(a, Change::Bytes(sample.files[b].clone()))
        .with(b, Change::Bytes(sample.files[a].clone()))
}

/// Two tables or two segments under each other's name.
pub fn swapped_names(sample: &Sample) -> Vec<Damage> {
    let mut damages = Vec::new();
    for names in [sample.names(".table"), sample.logs()] {
        for (i, a) in names.iter().enumerate() {
            damages.extend(names[i + 1..].iter().map(|b| swapped(sample, a, b)));
        }
    }
    damages
}

/// Blocks in each other's place: neighbours in a table, and blocks of one
/// length of a table and of several.
pub fn swapped_blocks(sample: &Sample) -> Vec<Damage> {
    let tables = sample.names(".table");
    let mut damages = Vec::new();
    for table in &tables {
        let bytes = &sample.files[table];
        for pair in sample.blocks(table).windows(2) {
            let [(first, length), (second, more)] = [pair[0], pair[1]];
            let mut changed = bytes.clone();
            changed[first..first + more].copy_from_slice(&bytes[second..second + more]);
            changed[first + more..second + more].copy_from_slice(&bytes[first..first + length]);
            let what = format!("blocks at {first} and {second} of {table} swapped");
            damages.push(Damage::new(what).with(table, Change::Bytes(changed)));
        }
    }
    for (i, a) in tables.iter().enumerate() {
        for b in &tables[i..] {
            damages.extend(same_length_swapped(sample, a, b));
        }
    }
    damages
}

fn same_length_swapped(sample: &Sample, a: &str, b: &str) -> Option<Damage> {
    let others = sample.blocks(b);
    let pair = sample.blocks(a).into_iter().find_map(|(at, length)| {
        let is_other = |&&(other, other_length): &&(usize, usize)| {
            length == other_length && (a != b || at != other)
        };
        others.iter().rfind(is_other).map(|&(other, _)| (at, other, length))
    });
    let (at, other, length) = pair?;
    let mut files = sample.files.clone();
    let taken = files[a][at..at + length].to_vec();
    let given = sample.files[b][other..other + length].to_vec();
    files.get_mut(a)?[at..at + length].copy_from_slice(&given);
    files.get_mut(b)?[other..other + length].copy_from_slice(&taken);
    let what = format!("block at {at} of {a} and block at {other} of {b} swapped");
    let damage = Damage::new(what).with(a, Change::Bytes(files[a].clone()));
    Some(damage.with(b, Change::Bytes(files[b].clone())))
}

/// Tables that are gone, or end too early.
pub fn lost_tables(sample: &Sample) -> Vec<Damage> {
    let mut damages = Vec::new();
    for table in sample.names(".table") {
        damages.push(Damage::new(format!("{table} missing")).with(&table, Change::Gone));
        let bytes = &sample.files[&table];
        for length in [0, 1, 31, 32, 100, bytes.len() / 2, bytes.len() - 21, bytes.len() - 1] {
            let what = format!("{table} cut to {length} of {} bytes", bytes.len());
            let cut = Change::Bytes(bytes[..length].to_vec());
            damages.push(Damage::new(what).with(&table, cut));
        }
        let longer = [bytes, &[0; 20][..]].concat();
        damages.push(
            Damage::new(format!("{table} with zeros behind it"))
                .with(&table, Change::Bytes(longer)),
        );
    }
    damages
}

/// `CURRENT` empty, pointing to nothing, malformed or missing.
pub fn lost_current(sample: &Sample) -> Vec<Damage> {
    let manifest = &sample.names("MANIFEST-")[0];
    let other = String::from_utf8(sample.files["CURRENT"].clone()).expect("it is text");
    let other = other.replace(&manifest[..], "MANIFEST-000001");
    let bytes = |text: &str| Change::Bytes(text.as_bytes().to_vec());
    let current =
        |what: &str, change| Damage::new(format!("CURRENT {what}")).with("CURRENT", change);
    vec![
        current("empty", bytes("")),
        current("with another name", bytes(&other)),
        current("with a name alone", bytes(&format!("{manifest}\n"))),
        current("of zeros", Change::Bytes(vec![0; 60])),
        current("missing", Change::Gone),
        Damage::new("the manifest missing".to_string()).with(manifest, Change::Gone),
        Damage::new("the manifest empty".to_string()).with(manifest, bytes("")),
        current("and the manifest missing", Change::Gone).with(manifest, Change::Gone),
    ]
}

/// The manifest and `CURRENT` of an earlier moment in place of the newest, with
/// the newest manifest beside them or without it.
pub fn older_manifests(sample: &Sample) -> Vec<Damage> {
    let newest = &sample.names("MANIFEST-")[0];
    let mut damages = Vec::new();
    for (moment, older) in sample.older_manifests.iter().enumerate() {
        for keeps_newest in [true, false] {
            let mut damage = Damage::new(format!(
                "the manifest of moment {moment} restored, the newest beside it: {keeps_newest}"
            ));
            if !keeps_newest && !older.contains_key(newest) {
                damage = damage.with(newest, Change::Gone);
            }
            for (name, bytes) in older {
                damage = damage.with(name, Change::Bytes(bytes.clone()));
            }
            // A log that knows of later edits, or a table that is gone since,
            // tells; the error may name those.
            damages.push(damage.blame(".table").blame(".wal"));
        }
    }
    damages
}

/// Segments cut at a record's border, missing, empty or another database's.
pub fn lost_logs(sample: &Sample) -> Vec<Damage> {
    let logs = sample.logs();
    let newest = logs.last().expect("there are logs");
    let mut damages = Vec::new();
    let mut before = 0;
    for log in &logs {
        let offsets = sample.batch_offsets(log);
        let batches = offsets.len() as u64 - 1;
        for (index, &offset) in offsets[..offsets.len() - 1].iter().enumerate() {
            let what = format!("{log} cut before batch {}", before + index as u64 + 1);
            let cut = sample.files[log][..offset].to_vec();
            let damage = Damage::new(what).with(log, Change::Bytes(cut));
            let least = sample.witnessed.max(before + index as u64);
            damages.push(damage.with_batches(least));
        }
        let least = sample.witnessed.max(if log == newest { before } else { 0 });
        for (what, change) in [("missing", Change::Gone), ("empty", Change::Bytes(Vec::new()))] {
            let damage = Damage::new(format!("{log} {what}")).with(log, change);
            damages.push(damage.with_batches(least));
        }
        before += batches;
    }
    for (index, bytes) in sample.foreign_logs.iter().enumerate() {
        let what = format!("{newest} replaced by that of another database ({index})");
        // That it is a copy's may show only by what it says of others.
        let damage = Damage::new(what).with(newest, Change::Bytes(bytes.clone()));
        damages.push(if index > 0 { damage.blame(".wal") } else { damage });
    }
    damages
}

/// Files that are not ours: they are no damage, and stay.
pub fn foreign_files() -> Vec<Damage> {
    let names = ["notes.txt", "000001.ldb", "table", "000009.table.bak", ".hidden", "MANIFEST-"];
    let file = |name: &&str| {
        let bytes = Change::Bytes(b"not ours".to_vec());
        Damage::new(format!("a file {}", Path::new(DIRECTORY).join(name).display()))
            .with(name, bytes)
    };
    names.iter().map(file).collect()
}
