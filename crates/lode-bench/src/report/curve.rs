//! Pictures of a course in time: a rate with stalls behind it, and levels on
//! top of each other.

use std::fmt::Write as _;

use super::html::{escape, fill};
use super::scale::{Axis, short};

/// Size of a picture; the plot is within these margins.
const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = WIDTH - 8.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = HEIGHT - 22.0;

/// A stretch of time with a rate in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Its begin, in seconds.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// Operations a second in it.
    pub rate: f64,
    /// The part of it that writers were held back, from 0 to 1.
    pub stalled: f64,
}

/// The rate of each stretch as a line of steps; stalls are behind it, the
/// darker the longer. There is at least one stretch.
pub fn rates(label: &str, stretches: &[Stretch]) -> String {
    let high = stretches.iter().map(|s| s.rate).fold(0.0, f64::max);
    let end = stretches.last().map_or(1.0, |s| s.to);
    let (x, y) = (Axis::exact(end, LEFT, RIGHT), Axis::even(high, BOTTOM, TOP));
    let mut svg = open(label);
    for stretch in stretches.iter().filter(|s| s.stalled > 0.0) {
        let (from, to) = (x.at(stretch.from), x.at(stretch.to));
        let _ = writeln!(
            svg,
            "<rect class=\"stall\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\" \
             opacity=\"{:.2}\"><title>held back {:.0} % of the time</title></rect>",
            (to - from).max(0.5),
            BOTTOM - TOP,
            0.08 + 0.5 * stretch.stalled,
            100.0 * stretch.stalled,
        );
    }
    frame(&mut svg, x, y, &short);
    let mut path = String::new();
    for (at, stretch) in stretches.iter().enumerate() {
        let command = if at == 0 { 'M' } else { 'L' };
        let (from, to, level) = (x.at(stretch.from), x.at(stretch.to), y.at(stretch.rate));
        let _ = write!(path, "{command}{from:.1} {level:.1}H{to:.1}");
    }
    let _ = writeln!(svg, "<path class=\"curve\" d=\"{path}\"/>");
    svg + "</svg>\n"
}

/// Layers on top of each other: `layers[n]` has a height for each of `times`
/// and the colour n. There are at least two times.
pub fn layers(
    label: &str,
    times: &[f64],
    layers: &[Vec<f64>],
    unit: &dyn Fn(f64) -> String,
) -> String {
    let sum = |at: usize| layers.iter().map(|layer| layer[at]).sum::<f64>();
    let high = (0..times.len()).map(sum).fold(0.0, f64::max);
    let end = times.last().copied().unwrap_or(1.0);
    let (x, y) = (Axis::exact(end, LEFT, RIGHT), Axis::even(high, BOTTOM, TOP));
    let mut svg = open(label);
    let mut below = vec![0.0; times.len()];
    for (at, layer) in layers.iter().enumerate() {
        let above: Vec<f64> = below.iter().zip(layer).map(|(low, height)| low + height).collect();
        if layer.iter().any(|&height| height > 0.0) {
            let point =
                |(time, height): (&f64, &f64)| format!("{:.1} {:.1}", x.at(*time), y.at(*height));
            let there = times.iter().zip(&above).map(point);
            let back = times.iter().zip(&below).rev().map(point);
            let points: Vec<String> = there.chain(back).collect();
            let _ = writeln!(svg, "<path class=\"{}\" d=\"M{}Z\"/>", fill(at), points.join("L"));
        }
        below = above;
    }
    frame(&mut svg, x, y, unit);
    svg + "</svg>\n"
}

/// The beginning of a picture that says `label` to those who don't see it.
fn open(label: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
        escape(label)
    )
}

/// Axes with their marks: seconds below, `unit` on the left.
fn frame(svg: &mut String, x: Axis, y: Axis, unit: &dyn Fn(f64) -> String) {
    for mark in y.marks() {
        let at = y.at(mark);
        let _ = writeln!(
            svg,
            "<path class=\"rule\" d=\"M{LEFT} {at:.1}H{RIGHT}\"/><text x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\">{}</text>",
            LEFT - 4.0,
            at + 4.0,
            escape(&unit(mark))
        );
    }
    for mark in x.marks() {
        let at = x.at(mark);
        // The last one would stand out on the right.
        let anchor = if at > RIGHT - 12.0 { "end" } else { "middle" };
        let _ = writeln!(
            svg,
            "<path class=\"rule\" d=\"M{at:.1} {BOTTOM}v4\"/><text x=\"{at:.1}\" y=\"{:.1}\" \
             text-anchor=\"{anchor}\">{} s</text>",
            HEIGHT - 4.0,
            short(mark)
        );
    }
}
