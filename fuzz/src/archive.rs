//! Several files as one input: for each the length of its name (1), its name,
//! the length of what follows (4, little-endian), its bytes, squeezed.
//!
//! Files that are synced end at multiples of 4,096 bytes, most of them zeros,
//! which would get most of the mutations. Squeezed, a file is a row of pieces:
//! the length of bytes (2), how many zeros follow them (2), the bytes.

use testkit::files::Files;

/// More files than this are not looked at.
const FILES_MAX: usize = 32;
/// Longer files are cut.
const FILE_BYTES_MAX: usize = 256 << 10;
/// Fewer zeros than this stay as they are.
const ZEROS_MIN: usize = 16;

/// The input that holds `files`.
///
/// # Panics
/// If a name is longer than 255 bytes, or a file than 4 GiB.
pub fn pack(files: &Files) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, bytes) in files {
        let squeezed = squeeze(bytes);
        out.push(u8::try_from(name.len()).expect("names are short"));
        out.extend_from_slice(name.as_bytes());
        let length = u32::try_from(squeezed.len()).expect("files are small");
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&squeezed);
    }
    out
}

/// The files that an input holds. Any bytes are some files: what is cut short
/// ends with the input.
pub fn unpack(mut input: &[u8]) -> Files {
    let mut files = Files::new();
    while let Some((&length, rest)) = input.split_first().filter(|_| files.len() < FILES_MAX) {
        let (name, rest) = rest.split_at(rest.len().min(length.into()));
        let (length, rest) = rest.split_at(rest.len().min(4));
        let length = length.first_chunk().map_or(0, |length| u32::from_le_bytes(*length));
        let (squeezed, rest) = rest.split_at(rest.len().min(length as usize));
        let name = file_name(name);
        // Locks are every opener's, and are not looked at.
        if !name.starts_with("LOCK") {
            files.insert(name, expand(squeezed));
        }
        input = rest;
    }
    files
}

/// A name that stays in its directory.
fn file_name(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(name) if !name.contains(['/', '\0']) && !["", ".", ".."].contains(&name) => name.into(),
        _ => format!("foreign-{}", name.escape_ascii()).replace('/', "-"),
    }
}

/// `bytes` without their long runs of zeros.
pub fn squeeze(mut bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let limit = bytes.len().min(u16::MAX.into());
        let is_run = |at: &usize| {
            let run = bytes.get(*at..(at + ZEROS_MIN).min(bytes.len()));
            run.is_some_and(|run| run.iter().all(|byte| *byte == 0))
        };
        let literal = (0..limit).find(is_run).unwrap_or(limit);
        let zeros = bytes[literal..].iter().take(u16::MAX.into()).take_while(|byte| **byte == 0);
        let zeros = zeros.count();
        out.extend_from_slice(&(literal as u16).to_le_bytes());
        out.extend_from_slice(&(zeros as u16).to_le_bytes());
        out.extend_from_slice(&bytes[..literal]);
        bytes = &bytes[literal + zeros..];
    }
    out
}

/// What was squeezed. Any bytes are something.
pub fn expand(mut squeezed: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some((&[a, b, c, d], rest)) = squeezed.split_first_chunk::<4>() {
        let literal = usize::from(u16::from_le_bytes([a, b])).min(rest.len());
        out.extend_from_slice(&rest[..literal]);
        out.resize(out.len() + usize::from(u16::from_le_bytes([c, d])), 0);
        squeezed = &rest[literal..];
        if out.len() > FILE_BYTES_MAX {
            break;
        }
    }
    out.truncate(FILE_BYTES_MAX);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is packed is unpacked, and zeros take no room.
    #[test]
    fn files_survive_packing() {
        let zeros = [&b"begin"[..], &[0; 100_000], b"\0\0end", &[0; 15]].concat();
        let files = Files::from([
            ("a".to_string(), zeros),
            ("empty".to_string(), Vec::new()),
            ("zeros".to_string(), vec![0; 70_000]),
            ("none".to_string(), (1..=255).cycle().take(70_000).collect()),
        ]);
        assert_eq!(unpack(&pack(&files)), files);
        assert!(squeeze(&files["a"]).len() < 50);
    }

    /// Any bytes are some files, and their names stay in the directory.
    #[test]
    fn any_bytes_are_files() {
        assert!(unpack(&[]).is_empty());
        for input in [&[200][..], b"\x02..\x01\0\0\0x", b"\x03a/b\xff\xff\xff\xff\x05\0\x01\0y"] {
            let files = unpack(input);
            assert_eq!(files.len(), 1);
            assert!(files.keys().all(|name| !name.contains('/') && name != ".."));
        }
    }
}
