//! libFuzzer on the target that `LODE_FUZZ_TARGET` names: see `scripts/fuzz`.
//! `list` names none: it lists them, each with the length of its inputs.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use lodestore_fuzz::{TARGETS, Target, limits, targets};

static TARGET: OnceLock<&Target> = OnceLock::new();

fuzz_target!(
    init: {
        let name = std::env::var("LODE_FUZZ_TARGET").unwrap_or_default();
        if name == "list" {
            TARGETS.iter().for_each(|target| println!("{} {}", target.name, target.bytes_max));
            std::process::exit(0);
        }
        let target = targets::named(&name);
        TARGET.get_or_init(|| {
            target.unwrap_or_else(|| panic!("LODE_FUZZ_TARGET names no target: {name:?}"))
        });
    },
    |bytes: &[u8]| {
        limits::run(TARGET.get().expect("it was set at the start"), bytes);
    }
);
