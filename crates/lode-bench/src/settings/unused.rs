//! Flags for single benchmarks that none of the chosen benchmarks looks at. They
//! are told of and not refused: one set of flags often serves for several runs.

use clap::Parser;
use lodestore::Compression;

use super::shapes;
use crate::flags::{ExpireStyle, Flags};
use crate::selection::Selected;

/// The flags of a command line without any.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Nothing {
    #[command(flatten)]
    flags: Flags,
}

/// Lookups that follow `--read_random_exp_range`.
const LOOKUPS: &[&str] =
    &["readrandom", "readrandomsmall", "readwhile*", "multireadrandom", "multireadwhilewriting"];

/// A note on each flag that changes nothing.
pub fn notes(flags: &Flags, list: &[Selected]) -> Vec<String> {
    let nothing = Nothing::parse_from([""; 0]).flags;
    let mut notes = single(flags, &nothing, list);
    notes.extend(mix(flags, &nothing, list));
    notes.extend(series(flags, &nothing, list));
    let codec = matches!(flags.engine.compression.compression, Compression::Zstd { .. });
    if flags.engine.compression_level.is_some()
        && !codec
        && !runs(list, &["zstdcomp", "zstduncomp"])
    {
        notes.push(useless("compression_level", "--compression=zstd, zstdcomp or zstduncomp"));
    }
    notes
}

fn useless(flag: &str, needs: &str) -> String {
    format!("--{flag} changes nothing here: it is for {needs}")
}

/// True if a benchmark of these names runs; a `*` ends the beginning of a name.
fn runs(list: &[Selected], names: &[&str]) -> bool {
    let matches = |name: &str, pattern: &&str| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == *pattern,
    };
    list.iter().any(|selected| names.iter().any(|pattern| matches(selected.workload.name, pattern)))
}

fn single(flags: &Flags, nothing: &Flags, list: &[Selected]) -> Vec<String> {
    let (given, default) = (&flags.single, &nothing.single);
    let seeks: &[&str] = &["seekrandom*"];
    let rows = [
        ("seek_nexts", given.seek_nexts != default.seek_nexts, seeks),
        ("reverse_iterator", given.reverse_iterator != default.reverse_iterator, seeks),
        ("read_random_exp_range", given.read_random_exp_range > 0.0, LOOKUPS),
        ("multiread_stride", given.multiread_stride != default.multiread_stride, &["multiread*"]),
        (
            "readwritepercent",
            given.readwritepercent != default.readwritepercent,
            &["readrandomwriterandom"],
        ),
        ("merge_keys", given.merge_keys != default.merge_keys, &["mergerandom"]),
    ];
    let unused = rows.into_iter().filter(|(_, given, names)| *given && !runs(list, names));
    unused.map(|(flag, _, names)| useless(flag, &names.join(", "))).collect()
}

fn mix(flags: &Flags, nothing: &Flags, list: &[Selected]) -> Vec<String> {
    let (given, default) = (&flags.mix, &nothing.mix);
    let numbers = shapes::named(given).into_iter().zip(shapes::named(default));
    let mut changed: Vec<&str> =
        numbers.filter(|(given, default)| given.1 != default.1).map(|(given, _)| given.0).collect();
    let others = [
        ("keyrange_num", given.keyrange_num != default.keyrange_num),
        ("mix_max_value_size", given.mix_max_value_size != default.mix_max_value_size),
        ("mix_max_scan_len", given.mix_max_scan_len != default.mix_max_scan_len),
        ("sine_mix_rate_noise", given.sine_mix_rate_noise != default.sine_mix_rate_noise),
        (
            "sine_mix_rate_interval_milliseconds",
            given.sine_mix_rate_interval_milliseconds
                != default.sine_mix_rate_interval_milliseconds,
        ),
    ];
    changed.extend(others.into_iter().filter(|(_, given)| *given).map(|(name, _)| name));
    let needs = |flag: &str| match runs(list, &["mixgraph"]) {
        false => Some("mixgraph"),
        true if flag.starts_with("sine_") && !given.sine_mix_rate => Some("--sine_mix_rate"),
        true => None,
    };
    changed.iter().filter_map(|flag| Some(useless(flag, needs(flag)?))).collect()
}

fn series(flags: &Flags, nothing: &Flags, list: &[Selected]) -> Vec<String> {
    let (given, default) = (&flags.series, &nothing.series);
    let deletes = given.expire_style == ExpireStyle::Delete;
    let rows = [
        ("key_id_range", given.key_id_range != default.key_id_range, false),
        ("expire_style", given.expire_style != default.expire_style, false),
        ("time_range", given.time_range != default.time_range, true),
        ("num_deletion_threads", given.num_deletion_threads != default.num_deletion_threads, true),
    ];
    let needs = |for_deletes: bool| match runs(list, &["timeseries"]) {
        false => Some("timeseries"),
        true if for_deletes && !deletes => Some("--expire_style=delete"),
        true => None,
    };
    let changed = rows.into_iter().filter(|(_, given, _)| *given);
    changed.filter_map(|(flag, _, deletes)| Some(useless(flag, needs(deletes)?))).collect()
}
