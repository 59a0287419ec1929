//! `--html`: the report as one page in one file, without scripts, for screens
//! of any width and for paper.

use std::fmt::Write as _;

use crate::pulse::report::Report;

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8884;--mark:#0a6ebd}\
body{font:16px/1.5 system-ui,sans-serif;max-width:56rem;margin:0 auto;padding:1rem}\
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}\
table{border-collapse:collapse;width:100%}\
th,td{text-align:left;padding:.25rem .5rem;border-bottom:1px solid var(--line);vertical-align:top}\
td{overflow-wrap:anywhere}.wide{overflow-x:auto}\
.rounds td,.rounds th{text-align:right;font-variant-numeric:tabular-nums;overflow-wrap:normal}\
.rounds td{white-space:nowrap}\
figure{margin:1rem 0;break-inside:avoid}figcaption{font-weight:600}\
svg{width:100%;max-width:36rem;height:auto;display:block}\
svg text{font:11px system-ui,sans-serif;fill:currentColor}\
.axis{stroke:var(--line);stroke-width:1;fill:none}\
.plot{stroke:var(--mark);stroke-width:1.5;fill:none}.dot{fill:var(--mark)}\
h2{break-after:avoid}\
@media print{body{max-width:none;padding:0;font-size:11pt}tr{break-inside:avoid}}";

/// A chart's size in its own units, about those of a phone, and its margins.
const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 160.0;
const LEFT: f64 = 44.0;
const BOTTOM: f64 = 20.0;
const TOP: f64 = 8.0;
/// With more rounds than this, points would only blur the line.
const DOTS_MAX: usize = 60;

/// The page.
pub fn html(report: &Report) -> String {
    let title = format!("lode pulse: {}", report.stream.shape.name());
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{title}</title><style>{STYLE}</style></head>\n<body><h1>{title}</h1>\n\
         <p>{}</p>\n",
        escaped(&report.verdict())
    );
    page.push_str("<h2>Result</h2>\n");
    push_rows(&mut page, &report.figures());
    page.push_str("<h2>Over time</h2>\n");
    push_charts(&mut page, report);
    page.push_str("<h2>Settings</h2>\n");
    push_rows(&mut page, &report.settings());
    page.push_str("<h2>Rounds</h2>\n");
    push_rounds(&mut page, report);
    page.push_str("</body></html>\n");
    page
}

fn push_rows(page: &mut String, rows: &[(&str, String)]) {
    page.push_str("<table>");
    for (label, text) in rows {
        let _ = writeln!(page, "<tr><th scope=\"row\">{label}</th><td>{}</td></tr>", escaped(text));
    }
    page.push_str("</table>\n");
}

fn push_charts(page: &mut String, report: &Report) {
    let rounds = &report.rounds;
    let reads = rounds.iter().map(|r| Some(r.read_seconds));
    push_chart(page, "Seconds to read", reads.collect());
    let writes = rounds.iter().map(|r| Some(r.writes.as_ref()?.seconds));
    push_chart(page, "Seconds to write", writes.collect());
    let device = rounds.iter().map(|r| Some(r.device_bytes_per_key()? / 1024.0));
    push_chart(page, "KiB from devices for each key", device.collect());
    let memory = rounds.iter().map(|r| Some(r.peaks.rss_bytes as f64 / f64::from(1 << 20)));
    push_chart(page, "Peak resident MiB", memory.collect());
}

/// A line over the rounds, from zero up; nothing if a round has no figure.
fn push_chart(page: &mut String, caption: &str, figures: Option<Vec<f64>>) {
    let Some(figures) = figures.filter(|figures| !figures.is_empty()) else {
        return;
    };
    let most = figures.iter().copied().fold(0.0, f64::max);
    let top = if most > 0.0 { most } else { 1.0 };
    let steps = (figures.len() - 1).max(1) as f64;
    let point = |(at, figure): (usize, &f64)| {
        let x = LEFT + (WIDTH - LEFT - 8.0) * at as f64 / steps;
        (x, TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - figure / top))
    };
    let points: Vec<(f64, f64)> = figures.iter().enumerate().map(point).collect();
    let line: String = points.iter().map(|(x, y)| format!("{x:.1},{y:.1} ")).collect();
    let floor = HEIGHT - BOTTOM;
    let _ = write!(
        page,
        "<figure><figcaption>{caption}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{caption}\">\
         <path class=\"axis\" d=\"M{LEFT} {TOP}V{floor}H{WIDTH}M{LEFT} {TOP}H{WIDTH}\"/>\
         <text x=\"{LEFT}\" y=\"{TOP}\" dx=\"-4\" dy=\"8\" text-anchor=\"end\">{}</text>\
         <text x=\"{LEFT}\" y=\"{floor}\" dx=\"-4\" text-anchor=\"end\">0</text>\
         <text x=\"{LEFT}\" y=\"{HEIGHT}\" dy=\"-4\">first round</text>\
         <text x=\"{WIDTH}\" y=\"{HEIGHT}\" dx=\"-8\" dy=\"-4\" text-anchor=\"end\">last</text>\
         <polyline class=\"plot\" points=\"{}\"/>",
        figure_text(most),
        line.trim_end(),
    );
    if points.len() <= DOTS_MAX {
        for (x, y) in points {
            let _ = write!(page, "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>");
        }
    }
    page.push_str("</svg></figure>\n");
}

fn push_rounds(page: &mut String, report: &Report) {
    page.push_str(
        "<div class=\"wide\"><table class=\"rounds\"><tr><th>round</th><th>keys read</th>\
         <th>seconds to read</th><th>blocks a key</th><th>KiB a key</th><th>cache hits</th>\
         <th>added</th><th>deleted</th><th>seconds to write</th></tr>\n",
    );
    for round in &report.rounds {
        let mut cells = vec![
            round.round.to_string(),
            round.reads.to_string(),
            format!("{:.3}", round.read_seconds),
            format!("{:.2}", round.blocks_per_key()),
            round.device_bytes_per_key().map_or("".into(), |b| format!("{:.2}", b / 1024.0)),
            round.cache_hit_rate.map_or("".into(), |rate| format!("{:.1} %", rate * 100.0)),
        ];
        match &round.writes {
            Some(w) => {
                let figures = [w.adds.to_string(), w.deletes.to_string()];
                cells.extend(figures.into_iter().chain([format!("{:.3}", w.seconds)]));
            }
            None => cells.extend(std::iter::repeat_n(String::new(), 3)),
        }
        let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
        let _ = writeln!(page, "<tr>{cells}</tr>");
    }
    page.push_str("</table></div>\n");
}

fn figure_text(figure: f64) -> String {
    match figure {
        f if f >= 100.0 => format!("{f:.0}"),
        f if f >= 1.0 => format!("{f:.2}"),
        f => format!("{f:.3}"),
    }
}

/// `text` inside HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pulse::report::tests::report;

    /// The page needs nothing but itself, and shows what the summary shows.
    #[test]
    fn page_is_whole_and_self_contained() {
        let report = report();
        let page = html(&report);
        for outside in ["http", "src=", "href=", "@import", "<script", "url("] {
            assert!(!page.contains(outside), "the page asks for {outside}");
        }
        for (label, text) in report.figures() {
            assert!(page.contains(label) && page.contains(&escaped(&text)), "{label} is missing");
        }
        assert_eq!(page.matches("<svg").count(), 4);
        assert_eq!(page.matches("<tr><td>").count(), report.rounds.len());
        for element in ["table", "figure", "svg", "div", "tr", "td", "th", "body", "html"] {
            let opened = page.matches(&format!("<{element}>")).count()
                + page.matches(&format!("<{element} ")).count();
            assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "{element}");
        }
    }

    /// Paths cannot break out of the page; a run without rounds has a page too.
    #[test]
    fn texts_are_escaped() {
        let mut report = report();
        assert!(html(&report).contains("/data/&lt;utxo&gt; &amp; more"));
        report.rounds.clear();
        assert!(!html(&report).contains("<svg"));
    }

    /// Lines are lines: a path or a polyline that nobody says to leave empty is
    /// filled with black.
    #[test]
    fn lines_are_not_filled() {
        let page = html(&report());
        for element in ["<path class=\"", "<polyline class=\""] {
            for part in page.split(element).skip(1) {
                let class = part.split('"').next().expect("a class has an end");
                let rule = STYLE.split(&format!(".{class}{{")).nth(1).expect(class);
                assert!(rule.split('}').next().is_some_and(|r| r.contains("fill:none")), "{class}");
            }
        }
    }

    /// The highest figure touches the top, zero the axis.
    #[test]
    fn chart_is_drawn_from_zero() {
        let mut page = String::new();
        push_chart(&mut page, "x", Some(vec![0.0, 4.0, 2.0]));
        assert!(page.contains("points=\"44.0,140.0 218.0,8.0 392.0,74.0\""), "{page}");
    }
}
