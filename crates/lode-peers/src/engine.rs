//! What is asked of every engine. Values that are found are lent to a closure,
//! so that nobody is made to copy.

use crate::failure::Failure;

/// What an adapter's calls give.
pub type Result<T> = std::result::Result<T, Failure>;

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending.
    Forward,
    /// Descending.
    Backward,
}

/// An open database of one engine. Closing it is dropping it.
pub trait Engine: Send + Sync {
    /// Writes one entry; it survives the end of the process, not power loss.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Writes one entry that survives power loss when this returns.
    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Deletes one entry, as durably as [`Engine::put`] writes.
    fn delete(&self, key: &[u8]) -> Result<()>;

    /// Makes all of `changes` or none, as durably as [`Engine::put`] writes.
    fn write(&self, changes: &Changes) -> Result<()>;

    /// Lends the value of `key` to `visit`; false if there is none.
    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// Lends the values that are found, with the places of their keys in
    /// `keys`. Engines without such a call look up one key after the other.
    fn multi_get(&self, keys: &[Vec<u8>], visit: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        for (at, key) in keys.iter().enumerate() {
            self.get(key, &mut |value| visit(at, value))?;
        }
        Ok(())
    }

    /// Lends at most `limit` entries, from `from` (or the end where the
    /// direction begins) on, until `visit` returns false. Forwards the first
    /// is the least key that is not below `from`, backwards the greatest that
    /// is not above it.
    fn scan(
        &self,
        from: Option<&[u8]>,
        direction: Direction,
        limit: u64,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()>;

    /// Waits for background work as far as the engine can tell, and makes
    /// durable what commits without a sync left in memory.
    fn wait_until_quiet(&self) -> Result<()>;

    /// Bytes that the engine says it has written to files, if it does.
    fn bytes_written(&self) -> Option<u64>;
}

/// One change of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// Key and value.
    Put(&'a [u8], &'a [u8]),
    /// Key.
    Delete(&'a [u8]),
}

/// Changes that belong together, in one piece of memory. Each adapter puts
/// them into its own kind of batch.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    bytes: Vec<u8>,
    /// Where the key and the value of each change end; a deletion has no value.
    ends: Vec<(usize, Option<usize>)>,
}

impl Changes {
    /// Adds a put.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, Some(self.bytes.len())));
    }

    /// Adds a deletion.
    pub fn delete(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push((self.bytes.len(), None));
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of keys and values.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Takes all of them out, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// The changes in their order.
    pub fn iter(&self) -> impl Iterator<Item = Change<'_>> {
        let mut start = 0;
        self.ends.iter().map(move |&(key_end, value_end)| {
            let key = &self.bytes[start..key_end];
            start = value_end.unwrap_or(key_end);
            match value_end {
                Some(end) => Change::Put(key, &self.bytes[key_end..end]),
                None => Change::Delete(key),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes come out as they went in, empty values apart from deletions.
    #[test]
    fn changes_keep_order_and_kind() {
        let mut changes = Changes::default();
        changes.put(b"a", b"one");
        changes.delete(b"bc");
        changes.put(b"d", b"");
        let all: Vec<Change<'_>> = changes.iter().collect();
        let expected = [Change::Put(b"a", b"one"), Change::Delete(b"bc"), Change::Put(b"d", b"")];
        assert_eq!(all, expected);
        assert_eq!((changes.len(), changes.bytes()), (3, 7));
        changes.clear();
        assert!(changes.is_empty() && changes.iter().next().is_none());
    }
}
