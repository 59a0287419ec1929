//! The corpus of behaviour scripts in `testdata/scripts`.

use lodestore::MemFs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use testkit::model::Model;
use testkit::rust_api::RustApi;
use testkit::script;

fn corpus() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/scripts");
    let scripts = script::scripts(&directory).expect("the corpus is in the repository");
    assert!(scripts.len() >= 20, "only {} scripts were found", scripts.len());
    scripts
}

fn report(failures: Vec<String>) {
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Whatever a script says that the database answers, the Rust API answers.
#[test]
fn the_rust_api_behaves_as_every_script_says() {
    let run = |path: &PathBuf| {
        let mut surface = RustApi::new(Arc::new(MemFs::new()), "/scripts");
        script::run_file(path, &mut surface).err().map(|difference| {
            format!("{difference}; last error: {}", surface.last_error.unwrap_or_default())
        })
    };
    report(corpus().iter().filter_map(run).collect());
}

/// The oracle is tested too: by the same scripts, except those about what only
/// an engine has.
#[test]
fn the_oracle_behaves_as_every_script_says() {
    let about_the_engine = |path: &PathBuf| {
        std::fs::read_to_string(path).is_ok_and(|text| text.starts_with("# engine only"))
    };
    let run = |path: &PathBuf| script::run_file(path, &mut Model::default()).err();
    let scripts = corpus().into_iter().filter(|path| !about_the_engine(path));
    report(scripts.filter_map(|path| run(&path)).collect());
}
