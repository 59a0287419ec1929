//! What is printed before the lines: the machine, the data, the engine.
//! The labels are LevelDB's where it has them.

use std::fmt::Write as _;

use crate::directory::Directory;
use crate::numbers::bytes_text;
use crate::settings::{FAMILY, Settings};
use crate::system;

/// The header of a run.
pub fn text(settings: &Settings, directory: &Directory) -> String {
    let mut text = String::new();
    let mut row = |label: &str, value: String| {
        let _ = writeln!(text, "{label:<11} {value}");
    };
    let keys = settings.keys.key_bytes();
    let value = settings.value_bytes;
    let compressed = value as f64 * settings.compression_ratio;
    let mib = |bytes: f64| bytes * settings.num as f64 / f64::from(1 << 20);

    row("Lodestore:", format!("version {}", env!("CARGO_PKG_VERSION")));
    if let Some(processor) = system::processor() {
        row("CPU:", processor);
    }
    row("Keys:", format!("{keys} bytes each"));
    row("Values:", format!("{value} bytes each ({:.0} bytes after compression)", compressed));
    row("Entries:", settings.num.to_string());
    row("RawSize:", format!("{:.1} MB (estimated)", mib((keys + value) as f64)));
    row("FileSize:", format!("{:.1} MB (estimated)", mib(keys as f64 + compressed)));
    row("Threads:", settings.threads.to_string());
    row("Engine:", engine(settings));
    if let Some(path) = &settings.options_file {
        row("Options:", path.display().to_string());
    }
    row("Directory:", place(directory));
    if cfg!(debug_assertions) {
        row("WARNING:", "built without optimization: figures mean nothing".to_string());
    }
    for note in &settings.notes {
        row("Note:", note.clone());
    }
    text.push_str("------------------------------------------------\n");
    text
}

fn engine(settings: &Settings) -> String {
    let options = &settings.engine;
    let family = options.family_options(FAMILY);
    let bytes = |bytes: usize| bytes_text(bytes as u64);
    let filter = match family.filter_bits_per_key {
        0 => "no filter".to_string(),
        bits => format!("filter {bits} bits/key"),
    };
    let cache = match options.memory_bytes {
        // It is the rest of the limit then.
        Some(limit) => format!("all memory within {}", bytes(limit)),
        None => format!("cache {}", bytes(options.cache_bytes)),
    };
    let rows = match options.row_cache_bytes {
        0 => String::new(),
        rows => format!(", row cache {}", bytes(rows)),
    };
    let files = options.open_files_max.map_or(String::new(), |n| format!(", {n} open files"));
    format!(
        "memtable {}, table {}, block {}, {cache}{rows}{files}, {filter}, {}, log {}, {} \
         compaction threads",
        bytes(family.memtable_bytes),
        bytes_text(family.table_bytes),
        bytes(family.block_bytes),
        settings.codec.name,
        if options.logging { "on" } else { "off" },
        options.background_threads,
    )
}

fn place(directory: &Directory) -> String {
    let path = directory.path().display();
    if directory.is_temporary() { format!("{path} (removed at the end)") } else { path.to_string() }
}
