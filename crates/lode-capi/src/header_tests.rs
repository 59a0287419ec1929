//! The headers and the code name the same functions and numbers.

use std::collections::BTreeSet;

const HEADER: &str = include_str!("../include/lodestore.h");
const SOURCES: &[&str] = &[
    include_str!("batch.rs"),
    include_str!("cursor.rs"),
    include_str!("data.rs"),
    include_str!("database.rs"),
    include_str!("failure.rs"),
    include_str!("files.rs"),
    include_str!("filesystem.rs"),
    include_str!("merge.rs"),
    include_str!("options.rs"),
    include_str!("order.rs"),
    include_str!("snapshot.rs"),
    include_str!("tables.rs"),
    include_str!("updates.rs"),
    include_str!("upkeep.rs"),
    include_str!("value.rs"),
];

/// Words `lodestore_...` that are followed by a parenthesis, with how many
/// parameters there are up to the one that closes it.
fn functions(text: &str) -> BTreeSet<(&str, usize)> {
    let starts = text.match_indices("lodestore_").filter(|(at, _)| {
        let before = text[..*at].chars().next_back();
        before.is_some_and(|c| c == ' ' || c == '*')
    });
    let named = starts.filter_map(|(at, _)| {
        let end = at + text[at..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
        let inside = text[end..].trim_start_matches("<'a>").strip_prefix('(')?;
        Some((&text[at..end], parameters(inside)))
    });
    named.collect()
}

/// How many parameters there are in what follows an opening parenthesis.
fn parameters(inside: &str) -> usize {
    let (mut depth, mut commas, mut is_empty) = (0, 0, true);
    let mut last = ' ';
    for c in inside.chars() {
        match c {
            '(' | '<' | '[' => depth += 1,
            ')' if depth == 0 => break,
            ')' | '>' | ']' => depth -= 1,
            ',' if depth == 0 => commas += 1,
            _ => {}
        }
        is_empty &= c.is_whitespace();
        last = if c.is_whitespace() { last } else { c };
    }
    match inside.starts_with("void)") || is_empty {
        true => 0,
        // Rust allows a comma behind the last one.
        false => commas + usize::from(last != ','),
    }
}

fn declared(header: &str) -> String {
    let without_comments = header.split("/*").enumerate().map(|(nth, part)| match nth {
        0 => part,
        _ => part.split_once("*/").expect("comments end").1,
    });
    without_comments.collect()
}

fn defined<'s>(sources: &[&'s str]) -> BTreeSet<(&'s str, usize)> {
    sources
        .iter()
        .flat_map(|source| source.split("pub extern \"C\" fn").skip(1))
        .filter_map(|code| functions(&code[..code.find('{')?]).into_iter().next())
        .collect()
}

/// What is declared is there, and what is there is declared, with as many
/// parameters.
#[test]
fn the_headers_declare_what_the_library_has() {
    let leveldb = include_str!("leveldb.rs");
    let shims = include_str!("../leveldb/format.h");
    for (header, sources, least) in [(HEADER, SOURCES, 90), (shims, &[leveldb][..], 20)] {
        let (declared, defined) = (declared(header), defined(sources));
        assert!(defined.len() > least, "{}", defined.len());
        let declared = functions(&declared);
        let differing: Vec<_> = declared.symmetric_difference(&defined).collect();
        assert!(differing.is_empty(), "{differing:?}");
    }
}

#[test]
fn parameters_are_counted() {
    let text = " lodestore_a(void); *lodestore_b(int a, void (*f)(int, int)); x_lodestore_c(1) \
                 lodestore_d() -> X lodestore_e(\n    a: Out<'_, B>,\n    b: C,\n) lodestore_f ";
    let expected = [("lodestore_a", 0), ("lodestore_b", 2), ("lodestore_d", 0), ("lodestore_e", 2)];
    assert_eq!(functions(text), BTreeSet::from(expected));
}
