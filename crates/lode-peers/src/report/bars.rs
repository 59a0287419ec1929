//! A picture with a bar for each line: how many times as long a peer takes, on
//! a logarithmic axis. Bars to the left of 1 are losses.

use std::fmt::Write as _;

use lode_bench::report::html::escape;

const WIDTH: f64 = 360.0;
const MARGIN: f64 = 12.0;
/// A row is a name and, below it, its bar.
const ROW: f64 = 34.0;
const AXIS: f64 = 22.0;

/// A bar: its name, the ratio and its interval, and the class of its colour.
pub struct Bar {
    /// Its name.
    pub name: String,
    /// Low end, median, high end; all above 0.
    pub ratio: [f64; 3],
    /// A class of the style sheet.
    pub class: &'static str,
}

/// The picture of `bars`. The axis reaches as far to the left as to the right
/// of 1, a power of two.
pub fn picture(label: &str, bars: &[Bar]) -> String {
    let far = |bar: &Bar| bar.ratio.iter().map(|r| r.log2().abs()).fold(0.0, f64::max);
    let reach = bars.iter().map(far).fold(1.0, f64::max).ceil();
    let x = |ratio: f64| {
        let part = (ratio.log2() + reach) / (2.0 * reach);
        MARGIN + (WIDTH - 2.0 * MARGIN) * part
    };
    let bottom = bars.len() as f64 * ROW;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"{}\">\n",
        bottom + AXIS,
        escape(label)
    );
    for mark in [2f64.powf(-reach), 1.0, 2f64.powf(reach)] {
        let at = x(mark);
        let _ = writeln!(
            svg,
            "<path class=\"rule\" d=\"M{at:.1} 0V{bottom:.1}\"/><text x=\"{at:.1}\" y=\"{:.1}\" \
             text-anchor=\"middle\">{}x</text>",
            bottom + 15.0,
            (mark * 1_000.0).round() / 1_000.0
        );
    }
    for (at, bar) in bars.iter().enumerate() {
        let top = at as f64 * ROW;
        let [low, median, high] = bar.ratio;
        let (from, to) = (x(1.0).min(x(median)), x(1.0).max(x(median)));
        let _ = writeln!(
            svg,
            "<text x=\"{MARGIN}\" y=\"{:.1}\">{}</text><rect class=\"{}\" x=\"{from:.1}\" \
             y=\"{:.1}\" width=\"{:.1}\" height=\"10\"><title>{median:.2} ({low:.2} to \
             {high:.2})</title></rect><path class=\"rule\" d=\"M{:.1} {y:.1}H{:.1}\"/>",
            top + 14.0,
            escape(&bar.name),
            bar.class,
            top + 19.0,
            (to - from).max(0.5),
            x(low),
            x(high),
            y = top + 24.0,
        );
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twice as long is half the way to four times as long; a loss goes left.
    #[test]
    fn bars_begin_at_one() {
        let bar = |name: &str, ratio: f64, class| Bar {
            name: name.to_string(),
            ratio: [ratio, ratio, ratio],
            class,
        };
        let svg = picture("x", &[bar("a<b", 4.0, "f0"), bar("c", 0.5, "stall")]);
        assert!(svg.contains("a&lt;b"), "{svg}");
        // From the middle, 180, all 168 to the right; a quarter of it to the left.
        assert!(svg.contains("class=\"f0\" x=\"180.0\" y=\"19.0\" width=\"168.0\""), "{svg}");
        assert!(svg.contains("class=\"stall\" x=\"96.0\" y=\"53.0\" width=\"84.0\""), "{svg}");
        assert!(svg.contains(">4x<") && svg.contains(">0.25x<"), "{svg}");
    }
}
