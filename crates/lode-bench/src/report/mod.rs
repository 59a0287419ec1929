//! `--report`: one page with plots that needs nothing else, no network and no
//! script. Told -> sections -> charts -> SVG inside HTML.
//!
//! Charts are 360 units wide, the width of a phone, and stand side by side
//! where there is room; colours are variables of the style sheet, so that the
//! page follows the reader's light or dark mode and prints on white. Losses and
//! stalls come first.

pub mod html;
mod scale;
mod bars;
mod curve;
mod sections;

use crate::document::Told;
use crate::numbers::date_text;
use crate::system;

/// The page of a run.
pub fn page(told: &Told<'_>) -> String {
    let title = format!("lode bench, {}", date_text(system::unix_seconds()));
    let body: String = [
        sections::heading(told, &title),
        sections::findings(told),
        sections::lines(told),
        sections::averages(told),
        sections::latencies(told),
        sections::courses(told),
        sections::stalls(told),
        sections::amplification(told),
        sections::levels(told),
        sections::settings(told),
    ]
    .concat();
    html::document(&title, &body)
}

#[cfg(test)]
mod tests;
