//! A frame as a JSON object.

use std::path::Path;
use std::time::Duration;

use lodestore::inspect::Status;
use serde_json::{Map, Value, json};

use super::source::{Files, Watched};

/// The frame. `source` tells where it comes from: `process`, `files` or, if
/// there is no database at the moment, `none`.
pub fn of(directory: &Path, watched: &Watched, family: Option<&str>) -> Value {
    let mut object = match watched {
        Watched::Process { status, age } => of_process(status, *age),
        Watched::Files { files, reason } => of_files(files, reason),
        Watched::Absent => json!({ "source": "none" }),
    };
    let levels: Vec<Value> = watched
        .levels(family)
        .iter()
        .enumerate()
        .map(|(number, level)| {
            json!({
                "level": number, "tables": level.files, "bytes": level.bytes,
                "entries": level.entries, "score": level.score,
            })
        })
        .collect();
    let families: Vec<String> = watched.families().into_iter().map(|family| family.name).collect();
    object["db"] = json!(directory.display().to_string());
    object["families"] = json!(families);
    object["levels"] = json!(levels);
    object
}

fn of_process(status: &Status, age: Duration) -> Value {
    let compactions: Vec<Value> = status
        .compactions
        .iter()
        .map(|of| {
            json!({
                "level_from": of.level_from, "level_to": of.level_to, "tables": of.tables,
                "bytes": of.bytes, "bytes_read": of.bytes_read,
                "seconds": of.elapsed.as_secs_f64(),
            })
        })
        .collect();
    let mut counters = Map::new();
    for of in &status.counters {
        counters.insert(of.name.clone(), json!({ "total": of.total, "in_window": of.in_window }));
    }
    let mut latencies = Map::new();
    for of in &status.latencies {
        let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
        let object = json!({
            "samples": of.samples, "mean_micros": micros(of.mean), "p50_micros": micros(of.p50),
            "p95_micros": micros(of.p95), "p99_micros": micros(of.p99),
            "p999_micros": micros(of.p999),
        });
        latencies.insert(of.name.clone(), object);
    }
    let sum = |of: fn(&lodestore::inspect::FamilyStatus) -> u64| {
        status.families.iter().map(of).sum::<u64>()
    };
    json!({
        "source": "process", "pid": status.pid, "age_seconds": age.as_secs(),
        "unix_seconds": status.unix_seconds, "uptime_seconds": status.uptime.as_secs_f64(),
        "window_seconds": status.window.as_secs_f64(),
        "memory_bytes": status.memory_bytes, "memory_bytes_max": status.memory_bytes_max,
        "cache_bytes": status.cache_bytes, "cache_bytes_max": status.cache_bytes_max,
        "memtable_bytes": sum(|family| family.memtable_bytes),
        "sealed_memtables": sum(|family| family.sealed_memtables as u64),
        "flushing_seconds": status.flushing.map(|time| time.as_secs_f64()),
        "snapshots": status.snapshots, "snapshot_lag": status.snapshot_lag,
        "errors": status.errors, "compactions": compactions, "counters": counters, "latencies": latencies,
    })
}

fn of_files(files: &Files, reason: &str) -> Value {
    let change = files.change.map(|change| {
        json!({
            "seconds": change.time.as_secs_f64(), "bytes_new": change.bytes_new,
            "bytes_gone": change.bytes_gone,
        })
    });
    json!({
        "source": "files", "reason": reason, "log_files": files.log_files,
        "log_bytes": files.log_bytes, "unreferenced_bytes": files.unreferenced_bytes,
        "change": change,
    })
}
