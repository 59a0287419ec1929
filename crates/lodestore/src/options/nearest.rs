//! The name that someone may have meant.

const NAME_BYTES_MAX: usize = 100;

/// The candidate that is nearest to `name`, if one is near.
pub(super) fn nearest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    // Longer than any name and its slips: comparing would only take time.
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let near = candidates.map(|candidate| (distance(name, candidate), candidate));
    let (distance, candidate) = near.min()?;
    (distance <= 2.max(candidate.len() / 3)).then_some(candidate)
}

/// How many letters have to be put in, taken out or replaced.
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.bytes().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slip finds its name; something else altogether finds none.
    #[test]
    fn slips_find_their_names() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        let names = ["memtable_bytes", "table_bytes", "block_bytes"];
        let found = |name| nearest(name, names.into_iter());
        assert_eq!(found("memtable_byte"), Some("memtable_bytes"));
        assert_eq!(found("blok_bytes"), Some("block_bytes"));
        assert_eq!(found("write_buffer_size_in_total"), None);
    }
}
