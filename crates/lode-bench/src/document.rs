//! `--json`: everything that a run tells, as one document.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::counts::Counts;
use crate::line::Line;
use crate::settings::{Settings, SettingsReport};
use crate::summary::Summary;
use crate::system;

/// Grows when a field changes its meaning or goes; new fields may come without.
const DOCUMENT_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    document_version: u32,
    lodestore_version: &'static str,
    unix_seconds: u64,
    processor: Option<String>,
    optimized: bool,
    directory: &'a Path,
    settings: SettingsReport,
    lines: &'a [Line],
    summary: &'a Summary,
    counters: BTreeMap<&'static str, u64>,
}

/// The document of a run.
pub fn text(
    settings: &Settings,
    directory: &Path,
    lines: &[Line],
    summary: &Summary,
    counts: &Counts,
) -> String {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let document = Document {
        document_version: DOCUMENT_VERSION,
        lodestore_version: env!("CARGO_PKG_VERSION"),
        unix_seconds: since_1970.map_or(0, |d| d.as_secs()),
        processor: system::processor(),
        optimized: !cfg!(debug_assertions),
        directory,
        settings: settings.report(),
        lines,
        summary,
        counters: counts.named().collect(),
    };
    serde_json::to_string_pretty(&document)
        .expect("maps have string keys, and nothing in here fails to serialize")
}
