//! The JSON document.

use serde::Serialize;

use super::{Head, Told};
use crate::results::{Gap, Line, Sample};

/// Grows when a field changes its meaning or goes; new fields may come without.
const DOCUMENT_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    document_version: u32,
    head: &'a Head,
    lines: &'a [Line],
    gaps: &'a [Gap],
    samples: &'a [Sample],
}

/// Everything, single measurements included.
pub fn text(told: &Told) -> String {
    let Told { head, lines, gaps, samples } = told;
    let document = Document { document_version: DOCUMENT_VERSION, head, lines, gaps, samples };
    serde_json::to_string_pretty(&document)
        .expect("maps have string keys, and nothing in here fails to serialize")
}
