//! What every engine must do in the same way, asked of each that this program
//! was built with.

use tempfile::TempDir;

use super::*;
use crate::engine::{Changes, Direction};
use crate::lanes::{Codec, Lane};

fn opened(kind: EngineKind, directory: &Path, settings: &Settings) -> Box<dyn Engine> {
    match open(kind, directory, settings) {
        Ok(engine) => engine,
        Err(failure) => panic!("{} does not open: {failure}", kind.name()),
    }
}

/// Every engine, new and empty, in every lane.
fn for_each(test: impl Fn(EngineKind, &dyn Engine)) {
    for kind in EngineKind::compiled() {
        for lane in [Lane::Defaults, Lane::Equal, Lane::Mapped, Lane::Tuned] {
            let directory = TempDir::new().expect("a temporary directory");
            let settings = lane.settings(kind, None);
            let engine = opened(kind, directory.path(), &settings);
            test(kind, &*engine);
        }
    }
}

fn value(engine: &dyn Engine, key: &[u8]) -> Option<Vec<u8>> {
    let mut found = None;
    let is_found = engine.get(key, &mut |value| found = Some(value.to_vec())).expect("a lookup");
    assert_eq!(is_found, found.is_some());
    found
}

fn keys(engine: &dyn Engine, from: Option<&[u8]>, way: Direction, limit: u64) -> String {
    let mut keys = String::new();
    let visit = &mut |key: &[u8], value: &[u8]| {
        assert_eq!(value, [key, b"!"].concat());
        keys.push_str(&String::from_utf8_lossy(key));
        true
    };
    engine.scan(from, way, limit, visit).expect("a scan");
    keys
}

/// What is written is found, what is deleted is not, whichever call did it.
#[test]
fn writes_are_found() {
    for_each(|kind, engine| {
        engine.put(b"a", b"1").expect("a put");
        engine.put_synced(b"b", b"2").expect("a put");
        let mut changes = Changes::default();
        changes.put(b"c", b"3");
        changes.delete(b"a");
        changes.put(b"d", b"");
        engine.write(&changes).expect("a batch");
        engine.delete(b"b").expect("a deletion");
        engine.wait_until_quiet().expect("quiet");
        let found = [b"a", b"b", b"c", b"d"].map(|key| value(engine, key));
        assert_eq!(found, [None, None, Some(b"3".to_vec()), Some(vec![])], "{}", kind.name());
    });
}

/// Lookups of many keys find each key's value, in any order, and say nothing of
/// those that are not there.
#[test]
fn many_keys_are_found() {
    for_each(|kind, engine| {
        for key in ["k1", "k2", "k3"] {
            engine.put(key.as_bytes(), key.as_bytes()).expect("a put");
        }
        let wanted: Vec<Vec<u8>> = ["k3", "none", "k1"].map(|k| k.as_bytes().to_vec()).into();
        let mut found = vec![None; 3];
        let visit = &mut |at: usize, value: &[u8]| found[at] = Some(value.to_vec());
        engine.multi_get(&wanted, visit).expect("lookups");
        let expected = [Some(b"k3".to_vec()), None, Some(b"k1".to_vec())];
        assert_eq!(found, expected, "{}", kind.name());
    });
}

/// Scans begin where they should, between keys and beyond them, go both ways
/// and end at their limit or where they are told.
#[test]
fn scans_go_both_ways() {
    for_each(|kind, engine| {
        for key in ["b", "d", "f", "h"] {
            engine.put(key.as_bytes(), format!("{key}!").as_bytes()).expect("a put");
        }
        let (on, back) = (Direction::Forward, Direction::Backward);
        for (from, way, limit, expected) in [
            (None, on, 9, "bdfh"),
            (None, back, 9, "hfdb"),
            (Some("d"), on, 2, "df"),
            (Some("e"), on, 9, "fh"),
            (Some("i"), on, 9, ""),
            (Some("d"), back, 9, "db"),
            (Some("e"), back, 1, "d"),
            (Some("i"), back, 9, "hfdb"),
            (Some("a"), back, 9, ""),
            (None, on, 0, ""),
        ] {
            let found = keys(engine, from.map(str::as_bytes), way, limit);
            assert_eq!(found, expected, "{} from {from:?} {way:?}", kind.name());
        }
        let mut seen = 0;
        let visit = &mut |_: &[u8], _: &[u8]| {
            seen += 1;
            seen < 2
        };
        engine.scan(None, on, 9, visit).expect("a scan");
        assert_eq!(seen, 2, "{}", kind.name());
    });
}

/// What was written is there when the database is opened again.
#[test]
fn entries_outlive_the_engine() {
    for kind in EngineKind::compiled() {
        let directory = TempDir::new().expect("a temporary directory");
        let settings = Lane::Equal.settings(kind, None);
        let engine = opened(kind, directory.path(), &settings);
        engine.put(b"a", b"1").expect("a put");
        engine.wait_until_quiet().expect("quiet");
        drop(engine);
        let engine = opened(kind, directory.path(), &settings);
        assert_eq!(value(&*engine, b"a"), Some(b"1".to_vec()), "{}", kind.name());
    }
}

/// What cannot be opened is an error that names the engine, and nothing hangs.
#[test]
fn failures_name_the_engine() {
    for kind in EngineKind::compiled() {
        let directory = TempDir::new().expect("a temporary directory");
        let file = directory.path().join("file");
        std::fs::write(&file, b"no database").expect("a file");
        let settings = Lane::Equal.settings(kind, None);
        let Err(failure) = open(kind, &file, &settings) else {
            panic!("{} opened a file as a directory", kind.name());
        };
        assert!(!failure.to_string().is_empty());
    }
}

/// A codec that an engine lacks is no failure of the run: it is told by name.
#[test]
fn missing_codecs_are_told() {
    for (kind, codec) in [(EngineKind::LevelDb, Codec::Lz4), (EngineKind::Fjall, Codec::Snappy)] {
        let directory = TempDir::new().expect("a temporary directory");
        let settings = Settings { codec: Some(codec), ..Settings::default() };
        match open(kind, directory.path(), &settings) {
            Err(Failure::Cannot(reason)) if kind.is_compiled() => {
                assert!(reason.to_lowercase().contains(kind.name()), "{reason}");
            }
            Err(Failure::Usage(reason)) if !kind.is_compiled() => {
                assert!(reason.contains(kind.name()), "{reason}");
            }
            _ => panic!("{} was opened with {codec:?}", kind.name()),
        }
    }
}

/// Versions come from what the program is linked with, or its lock file.
#[test]
fn versions_are_known() {
    for kind in [EngineKind::Fjall, EngineKind::Redb, EngineKind::RocksDb, EngineKind::Lmdb] {
        let version = version(kind);
        assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{}: {version}", kind.name());
    }
    assert_eq!(locked_version("no such package"), "unknown");
}
