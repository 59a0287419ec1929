//! Records of a log or manifest file (`db/log_writer.cc`).
//!
//! Blocks of 32 KiB hold fragments: masked checksum of type and bytes (4),
//! length (2), type (1), bytes. A record is one whole fragment, or a first, any
//! middle ones and a last. The end of a block that has no room for a fragment's
//! head is filled with zeros.
//!
//! A file that ends in the middle of a record was cut off by a crash: the
//! record was never acknowledged as synced, and LevelDB ignores it too. Damage
//! before that is an error: what LevelDB would silently leave out may matter.

use super::masked_crc32c;

const BLOCK_BYTES: usize = 32 << 10;
const HEAD_BYTES: usize = 7;

const ZERO: u8 = 0;
const WHOLE: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

/// What is wrong with a file, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) offset: u64,
    /// So many bytes are left out if reading goes on.
    pub(crate) dropped: usize,
    pub(crate) what: Flaw,
}

/// What can be wrong with a fragment; some say the type of the one that shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    Checksum,
    /// It would reach over the end of its block.
    Length,
    /// Another record begins within one.
    WithoutEnd(u8),
    WithoutBeginning(u8),
    /// What came before in the same record is of no use.
    InTheMiddle,
    UnknownType(u8),
}

impl Flaw {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Flaw::Checksum => "wrong checksum of a record",
            Flaw::Length => "a fragment that is longer than its block",
            Flaw::WithoutEnd(_) => "a record that begins within another",
            Flaw::WithoutBeginning(_) => "a record without a beginning",
            Flaw::InTheMiddle => "a record of which a part is damaged",
            Flaw::UnknownType(_) => "a fragment of an unknown type",
        }
    }
}

/// Reads the records of a file, all of whose bytes are given. After damage it can
/// go on: LevelDB leaves out the rest of a block whose lengths cannot be trusted, and
/// the record around it.
#[derive(Debug)]
pub(crate) struct Records<'f> {
    file: &'f [u8],
    at: usize,
    record: Vec<u8>,
    /// Where the file was cut off, once that was met.
    torn_at: Option<u64>,
    /// What is to be told next: the record whose fragment was damaged.
    ruined: Option<Damage>,
    /// The rest of a block is not given up where its next fragment is sound.
    salvages: bool,
}

/// A piece of a record.
struct Fragment<'f> {
    kind: u8,
    bytes: &'f [u8],
    offset: usize,
}

impl<'f> Records<'f> {
    pub(crate) fn new(file: &'f [u8]) -> Records<'f> {
        Records::resume(file, 0)
    }

    /// Goes on where another reader of the same file was, see [`Records::at`].
    pub(crate) fn resume(file: &'f [u8], at: usize) -> Records<'f> {
        Records { file, at, record: Vec::new(), torn_at: None, ruined: None, salvages: false }
    }

    /// Reads more than LevelDB does: a fragment with a wrong checksum costs that
    /// fragment alone if another one, or the block's end, is where it says that it ends.
    pub(crate) fn salvage(file: &'f [u8]) -> Records<'f> {
        Records { salvages: true, ..Records::new(file) }
    }

    /// Where the last record that was given ends.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Where the file ends in the middle of a record; known once
    /// [`Records::next`] has given `None`.
    pub(crate) fn torn_at(&self) -> Option<u64> {
        self.torn_at
    }

    /// The next record and where it begins.
    pub(crate) fn next(&mut self) -> Result<Option<(&[u8], u64)>, Damage> {
        if let Some(damage) = self.ruined.take() {
            return Err(damage);
        }
        self.record.clear();
        let mut start = None;
        loop {
            let fragment = self.fragment().inspect_err(|_| {
                let (dropped, what) = (self.record.len(), Flaw::InTheMiddle);
                self.ruined = start.map(|offset| Damage { offset, dropped, what });
            })?;
            let Some(Fragment { kind, bytes, offset }) = fragment else {
                self.torn_at = self.torn_at.or(start);
                return Ok(None);
            };
            let damage = |dropped, what| Err(Damage { offset: offset as u64, dropped, what });
            match (kind, start) {
                // Old writers left a first fragment without bytes at the end of
                // a block, and began anew in the next one.
                (WHOLE | FIRST, Some(_)) if !self.record.is_empty() => {
                    self.at = offset; // it is the next record
                    return damage(self.record.len(), Flaw::WithoutEnd(kind));
                }
                (WHOLE | FIRST, _) => start = Some(offset as u64),
                (MIDDLE | LAST, Some(_)) => {}
                (MIDDLE | LAST, None) => {
                    return damage(bytes.len(), Flaw::WithoutBeginning(kind));
                }
                _ => {
                    return damage(bytes.len() + self.record.len(), Flaw::UnknownType(kind));
                }
            }
            self.record.extend_from_slice(bytes);
            if let (WHOLE | LAST, Some(start)) = (kind, start) {
                return Ok(Some((&self.record, start)));
            }
        }
    }

    /// The next fragment; `None` at the end, or where the file was cut off.
    fn fragment(&mut self) -> Result<Option<Fragment<'f>>, Damage> {
        loop {
            let left = BLOCK_BYTES - self.at % BLOCK_BYTES;
            if left < HEAD_BYTES {
                self.at += left;
            }
            let offset = self.at;
            let block_end = (offset - offset % BLOCK_BYTES + BLOCK_BYTES).min(self.file.len());
            let rest = self.file.get(offset..block_end).unwrap_or_default();
            let Some((head, rest)) = rest.split_first_chunk::<HEAD_BYTES>() else {
                self.torn_at = (!rest.is_empty()).then_some(offset as u64);
                return Ok(None);
            };
            let (kind, length) = (head[6], usize::from(u16::from_le_bytes([head[4], head[5]])));
            if kind == ZERO && length == 0 {
                // Room that was made and never used.
                self.at = block_end;
                continue;
            }
            let Some(bytes) = rest.get(..length) else {
                if block_end.is_multiple_of(BLOCK_BYTES) {
                    return Err(self.leave(block_end, Flaw::Length));
                }
                self.torn_at = Some(offset as u64);
                return Ok(None);
            };
            let end = offset + HEAD_BYTES + length;
            let stored = u32::from_le_bytes(head[..4].try_into().expect("four bytes"));
            if masked_crc32c(&self.file[offset + 6..end]) != stored {
                let goes_on = self.salvages && self.goes_on_at(end, block_end);
                return Err(self.leave(if goes_on { end } else { block_end }, Flaw::Checksum));
            }
            self.at = end;
            return Ok(Some(Fragment { kind, bytes, offset }));
        }
    }

    /// True if a sound fragment begins at `at`, or its block has no room for one.
    fn goes_on_at(&self, at: usize, block_end: usize) -> bool {
        at + HEAD_BYTES > block_end
            || matches!(Records::resume(self.file, at).fragment(), Ok(Some(next)) if next.offset == at)
    }

    /// What comes before `end` cannot be read: unless that is known otherwise the whole
    /// block, since not even where a fragment begins can be.
    fn leave(&mut self, end: usize, what: Flaw) -> Damage {
        let offset = std::mem::replace(&mut self.at, end);
        Damage { offset: offset as u64, dropped: end - offset, what }
    }
}

/// True if `file` begins with a fragment whose checksum is right: a log or a
/// manifest has nothing else that tells what it is.
pub(crate) fn begins_with_record(file: &[u8]) -> bool {
    matches!(Records::new(file).fragment(), Ok(Some(_)))
}

/// Appends `record` to the bytes of a log file, as LevelDB writes it.
pub(crate) fn append(file: &mut Vec<u8>, record: &[u8]) {
    let (mut rest, mut is_first) = (record, true);
    loop {
        let left = BLOCK_BYTES - file.len() % BLOCK_BYTES;
        if left < HEAD_BYTES {
            file.resize(file.len() + left, 0);
            continue;
        }
        let (bytes, after) = rest.split_at(rest.len().min(left - HEAD_BYTES));
        let kind = match (is_first, after.is_empty()) {
            (true, true) => WHOLE,
            (true, false) => FIRST,
            (false, false) => MIDDLE,
            (false, true) => LAST,
        };
        let start = file.len();
        file.extend_from_slice(&[0; 4]);
        file.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
        file.push(kind);
        file.extend_from_slice(bytes);
        let checksum = masked_crc32c(&file[start + 6..]);
        file[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
        (rest, is_first) = (after, false);
        if rest.is_empty() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(records: &[Vec<u8>]) -> Vec<u8> {
        let mut file = Vec::new();
        records.iter().for_each(|record| append(&mut file, record));
        file
    }

    fn read(file: &[u8]) -> (Vec<Vec<u8>>, Result<Option<u64>, Damage>) {
        let (mut records, mut found) = (Records::new(file), Vec::new());
        loop {
            match records.next() {
                Ok(Some((record, _))) => found.push(record.to_vec()),
                Ok(None) => return (found, Ok(records.torn_at())),
                Err(damage) => return (found, Err(damage)),
            }
        }
    }

    /// Records of all lengths around the end of a block.
    fn records() -> Vec<Vec<u8>> {
        let lengths = [0, 1, 100, 32_761, 32_762, 5, 100_000, 0, 32_748, 0, 1, 65_522, 7];
        lengths.iter().enumerate().map(|(i, &length)| vec![i as u8; length]).collect()
    }

    #[test]
    fn records_are_read_back_whatever_their_length() {
        let records = records();
        assert_eq!(read(&file(&records)), (records, Ok(None)));
        assert_eq!(read(&[]), (vec![], Ok(None)));
    }

    /// A file that was cut off anywhere gives the records before that, and says
    /// where it was cut, unless that was between two records.
    #[test]
    fn a_file_that_was_cut_off_gives_what_came_before() {
        let records = vec![vec![1; 10], vec![2; 40_000], vec![3; 5]];
        let whole = file(&records);
        let ends = [17, whole.len() - 12, whole.len()];
        for length in (0..100).chain(32_760..32_800).chain(39_990..whole.len() + 1) {
            let (found, torn) = read(&whole[..length]);
            let sound = ends.iter().filter(|&&end| end <= length).count();
            assert_eq!(found, records[..sound], "{length}");
            let is_at_end = length == 0 || ends.contains(&length);
            assert_eq!(torn.unwrap().is_none(), is_at_end, "{length}");
        }
    }

    /// A changed byte with sound bytes behind it is damage, and it is said
    /// where; in what nobody wrote yet it is none.
    #[test]
    fn damage_is_named_with_its_place() {
        let records = vec![vec![1; 10], vec![2; 10], vec![3; 10]];
        let whole = file(&records);
        for at in 17..34 {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x40;
            let (found, outcome) = read(&damaged);
            assert_eq!(found, records[..1], "{at}");
            // A length that leads behind the end looks like a file cut off.
            match outcome {
                Err(damage) => assert_eq!(damage.offset, 17),
                Ok(torn) => assert!(torn == Some(17) && (21..=22).contains(&at), "{at}"),
            }
        }
        let mut roomy = whole;
        roomy.resize(40_000, 0);
        assert_eq!(read(&roomy), (records, Ok(None)));
    }

    /// A reader that takes one record and is left goes on with the next one.
    #[test]
    fn reading_goes_on_where_it_was_left() {
        let records = records();
        let (file, mut at, mut found) = (file(&records), 0, Vec::new());
        loop {
            let mut reader = Records::resume(&file, at);
            let Some((record, _)) = reader.next().unwrap() else { break };
            found.push(record.to_vec());
            at = reader.at();
        }
        assert_eq!((found, at), (records, file.len()));
        assert!(
            begins_with_record(&file) && !begins_with_record(b"") && !begins_with_record(&[7; 99])
        );
    }

    /// Salvage loses the damaged record and no other, wherever the bytes of one are hit
    /// that are not its head's.
    #[test]
    fn salvage_loses_one_record() {
        let records: Vec<Vec<u8>> = (0..30).map(|i| vec![i; 3_000]).collect();
        let whole = file(&records);
        for at in (0..whole.len()).step_by(61) {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            let (mut reader, mut found) = (Records::salvage(&damaged), Vec::new());
            loop {
                match reader.next() {
                    Ok(Some((record, _))) => found.push(record.to_vec()),
                    Ok(None) => break,
                    Err(_) => {}
                }
            }
            assert!(found.iter().all(|record| records.contains(record)), "{at}");
            let in_head = |i: usize| at >= i * 3_007 && at < i * 3_007 + 14;
            let lost = records.len() - found.len();
            assert!(lost == 1 || (lost < 13 && (0..30).any(in_head)), "{at}: {lost}");
        }
    }

    /// Who goes on after damage loses the rest of its block, the record around it, and
    /// nothing else.
    #[test]
    fn reading_goes_on_behind_damage() {
        let records = vec![vec![1; 10], vec![2; 40_000], vec![3; 5], vec![4; 60_000], vec![5; 9]];
        let mut file = file(&records);
        let (in_second, in_fourth) = (BLOCK_BYTES + 100, 2 * BLOCK_BYTES + 100);
        file[in_second] ^= 1;
        file[in_fourth] ^= 1;
        let (mut reader, mut found, mut flaws) = (Records::new(&file), Vec::new(), Vec::new());
        loop {
            match reader.next() {
                Ok(Some((record, _))) => found.push(record.to_vec()),
                Ok(None) => break,
                Err(damage) => flaws.push((damage.what, damage.dropped)),
            }
        }
        assert_eq!(found, [records[0].clone(), records[4].clone()]);
        // The first one takes the third record, and the beginning of the fourth, along.
        let expected = [
            (Flaw::Checksum, BLOCK_BYTES),
            (Flaw::InTheMiddle, BLOCK_BYTES - 17 - HEAD_BYTES),
            (Flaw::Checksum, BLOCK_BYTES),
            (Flaw::WithoutBeginning(LAST), file.len() - 3 * BLOCK_BYTES - 2 * HEAD_BYTES - 9),
        ];
        assert_eq!(flaws, expected);
    }

    /// Fragments in an order that no writer makes.
    #[test]
    fn fragments_out_of_order_are_refused() {
        let mut file = file(&[vec![7; 40_000]]);
        let (first, last) = (file[..BLOCK_BYTES].to_vec(), file.split_off(BLOCK_BYTES));
        assert!(read(&last).1.is_err());
        assert!(read(&[first.clone(), first].concat()).1.is_err());
    }
}
