//! Reports of a known run.

use super::*;
use crate::results::lines;
use crate::results::tests::samples;
use crate::stream::Shape;
use crate::workload::{Group, Workload};

fn told(seconds: f64) -> Told {
    let plan = Plan {
        lane: Lane::Equal,
        engines: vec![EngineKind::Lodestore, EngineKind::LodestoreAgain, EngineKind::RocksDb],
        workloads: vec![Workload::FillRandom, Workload::ReadSeq],
        shapes: vec![Shape::Standard],
        entries: 1_000,
        rounds: 6,
        seed: 1,
        threads: 1,
        reads: 1_000,
        latencies: false,
        memory_limit: None,
    };
    let mut all = samples(Workload::FillRandom, EngineKind::RocksDb, 3.0);
    all.extend(samples(Workload::ReadSeq, EngineKind::RocksDb, seconds));
    let gap = Gap {
        engine: EngineKind::RocksDb,
        workload: Workload::MultiGet,
        reason: "keys <are> too long".to_string(),
    };
    let command = "/bin/lode-peers run --json a&b --rounds 6".to_string();
    let lines = lines(&all, plan.rounds);
    let walks = plan.engines.iter().zip([150.0, 300.0, 180.0]).flat_map(|(&engine, nanos)| {
        let (group, shape) = (Group::Random, Shape::Standard);
        (0..plan.rounds).map(move |round| {
            let nanos = if round == 4 { nanos } else { 150.0 };
            Walk { round, engine, group, shape, nanos }
        })
    });
    let walks = walks.collect();
    Told { head: Head::new(&plan, command), lines, gaps: vec![gap], samples: all, walks }
}

/// Ours comes first in every line; losses are marked there and told at the end
/// with their ratio, and gaps are told by name.
#[test]
fn table_tells_losses_and_gaps() {
    let text = table::text(&told(0.5));
    let line = |start: &str| text.lines().position(|l| l.starts_with(start)).expect(start);
    let rows: Vec<&str> = text.lines().collect();
    let at = line("readseq");
    assert!(rows[at].contains("16-100  lodestore "), "{text}");
    assert!(rows[at + 1].contains("lodestore-again") && rows[at + 1].contains("even"), "{text}");
    assert!(rows[at + 2].contains("rocksdb"), "{text}");
    assert!(rows[at + 2].contains("0.50 (0.50 to 0.50)  LOSS"), "{text}");
    assert!(rows[line("fillrandom+quiet") + 2].contains("3.00 (3.00 to 3.00)"), "{text}");
    assert!(text.contains("\n1 losses\n  readseq 16-100: rocksdb 0.50 (0.50 to 0.50)\n"), "{text}");
    assert!(text.contains("rocksdb cannot do multiget: keys <are> too long"), "{text}");
    for setting in ["memtable_bytes", "64.0 MiB", "snappy", "filter_bits", "verify_checksums"] {
        assert!(text.contains(setting), "{setting} is not in {text}");
    }
    assert!(text.contains("covers 96.9 % with 6 rounds"), "{text}");
    assert!(!text.contains("recycled_logs"), "what nobody was told is left out: {text}");
}

/// What wins, but by less than it should, is told with the aim; a lane without
/// aims tells nothing of them.
#[test]
fn aims_are_told_beside_losses() {
    let mut told = told(1.5);
    let short = "readseq 16-100: rocksdb 1.50 (1.50 to 1.50), aim 2";
    assert!(table::text(&told).contains(&format!("\n0 losses\n1 short of an aim\n  {short}\n")));
    assert!(page::html(&told).contains(&format!("<li>{short}</li>")));
    told.head.lane = Lane::Defaults;
    assert!(!table::text(&told).contains("short of an aim"));
    assert!(page::html(&told).contains("There are no aims for this."));
}

/// What looks like a loss is told even where noise allows no claim, and the reason
/// for that once.
#[test]
fn noise_hides_no_loss() {
    let mut told = told(0.5);
    told.samples.retain(|sample| sample.round < 2);
    told.lines = lines(&told.samples, 2);
    let text = table::text(&told);
    assert!(
        text.contains("\n0 losses\n1 below 1 on noisy lines\n  readseq 16-100: rocksdb"),
        "{text}"
    );
    assert_eq!(text.matches("fewer than 3 rounds").count(), 1, "{text}");
    assert!(page::html(&told).contains("<li>noisy: readseq 16-100: rocksdb"));
}

/// Where memory was slower beside one engine than beside another is told everywhere,
/// and nothing of it where nobody walked, as in documents of older builds.
#[test]
fn memory_that_differed_is_told() {
    let told = told(1.5);
    let sentence = "a step of a walk through 128.0 MiB of memory took beside lodestore 150 ns, \
                    lodestore-again 150 ns, rocksdb 150 ns by medians; engines differed most in \
                    random 16-100 of round 5, 2.00 times";
    assert!(table::text(&told).contains(&format!("\nmemory: {sentence}\n")));
    assert!(page::html(&told).contains(&format!("<p>Memory: {sentence}.</p>")));
    assert!(markdown::text(&told).contains(&format!("\nMemory: {sentence}.\n")));
    let mut older: serde_json::Value =
        serde_json::from_str(&document::text(&told)).expect("it is JSON");
    older.as_object_mut().expect("an object").remove("walks").expect("it is there");
    let older = document::parse(&older.to_string()).expect("fields may be missing");
    for text in [table::text(&older), page::html(&older), markdown::text(&older)] {
        assert!(!text.contains("a step of a walk"), "{text}");
    }
}

/// The page needs nothing but itself, escapes what it shows, and has losses in
/// red where there are any.
#[test]
fn page_is_whole_and_self_contained() {
    let page = page::html(&told(0.5));
    for outside in ["http", "src=", "href=", "@import", "<script", "url("] {
        assert!(!page.contains(outside), "the page asks for {outside}");
    }
    assert!(page.contains("keys &lt;are&gt; too long") && page.contains("a&amp;b"));
    assert!(page.contains("<li class=\"bad\">readseq 16-100: rocksdb"));
    assert_eq!(page.matches("<tr class=\"bad\">").count(), 1);
    assert_eq!(page.matches("<rect class=\"stall\"").count(), 1);
    for element in ["table", "figure", "svg", "div", "tr", "td", "ul", "li", "section", "html"] {
        let opened = page.matches(&format!("<{element}>")).count()
            + page.matches(&format!("<{element} ")).count();
        assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "{element}");
    }
    let fine = page::html(&told(2.0));
    assert!(fine.contains("<p>None.</p>") && !fine.contains("<tr class=\"bad\">"));
    assert!(!fine.contains("<rect class=\"stall\""));
}

/// The document has the head, the lines and every single measurement.
#[test]
fn document_has_everything() {
    let json: serde_json::Value =
        serde_json::from_str(&document::text(&told(0.5))).expect("it is JSON");
    assert_eq!(json["head"]["engines"][2]["engine"], "rocksdb");
    assert_eq!(json["samples"].as_array().map(Vec::len), Some(36));
    let lines = json["lines"].as_array().expect("lines");
    let loss = lines.iter().find(|l| l["case"]["workload"] == "readseq").expect("it is there");
    assert_eq!(loss["cells"][2]["verdict"], "loss");
    assert_eq!(loss["cells"][2]["ratio"]["median"], 0.5);
    assert_eq!(json["gaps"][0]["workload"], "multiget");
}

/// A document that is read again tells in Markdown what the run would: ratios,
/// costs, losses, what is short of its aim; nothing of where the files were.
#[test]
fn documents_become_markdown() {
    let told = told(0.5);
    let parsed = document::parse(&document::text(&told)).expect("it was written by us");
    let text = markdown::text(&parsed);
    assert_eq!(text, markdown::text(&told));
    for part in [
        "### Lane equal: 1,000 entries, sizes 16-100\n",
        "; 6 rounds, intervals of 97 %; 1,000 lookups; ",
        "; `lode-peers run --rounds 6`.",
        "| line | Lodestore us/op | RocksDB ratio (low-high) |\n|---|---|---|\n",
        "| fillrandom 16-100 | 1,000 | 3.00x (3.00-3.00) |\n",
        "| readseq 16-100 | 1,000 | **0.50x** (0.50-0.50), aim 2 |\n",
        "user's / MiB of the directory / MiB of peak RSS.\n\n| line | Lodestore | RocksDB |\n",
        "| fillrandom 16-100 | 2.00 / 0.095 / 1.00 | 2.00 / 0.095 / 1.00 |\n",
        "against itself differed by 0.0 % to 0.0 %; by more than 10 %: nowhere.\n",
        "Below 1:\n\n- readseq 16-100: RocksDB 0.50x (aim 2)\n",
        "Short of an aim:\n\n- readseq 16-100: RocksDB 0.50x (aim 2)\n",
        "- RocksDB cannot do multiget: keys &lt;are&gt; too long\n",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    for absent in ["Lodestore again ", "--json", "\n\n\n"] {
        assert!(!text.contains(absent), "{absent:?} is in {text}");
    }
}

/// Beside each other, runs share a table of ratios: columns say what tells them apart,
/// a line that one of them lacks is dashes there, and each has the rest to itself.
#[test]
fn runs_stand_beside_each_other() {
    let first = told(0.5);
    let mut second = told(1.5);
    (second.head.lane, second.head.entries) = (Lane::Mapped, 2_000);
    second.lines.retain(|line| line.name() == "readseq");
    let text = markdown::beside(&[first.clone(), second]);
    for part in [
        "| line | Lodestore, equal, 1,000 us/op | RocksDB ratio (low-high) \
         | Lodestore, mapped, 2,000 us/op | RocksDB ratio (low-high) |\n|---|---|---|---|---|\n",
        "| fillrandom | 1,000 | 3.00x (3.00-3.00) | - | - |\n",
        "| readseq | 1,000 | **0.50x** (0.50-0.50), aim 2 \
         | 1,000 | 1.50x (1.50-1.50), aim 2 |\n\n### Lane equal: 1,000",
        "### Lane mapped: 2,000 entries",
        "Below 1:\n\n- readseq 16-100: RocksDB 0.50x (aim 2)\n",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let alone = markdown::beside(&[first]);
    assert!(
        alone.starts_with("| line | Lodestore us/op | RocksDB ratio (low-high) |\n"),
        "{alone}"
    );
    assert_eq!(alone.matches("| readseq").count(), 1, "{alone}");
}

/// Sizes tell lines of one run apart, and runs of one size each from each other.
#[test]
fn sizes_are_told_once() {
    let first = told(1.5);
    let mut second = first.clone();
    second.lines.iter_mut().for_each(|line| line.case.shape = Shape::Hashes);
    let text = markdown::beside(&[first.clone(), second.clone()]);
    assert!(text.contains("Lodestore, 16-100 us/op") && text.contains("Lodestore, 40-60 us/op"));
    assert!(text.contains("| readseq | 1,000 | 1.50x"), "{text}");
    second.lines.extend(first.lines.clone());
    let text = markdown::beside(&[first, second]);
    assert!(text.contains("| readseq 16-100 | 1,000 | 1.50x"), "{text}");
}

/// Latencies, and what was read under a limit on memory, are told where there
/// are any, of reads as well.
#[test]
fn markdown_tells_what_was_measured() {
    let mut told = told(1.5);
    told.head.memory_limit = Some(1 << 30);
    let readseq = told.lines.iter_mut().find(|line| line.name() == "readseq");
    readseq.expect("it is there").cells[0].p99_9_micros = Some(12.5);
    let text = markdown::text(&told);
    assert!(text.contains("sizes 16-100, 1.0 GiB of memory\n"), "{text}");
    assert!(text.contains("peak RSS / p99.9 in us / bytes read an operation.\n"), "{text}");
    let row = "| readseq 16-100 | 2.00 / 0.095 / 1.00 / 12.5 / 0 | 2.00 / 0.095 / 1.00 / - / 0 |\n";
    assert!(text.contains(row), "{text}");
    assert!(text.contains("Below 1: none.\n\nShort of an aim: none.\n"), "{text}");
}

/// One round has no intervals; lines on which Lodestore differs from itself are
/// named, and lanes without aims have no list of them.
#[test]
fn markdown_claims_no_more_than_there_is() {
    let mut told = told(0.5);
    told.samples.retain(|sample| sample.round == 0);
    let again = told.samples.iter_mut().filter(|s| s.engine == EngineKind::LodestoreAgain);
    again.last().expect("it is there").measured.seconds = 1.3;
    (told.lines, told.head.rounds) = (lines(&told.samples, 1), 1);
    told.head.lane = Lane::Defaults;
    let text = markdown::text(&told);
    assert!(text.contains("; 1 round; "), "{text}");
    assert!(text.contains("| readseq 16-100 | 1,000 | **0.50x** |\n"), "{text}");
    assert!(text.contains("by 1.0 % to 30.0 %; by more than 10 %: readseq 16-100 (30.0 %).\n"));
    assert!(text.contains("- readseq 16-100: RocksDB 0.50x\n") && !text.contains("aim"), "{text}");
}

/// What is no document, or one of another version, is refused with the reason.
#[test]
fn other_documents_are_refused() {
    let text = document::text(&told(0.5));
    let other = text.replace("\"document_version\": 1", "\"document_version\": 2");
    let cut = &text[..text.len() - 2];
    for (text, part) in [
        (other.as_str(), "document of version 2; only version 1"),
        (cut, "not what run --json writes: EOF"),
        ("{\"document_version\": 1}", "not what run --json writes: missing field `head`"),
        ("[1, 2]", "not what run --json writes"),
        ("", "not what run --json writes"),
    ] {
        let refused = document::parse(text).map(|told| told.head).expect_err(text);
        assert!(refused.contains(part), "{refused}");
    }
}
