//! Every file of the corpora, and every input that once broke a promise, on
//! each target: within the limits, and with the checks of production.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use lodestore_fuzz::{TARGETS, Target, corpus, limits};

/// An input that runs for so long hangs.
const HANG: Duration = Duration::from_secs(60);
const CORPUS_FILES_MAX: usize = 50;
const CORPORA_BYTES_MAX: usize = 1 << 20;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files below `kind`, by name.
fn inputs(kind: &str, target: &Target) -> BTreeMap<PathBuf, Vec<u8>> {
    let directory = root().join(kind).join(target.name);
    let Ok(entries) = std::fs::read_dir(&directory) else { return BTreeMap::new() };
    let read = |path: PathBuf| (path.clone(), std::fs::read(path).expect("it can be read"));
    entries.map(|entry| read(entry.expect("it can be listed").path())).collect()
}

/// Runs an input on a thread of its own, so that a hang is told from slowness.
fn run(target: &'static Target, path: &Path, bytes: Vec<u8>) {
    let (done, ended) = channel();
    let thread = std::thread::spawn(move || {
        limits::run(target, &bytes);
        done.send(()).expect("somebody waits");
    });
    let (name, path) = (target.name, path.display());
    match ended.recv_timeout(HANG) {
        Ok(()) => {}
        Err(RecvTimeoutError::Timeout) => panic!("{name} hangs on {path}"),
        Err(RecvTimeoutError::Disconnected) => {
            let again = format!("cargo run -p lodestore-fuzz --bin repeat -- {name} {path}");
            panic!("{name} fails on {path}; again: {again}");
        }
    }
    thread.join().expect("it has ended");
}

/// Real files, and what was made of them.
#[test]
fn every_input_of_the_corpora_keeps_the_promises() {
    for target in TARGETS {
        let files = inputs("corpus", target);
        assert!(!files.is_empty(), "{} has no corpus", target.name);
        files.into_iter().for_each(|(path, bytes)| run(target, &path, bytes));
    }
}

/// What was found once is not found again.
#[test]
fn every_input_that_was_found_keeps_the_promises() {
    let mut found = 0;
    for target in TARGETS {
        for (path, bytes) in inputs("regressions", target) {
            run(target, &path, bytes);
            found += 1;
        }
    }
    assert!(found > 0, "the regressions are not where they should be");
}

/// The corpora are files of the formats of today, so that mutation begins with
/// what the decoders accept. After a change of a format they are made anew.
#[test]
fn corpora_are_what_the_engine_writes() {
    let mut bytes = 0;
    for (name, made) in corpus::make() {
        let target = lodestore_fuzz::targets::named(name).expect("it is a target");
        let files = inputs("corpus", target);
        let names = files.keys().filter_map(|path| path.file_name()?.to_str());
        let again = "make them anew: cargo run -p lodestore-fuzz --bin corpus";
        assert!(names.eq(made.keys()), "other inputs in corpus/{name}: {again}");
        for (path, input) in &files {
            let name = path.file_name().and_then(|name| name.to_str()).expect("it has a name");
            assert!(made[name] == *input, "{} is another now: {again}", path.display());
            bytes += input.len();
        }
        assert!(files.len() <= CORPUS_FILES_MAX, "{name} has {} files", files.len());
    }
    assert!(bytes <= CORPORA_BYTES_MAX, "{bytes} bytes of corpora");
}
