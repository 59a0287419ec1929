//! The JSON document, out and in.

use serde::{Deserialize, Serialize};

use super::Told;

/// Grows when a field changes its meaning or goes; new fields may come without.
const DOCUMENT_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    document_version: u32,
    #[serde(flatten)]
    told: &'a Told,
}

/// What every document has, whatever its version.
#[derive(Deserialize)]
struct Version {
    document_version: u32,
}

/// Everything, single measurements included.
pub fn text(told: &Told) -> String {
    let document = Document { document_version: DOCUMENT_VERSION, told };
    serde_json::to_string_pretty(&document)
        .expect("maps have string keys, and nothing in here fails to serialize")
}

/// Reads what [`text`] wrote.
/// # Errors: what `text` is instead, a document of another version included.
pub fn parse(text: &str) -> Result<Told, String> {
    let refused = |error| format!("this is not what run --json writes: {error}");
    let Version { document_version } = serde_json::from_str(text).map_err(refused)?;
    if document_version != DOCUMENT_VERSION {
        return Err(format!(
            "this is a document of version {document_version}; only version {DOCUMENT_VERSION} can \
             be read"
        ));
    }
    serde_json::from_str(text).map_err(refused)
}
