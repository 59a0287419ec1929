//! Options as text: what is read is printed so that the same is read again.

use std::path::Path;
use std::sync::Arc;

use lodestore::{Compression, Options, PrefixExtractor};

use crate::files;
use crate::judge::judged;

pub fn run(bytes: &[u8]) {
    let path = Path::new("/options");
    let fs = files::one(path, bytes);
    let mut options = Options { fs: Arc::new(fs), ..Options::default() };
    let before = options.to_text();
    if judged(options.apply_file(path)).is_none() {
        assert_eq!(options.to_text(), before, "what is refused changes nothing");
    } else {
        let text = options.to_text();
        let again = Options::from_text(&text).expect("what was printed can be read");
        assert_eq!(again.to_text(), text);
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(compression) = text.parse::<Compression>() {
        assert_eq!(compression.to_string().parse(), Ok(compression));
    }
    if let Ok(extractor) = text.parse::<PrefixExtractor>() {
        assert_eq!(extractor.to_string().parse(), Ok(extractor));
    }
    if let Some((name, value)) = text.split_once('=') {
        let mut options = Options::default();
        judged(options.set(name.trim(), value.trim()));
        judged(options.family.set(name.trim(), value.trim()));
    }
}
