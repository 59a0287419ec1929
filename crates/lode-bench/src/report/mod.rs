//! `--report`: one page with plots that needs nothing else, no network and no
//! script. Told -> sections -> charts -> SVG inside HTML.
//!
//! Charts are 360 units wide, the width of a phone, and stand side by side
//! where there is room; colours are variables of the style sheet, so that the
//! page follows the reader's light or dark mode and prints on white. Losses and
//! stalls come first.

mod html;
mod scale;
mod bars;
mod curve;
mod sections;

use crate::document::Told;
use crate::numbers::date_text;
use crate::system;

use html::escape;

const STYLE: &str = include_str!("style.css");

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
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        escape(&title)
    )
}

#[cfg(test)]
mod tests;
