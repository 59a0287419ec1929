//! What is written today: no byte of it changes by accident.

use lodestore::Options;
use testkit::golden::{FORMAT, Golden};

use super::kept::{self, MADE, kept};
use super::variety;

/// Of all files. A half of it are the bounds of keys that are longer than bounds may be: two
/// of 64 KiB in a table, and again in the manifest.
const FILES_BYTES_MAX: usize = 700 << 10;
/// Of the texts beside them, which have a line for each entry.
const TEXTS_BYTES_MAX: usize = 450 << 10;

const CHANGED: &str = "Other bytes are written than were frozen. Not on purpose: find out where. \
    Only compressed bytes, because a codec (zstd, lz4_flex, flate2, our Snappy) was changed: that \
    is no change of the format, and older files are read as before. On purpose, in a way that the \
    version allows (docs/format/basics.md, Versions and features): it stays. In another way: \
    raise VERSION of that kind of file, and go on reading those of before (KNOWN_VERSIONS). For \
    each of these reasons: leave the directory as it is, give testkit::golden::FORMAT the name of \
    a new one, REGENERATE=1 cargo test -p lodestore --test all golden, and list it in \
    tests/all/golden/sums.rs before a release writes such files.";

/// Today's files are the golden ones, and these have what they are there for.
/// OPTIONS files are for people: each new option is in them, so that they need only be
/// there, and be texts of options.
#[test]
fn what_is_written_today_is_golden() {
    let (mut files_bytes, mut texts_bytes) = (0, 0);
    for Golden { name, files, expected, described } in &*MADE {
        let kept = kept(FORMAT, name);
        assert!(kept.expected == *expected, "{name} holds something else now. {CHANGED}");
        assert!(kept.files.keys().eq(files.keys()), "{name} has other files now. {CHANGED}");
        for (file, now) in files {
            files_bytes += now.len();
            let then = &kept.files[file];
            if file.starts_with("OPTIONS-") {
                assert_options(name, file, then);
                assert_options(name, file, now);
            } else {
                assert_same(&format!("{name}/{file}"), then, now);
            }
        }
        let same = without_options(&kept.described) == without_options(described);
        assert!(same, "the files of {name} say something else now. {CHANGED}");
        texts_bytes += expected.len() + described.len();
    }
    assert!(files_bytes <= FILES_BYTES_MAX, "{files_bytes} bytes of golden files");
    assert!(texts_bytes <= TEXTS_BYTES_MAX, "{texts_bytes} bytes of texts");
    assert!(kept::all().iter().filter(|(format, _)| format == FORMAT).count() == MADE.len());
    variety::assert_is_varied(&MADE);
}

fn assert_same(what: &str, then: &[u8], now: &[u8]) {
    let differs = then.iter().zip(now).position(|(then, now)| then != now);
    let at = differs.unwrap_or(then.len().min(now.len()));
    assert!(then == now, "{what} is another from byte {at} on. {CHANGED}");
}

fn assert_options(name: &str, file: &str, bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).expect("options are text");
    // Orders and operators of a program's own have only their names there.
    let parsed = Options::from_text(text);
    assert!(parsed.is_ok() || text.contains("testkit."), "{name}/{file}: {parsed:?}");
}

/// The lines that do not say how long an OPTIONS file is.
fn without_options(described: &str) -> Vec<&str> {
    described.lines().filter(|line| !line.starts_with("OPTIONS-")).collect()
}
