use super::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::counts::Counts;
use crate::flags::Flags;
use crate::histogram::Histogram;
use crate::line::{Around, Line};
use crate::settings::Settings;
use crate::summary::Summary;
use crate::timeline::Sample;
use crate::worker::Total;

#[derive(Debug, clap::Parser)]
#[command(no_binary_name = true)]
struct Typed {
    #[command(flatten)]
    flags: Flags,
}

fn settings() -> Settings {
    let typed = <Typed as clap::Parser>::try_parse_from(["--benchmarks=fillseq,readrandom"]);
    Settings::new(&typed.expect("valid").flags).expect("valid")
}

/// A line of a second with a sample each tenth; in the second half, writers
/// were held back for half of the time.
fn line(name: &str, samples: u64) -> Line {
    let mut histogram = Histogram::default();
    (1..2_000).for_each(|micros| histogram.add(Duration::from_micros(micros)));
    let elapsed = Duration::from_secs(1);
    let total = Total {
        ops: 1_000,
        thread_time: elapsed,
        elapsed,
        histogram: Some(histogram),
        ..Total::default()
    };
    let sample = |at: u64| Sample {
        seconds: at as f64 / 10.0,
        ops: at * 100,
        stall_seconds: at.saturating_sub(5) as f64 / 20.0,
        level_bytes: vec![at << 20, at << 22, 0],
        memtable_bytes: 1 << 20,
        ..Sample::default()
    };
    let samples = (0..samples).map(sample).collect();
    let mut line = Line::new(name, total, Around { samples, threads: 1, ..Around::default() });
    line.stall_seconds = 0.25;
    line.counters = BTreeMap::from([
        ("write.records", 1_000),
        ("write.user-bytes", 100),
        ("flush.bytes", 60),
        ("compaction.bytes-written", 140),
        ("stall.level0-micros", 250_000),
    ]);
    line
}

fn page_of(lines: &[Line]) -> String {
    let (settings, counts) = (settings(), Counts::default());
    let summary = Summary::new(lines, &counts, 0, false, None);
    let directory = Path::new("/data/<b>&co");
    let (averages, lines) = (&[][..], lines);
    let told = Told {
        settings: &settings,
        directory,
        lines,
        averages,
        summary: &summary,
        counts: &counts,
    };
    page(&told)
}

/// Every element that is opened is closed, in order; returns how many there are.
fn check_nesting(html: &str) -> usize {
    let (mut open, mut count) = (Vec::new(), 0);
    let style = html.find("<style>").expect("a style") + 7..html.find("</style>").expect("its end");
    let html = [&html[..style.start], &html[style.end..]].concat();
    let mut rest = &html[..];
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        assert!(!tag.contains('<'), "a tag within <{tag}>");
        let name = tag.trim_start_matches('/').split([' ', '/']).next().expect("a name");
        count += 1;
        match tag {
            tag if tag.starts_with('!') || tag.ends_with('/') || name == "meta" => {}
            tag if tag.starts_with('/') => assert_eq!(open.pop(), Some(name.to_string())),
            _ => open.push(name.to_string()),
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "{open:?} are not closed");
    count
}

/// The page needs nothing from anywhere, and is well-formed.
#[test]
fn page_stands_alone_and_is_well_formed() {
    let html = page_of(&[line("fillseq", 11), line("readrandom", 11)]);
    assert!(check_nesting(&html) > 100);
    for part in ["http", "<script", "src=", "href=", "url(", "@import", "NaN", "inf"] {
        assert!(!html.contains(part), "{part} is in it");
    }
    assert!(html.contains("viewport") && html.contains("@media print"));
    assert!(html.contains("prefers-color-scheme: dark"));
    assert!(html.contains("/data/&lt;b&gt;&amp;co"), "names are escaped");
}

/// Losses are said first and in plain words.
#[test]
fn losses_are_shown_plainly() {
    let html = page_of(&[line("fillseq", 11)]);
    let findings = html.find("What stands out").expect("findings");
    let held = html.find("fillseq: writers were held back for 25 % of their time (250 ms).");
    assert!(held.is_some_and(|at| at > findings && at < html.find("<h2>Lines").expect("lines")));
    assert!(html.contains("<td>level 0</td><td>250 ms</td><td>25.0 %</td>"));
    assert!(html.contains("held back 50 % of the time"), "the stall is in the course");
}

/// A run of nothing, and benchmarks too short for a course, still give a page.
#[test]
fn short_and_empty_runs_give_a_page() {
    check_nesting(&page_of(&[]));
    let html = page_of(&[line("fillseq", 0), line("readseq", 2)]);
    check_nesting(&html);
    assert!(html.contains("Too short for a course: fillseq, readseq."));
    let mut idle = line("open", 0);
    (idle.stall_seconds, idle.latency) = (0.0, None);
    idle.counters.clear();
    assert!(page_of(&[idle]).contains("No writer was held back."));
}

/// A long course has no more stretches than a phone can show.
#[test]
fn long_courses_are_taken_together() {
    let html = page_of(&[line("fillseq", 401)]);
    let curve = html.split("class=\"curve\" d=\"").nth(1).expect("a curve");
    let steps = curve.split('"').next().expect("its end").matches('H').count();
    assert!((40..=91).contains(&steps), "{steps} steps");
}
