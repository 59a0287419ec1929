//! Pictures with a row for each benchmark: latencies on a logarithmic axis, and
//! bars of several parts.

use std::fmt::Write as _;

use super::html::{escape, fill};
use super::scale::{Axis, short};

const WIDTH: f64 = 360.0;
const LEFT: f64 = 8.0;
const RIGHT: f64 = WIDTH - 12.0;
/// A row is a name and, below it, its picture.
const ROW: f64 = 34.0;
const AXIS: f64 = 22.0;

/// A row: its name, and a number for each colour.
pub struct Row {
    /// Its name.
    pub name: String,
    /// What is drawn.
    pub values: Vec<f64>,
}

/// A dot for each value, which is above 0, on a line from the first to the
/// last. There is at least one row with a value.
pub fn dots(label: &str, rows: &[Row], unit: &str) -> String {
    let values = || rows.iter().flat_map(|row| row.values.iter().copied());
    let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
    let x = Axis::powers(low, high, LEFT, RIGHT);
    let mut svg = open(label, rows.len());
    frame(&mut svg, x, rows.len(), &|mark| format!("{} {unit}", short(mark)));
    for (at, row) in rows.iter().enumerate() {
        let y = name(&mut svg, at, &row.name);
        let ends = (row.values.first(), row.values.last());
        if let (Some(&first), Some(&last)) = ends {
            let (from, to) = (x.at(first), x.at(last));
            let _ = writeln!(svg, "<path class=\"rule\" d=\"M{from:.1} {y:.1}H{to:.1}\"/>");
        }
        for (colour, &value) in row.values.iter().enumerate() {
            let _ = writeln!(
                svg,
                "<circle class=\"{}\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\"><title>{} {unit}</title>\
                 </circle>",
                fill(colour),
                x.at(value),
                short(value)
            );
        }
    }
    svg + "</svg>\n"
}

/// A bar for each row, of one part after the other. There is at least one row.
pub fn stacks(label: &str, rows: &[Row], unit: &dyn Fn(f64) -> String) -> String {
    let high = rows.iter().map(|row| row.values.iter().sum::<f64>()).fold(0.0, f64::max);
    let x = Axis::even(high, LEFT, RIGHT);
    let mut svg = open(label, rows.len());
    frame(&mut svg, x, rows.len(), unit);
    for (at, row) in rows.iter().enumerate() {
        let y = name(&mut svg, at, &row.name);
        let mut sum = 0.0;
        for (colour, value) in row.values.iter().enumerate() {
            let (from, to) = (x.at(sum), x.at(sum + value));
            sum += value;
            if *value > 0.0 {
                let _ = writeln!(
                    svg,
                    "<rect class=\"{}\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"10\">\
                     <title>{}</title></rect>",
                    fill(colour),
                    y - 5.0,
                    (to - from).max(0.5),
                    escape(&unit(*value))
                );
            }
        }
    }
    svg + "</svg>\n"
}

fn open(label: &str, rows: usize) -> String {
    let height = rows as f64 * ROW + AXIS;
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">\n",
        escape(label)
    )
}

/// Writes the name of row `at` and returns where its picture is.
fn name(svg: &mut String, at: usize, name: &str) -> f64 {
    let top = at as f64 * ROW;
    let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"{:.1}\">{}</text>", top + 14.0, escape(name));
    top + 24.0
}

fn frame(svg: &mut String, x: Axis, rows: usize, unit: &dyn Fn(f64) -> String) {
    let bottom = rows as f64 * ROW;
    for mark in x.marks() {
        let at = x.at(mark);
        let anchor = match at {
            at if at > RIGHT - 20.0 => "end",
            at if at < LEFT + 12.0 => "start",
            _ => "middle",
        };
        let _ = writeln!(
            svg,
            "<path class=\"rule\" d=\"M{at:.1} 0V{bottom:.1}\"/><text x=\"{at:.1}\" y=\"{:.1}\" \
             text-anchor=\"{anchor}\">{}</text>",
            bottom + 15.0,
            escape(&unit(mark))
        );
    }
}
