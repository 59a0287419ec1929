//! `lode completions` and `lode man`.

#[allow(dead_code, reason = "other tests use more of it")]
mod lode;

use lode::{Place, lode, text};

/// Every shell gets a script that knows verbs and flags.
#[test]
fn completions_know_verbs_and_flags() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = lode(&["completions", shell]).expect(0);
        for word in ["bench", "checkpoint", "dump-table", "explain", "top", "write_buffer_size"] {
            assert!(ran.text().contains(word), "{shell} does not know {word}");
        }
    }
    assert!(lode(&["completions", "tcsh"]).expect(2).err.contains("bash"));
}

/// Each verb gets a page; what cannot be written is told.
#[test]
fn every_verb_has_a_page() {
    let place = Place::new();
    let directory = place.path("man/man1");
    lode(&["man", text(&directory)]).expect(0);
    let page = |name: &str| std::fs::read_to_string(directory.join(name)).expect(name);
    assert!(page("lode.1").contains("lode\\-bench(1)"), "{}", page("lode.1"));
    assert!(page("lode-bench.1").contains("write_buffer_size"));
    assert!(page("lode-db-get.1").contains("KEY"));
    assert!(page("lode-db-dump-table.1").contains("FILE"));
    assert!(page("lode-top.1").contains("interval"));
    let taken = place.path("file");
    std::fs::write(&taken, "").expect("temporary file");
    assert!(lode(&["man", text(&taken)]).expect(3).err.contains("file"));
}
