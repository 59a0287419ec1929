use super::*;
use crate::error::Error;
use crate::fs::{Fs, MemFs};
use crate::sync::Arc;
use std::path::Path;

const ID: FileId = FileId(0x1234_5678_9abc_def0_0fed_cba9_8765_4321);
const PATH: &str = "records";

/// A file of records for one test.
struct Scratch {
    fs: Arc<dyn Fs>,
}

impl Scratch {
    fn new() -> Scratch {
        Scratch { fs: Arc::new(MemFs::new()) }
    }

    fn writer(&self) -> RecordWriter {
        let file = self.fs.create(Path::new(PATH)).unwrap();
        RecordWriter::new(&self.fs, Path::new(PATH), file, ID, 0)
    }

    fn reader(&self) -> RecordReader {
        self.reader_of(ID)
    }

    fn reader_of(&self, id: FileId) -> RecordReader {
        let file = self.fs.open(Path::new(PATH)).unwrap();
        RecordReader::new(file, Path::new(PATH), id, 0, u64::MAX)
    }

    fn scan(&self, offset: u64) -> Scan {
        let file = self.fs.open(Path::new(PATH)).unwrap();
        scan(&*file, Path::new(PATH), ID, offset).unwrap()
    }

    fn find_short(&self, offset: u64) -> Option<u64> {
        let file = self.fs.open(Path::new(PATH)).unwrap();
        find_short(&*file, Path::new(PATH), ID, offset).unwrap()
    }

    fn bytes(&self) -> Vec<u8> {
        crate::fs::read_all(&*self.fs, Path::new(PATH)).unwrap()
    }

    fn set_bytes(&self, bytes: &[u8]) {
        self.fs.create(Path::new(PATH)).unwrap().append(bytes).unwrap();
    }
}

fn read_all(reader: &mut RecordReader) -> (Vec<Vec<u8>>, End) {
    let mut payloads = Vec::new();
    loop {
        match reader.next().unwrap() {
            Next::Record { payload, .. } => payloads.push(payload.to_vec()),
            Next::End(end) => return (payloads, end),
        }
    }
}

/// Payloads of every length around the alignment, and a huge one, come back;
/// reader and writer agree on where they stand and on the checksum.
#[test]
fn records_of_any_length_come_back() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    let mut expected: Vec<Vec<u8>> = (0..40).map(|n| vec![n as u8; n]).collect();
    expected.push((0..5 << 20).map(|i| (i * 7) as u8).collect());
    expected.push(vec![]);
    let longest_copied = writer::UNCOPIED_BYTES_MIN - 1;
    expected.extend((longest_copied..longest_copied + 10).map(|bytes| vec![bytes as u8; bytes]));
    for (at, some) in expected.chunks(3).enumerate() {
        let group: Vec<&[u8]> = some.iter().map(Vec::as_slice).collect();
        match at % 4 {
            0 => writer.append_and_sync(&group).unwrap(),
            _ => writer.append(&group).unwrap(),
        };
    }
    let mut reader = scratch.reader();
    let (payloads, end) = read_all(&mut reader);
    assert!(payloads == expected);
    assert_eq!(end, End::Clean { offset: writer.bytes() });
    assert_eq!(reader.checksum(), writer.checksum());
}

/// What was acknowledged as durable shares no 4 KiB block with anything later,
/// wherever the group ends, and the next header is the witness.
#[test]
fn synced_groups_end_at_a_block_and_are_witnessed() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    let mut expected = Vec::new();
    for length in (0..600).map(|n| n * 8).chain([4064, 4072, 4073, 4080, 8200]) {
        let offset = writer.append_and_sync(&[&vec![1; length]]).unwrap();
        assert_eq!(offset % BLOCK_BYTES, 0);
        assert_eq!(writer.watermark(), writer.bytes());
        expected.push(vec![1; length]);
    }
    let durable = writer.bytes();
    writer.append(&[b"not synced"]).unwrap();
    assert_eq!((writer.bytes(), writer.watermark()), (durable + 24 + 16, durable));
    writer.sync().unwrap();
    let synced = writer.bytes();
    writer.sync().unwrap();
    assert_eq!(writer.bytes(), synced, "nothing new: nothing written");
    writer.append(&[b"last"]).unwrap();
    expected.extend([b"not synced".to_vec(), b"last".to_vec()]);
    let mut reader = scratch.reader();
    assert!(read_all(&mut reader).0 == expected);
    assert_eq!(reader.watermark(), synced);
}

/// The log cut at every byte gives exactly the records that are whole.
#[test]
fn a_cut_at_any_byte_keeps_the_records_before_it() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    let mut ends = vec![0];
    for n in 0..12 {
        writer.append(&[&vec![n; usize::from(n) * 3]]).unwrap();
        ends.push(writer.bytes());
    }
    let bytes = scratch.bytes();
    for cut in 0..=bytes.len() {
        scratch.set_bytes(&bytes[..cut]);
        let (payloads, end) = read_all(&mut scratch.reader());
        let whole = ends.iter().rposition(|&end| end <= cut as u64).unwrap();
        assert_eq!(payloads.len(), whole, "cut at {cut}");
        let offset = ends[whole];
        match end {
            End::Clean { offset: at } => assert_eq!((at, cut as u64), (offset, offset)),
            End::Torn { offset: at, .. } => assert!(at == offset && offset < cut as u64),
            End::Foreign { .. } => panic!("a cut leaves nothing foreign"),
        }
    }
}

/// A changed byte anywhere ends the records before it; none is ever misread.
#[test]
fn a_changed_byte_ends_the_records_before_it() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    let mut ends = vec![0];
    for n in 0..6u8 {
        writer.append(&[&[n; 13]]).unwrap();
        ends.push(writer.bytes());
    }
    let bytes = scratch.bytes();
    for at in 0..bytes.len() {
        for change in [1, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= change;
            scratch.set_bytes(&damaged);
            let (payloads, end) = read_all(&mut scratch.reader());
            let whole = ends.iter().rposition(|&end| end <= at as u64).unwrap();
            assert_eq!(payloads.len(), whole, "byte {at}");
            let in_header = at as u64 - ends[whole] < HEADER_BYTES as u64;
            match end {
                End::Foreign { offset } => assert!(in_header && offset == ends[whole]),
                End::Torn { offset, .. } => assert!(!in_header && offset == ends[whole]),
                End::Clean { .. } => panic!("byte {at} was not noticed"),
            }
            let found = scratch.scan(ends[whole] + 8);
            let next = ends.get(whole + 1).copied().filter(|&next| next < bytes.len() as u64);
            assert_eq!(found.first, next, "the scan finds the next record");
        }
    }
}

/// Records of another file, or of this one at another place, do not count.
#[test]
fn records_count_only_in_their_file_and_place() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    writer.append(&[b"one", b"two"]).unwrap();
    let bytes = scratch.bytes();
    let mut other = scratch.reader_of(FileId(ID.0 ^ 1));
    assert!(read_all(&mut other).0.is_empty());
    scratch.set_bytes(&bytes[32..]);
    assert!(read_all(&mut scratch.reader()).0.is_empty());
}

/// A reader that is polled while the file grows gives each record once, also
/// where it read ahead of what was written.
#[test]
fn a_growing_file_can_be_followed() {
    let scratch = Scratch::new();
    // A recycled file: old bytes follow what is written.
    scratch.set_bytes(&[0xaa; 100_000]);
    let file = scratch.fs.overwrite(Path::new(PATH)).unwrap();
    let mut writer = RecordWriter::new(&scratch.fs, Path::new(PATH), file, ID, 0);
    let mut reader = scratch.reader();
    assert!(matches!(reader.next().unwrap(), Next::End(End::Foreign { offset: 0 })));
    for round in 0..50u8 {
        writer.append(&[&[round; 100]]).unwrap();
        writer.append(&[&[round; 7]]).unwrap();
        let Next::Record { payload, .. } = reader.next().unwrap() else { panic!("round {round}") };
        assert_eq!(payload, [round; 100]);
        writer.append(&[b"x"]).unwrap();
        let rest = read_all(&mut reader).0;
        assert_eq!(rest, [vec![round; 7], b"x".to_vec()]);
    }
    reader.set_limit(reader.offset());
    writer.append(&[b"past the limit"]).unwrap();
    assert!(matches!(reader.next().unwrap(), Next::End(End::Clean { .. })));
}

/// A record of an unknown kind stops the reader unless it is marked as
/// skippable: nothing that must be understood is passed over.
#[test]
fn unknown_kinds_are_refused_unless_skippable() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    writer.append(&[b"before"]).unwrap();
    let at = writer.bytes();
    writer.append(&[b"changed", b"after"]).unwrap();
    let bytes = scratch.bytes();
    for (kind, flags, understood) in
        [(5, 0, false), (0x7f, 0, false), (0x80, 0, true), (1, 1, false)]
    {
        let mut changed = bytes.clone();
        let header = &mut changed[at as usize..][..HEADER_BYTES];
        (header[16], header[17]) = (kind, flags);
        let checksum = crc32c(&header[4..]) ^ context(ID, at);
        header[..4].copy_from_slice(&checksum.to_le_bytes());
        scratch.set_bytes(&changed);
        let mut reader = scratch.reader();
        assert!(matches!(reader.next().unwrap(), Next::Record { payload: b"before", .. }));
        match reader.next() {
            Ok(Next::Record { payload, .. }) => assert!(understood && payload == b"after"),
            Err(Error::Incompatible { .. }) => assert!(!understood),
            other => panic!("{other:?}"),
        }
    }
}

/// A file full of headers that claim huge payloads is read in memory bounded
/// by the file, and scanned in one pass.
#[test]
fn hostile_lengths_are_not_believed() {
    let scratch = Scratch::new();
    let mut bytes = Vec::new();
    let owner = Owner::new(ID);
    for n in 0..50_000u64 {
        let mut record = Vec::new();
        encode(&mut record, owner, n * 24, Kind::Payload, 0, b"");
        record[8..12].copy_from_slice(&(u32::MAX - 7).to_le_bytes());
        let checksum = crc32c(&record[4..24]) ^ context(ID, n * 24);
        record[..4].copy_from_slice(&checksum.to_le_bytes());
        bytes.extend_from_slice(&record);
    }
    scratch.set_bytes(&bytes);
    let mut reader = scratch.reader();
    let torn = End::Torn { offset: 0, what: "a record ends early" };
    assert!(matches!(reader.next().unwrap(), Next::End(end) if end == torn));
    let found = scratch.scan(8);
    assert_eq!(found, Scan { first: Some(24), watermark: 0, predecessor_durable: false });
}

/// Tag and checksum each turn a former life's header away by themselves: one
/// alone would let through one in four billion.
#[test]
fn a_header_needs_both_tag_and_checksum() {
    let owner = Owner::new(ID);
    let former = Owner { id: ID, tag: owner.tag ^ 1 };
    let mut record = Vec::new();
    encode(&mut record, former, 64, Kind::Payload, 0, b"");
    assert!(Header::decode(record.first_chunk().unwrap(), former, 64).is_some());
    assert!(Header::decode(record.first_chunk().unwrap(), owner, 64).is_none());
    let moved = Header::decode(record.first_chunk().unwrap(), former, 72);
    assert!(moved.is_none());
}

/// What a reader that knows short records gives, and which of them are.
fn read_all_with_shorts(scratch: &Scratch) -> (Vec<(Vec<u8>, bool)>, End) {
    let mut reader = scratch.reader().with_shorts();
    let mut found = Vec::new();
    loop {
        match reader.next().unwrap() {
            Next::Record { payload, is_short, .. } => found.push((payload.to_vec(), is_short)),
            Next::End(end) => return (found, end),
        }
    }
}

/// Appends in the short form where that is allowed; says whether it was.
fn append_shortest(writer: &mut RecordWriter, payload: &[u8]) -> bool {
    let (&first, rest) = payload.split_first().unwrap();
    let short = writer.append_short(first, rest).map(|appended| appended.unwrap());
    if short.is_none() {
        writer.append(&[payload]).unwrap();
    }
    short.is_some()
}

/// Short records come back with others between them, and both sides agree on where they
/// stand and on the checksum.
#[test]
fn short_records_come_back() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    let mut expected = Vec::new();
    for n in 1..1000usize {
        let payload = vec![n as u8; if n % 50 == 0 { 70_000 } else { n % 200 + 1 }];
        let is_short = append_shortest(&mut writer, &payload);
        expected.push((payload, is_short));
        match n % 90 {
            17 => writer.sync().unwrap(),
            40 => _ = writer.append_marker(Kind::ManifestEdit, &7u64.to_le_bytes()).unwrap(),
            _ => {}
        }
    }
    let (found, end) = read_all_with_shorts(&scratch);
    assert!(found == expected);
    assert_eq!(end, End::Clean { offset: writer.bytes() });
    let shorts = expected.iter().filter(|(_, is_short)| *is_short).count();
    assert!((900..990).contains(&shorts), "{shorts}");
    let mut reader = scratch.reader().with_shorts();
    while let Next::Record { .. } = reader.next().unwrap() {}
    assert_eq!((reader.checksum(), reader.manifest_edit()), (writer.checksum(), 7));
}

/// Each block has a whole header, from which on its records can be read, and so has what
/// follows a sync: it is the witness.
#[test]
fn short_records_have_a_whole_header_before_them_in_their_block() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    assert!(!append_shortest(&mut writer, &[1; 119]));
    assert_eq!(writer.bytes(), 24 + 120);
    assert!(append_shortest(&mut writer, &[2; 120]));
    assert_eq!(writer.bytes(), 24 + 120 + 128);
    writer.append_marker(Kind::PredecessorDurable, &[]).unwrap();
    assert!(append_shortest(&mut writer, &[3; 9]), "a marker is in nobody's way");
    writer.sync().unwrap();
    writer.append_marker(Kind::PredecessorDurable, &[]).unwrap();
    assert!(!append_shortest(&mut writer, &[4; 9]), "no payload has told of the sync");
    assert!(append_shortest(&mut writer, &[4; 1]));
    let mut other = Scratch::new().writer();
    other.append(&[b"first"]).unwrap();
    assert!(!append_shortest(&mut other, &[6; 4096]), "its length has no room");
    let mut other = Scratch::new().writer();
    other.append(&[b"first"]).unwrap();
    assert!(append_shortest(&mut other, &[6; 4095]));
    for n in 0..500 {
        append_shortest(&mut writer, &vec![5; 119 + n % 3]);
    }
    for block in 0..writer.bytes() / BLOCK_BYTES {
        let found = scratch.scan(block * BLOCK_BYTES).first.expect("there is one");
        assert!(
            found < block * BLOCK_BYTES + 152 || block == 0,
            "block {block}: the first is at {found}"
        );
    }
    assert_eq!(scratch.scan(BLOCK_BYTES).watermark, BLOCK_BYTES);
}

/// Cut at any byte, or with any bit changed, exactly the whole records before are given.
#[test]
fn a_damaged_short_record_ends_the_records_before_it() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    let mut ends = vec![0];
    for n in 1..12u8 {
        assert_eq!(append_shortest(&mut writer, &vec![n; usize::from(n) * 3]), n > 1);
        ends.push(writer.bytes());
    }
    let bytes = scratch.bytes();
    let assert_ends = |at: usize, what: &str| {
        let (found, end) = read_all_with_shorts(&scratch);
        let whole = ends.iter().rposition(|&end| end <= at as u64).unwrap();
        assert_eq!((found.len(), end.offset()), (whole, ends[whole]), "{what} at {at}");
    };
    for at in 0..bytes.len() {
        scratch.set_bytes(&bytes[..at]);
        assert_ends(at, "cut");
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            scratch.set_bytes(&damaged);
            assert_ends(at, "changed");
        }
    }
}

/// Short records count only in their file and at their place, and not before a payload
/// that has a whole header: what they follow is not known there.
#[test]
fn short_records_count_only_behind_a_payload_of_their_file() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    writer.append(&[b"first"]).unwrap();
    let (second, third) = (writer.bytes(), writer.bytes() + 16);
    assert!(append_shortest(&mut writer, b"second") && append_shortest(&mut writer, b"third."));
    let bytes = scratch.bytes();
    let without = read_all(&mut scratch.reader());
    assert_eq!(without, (vec![b"first".to_vec()], End::Foreign { offset: second }));
    let file = scratch.fs.open(Path::new(PATH)).unwrap();
    let mut late = RecordReader::new(file, Path::new(PATH), ID, second, u64::MAX).with_shorts();
    assert!(matches!(late.next().unwrap(), Next::End(End::Foreign { .. })));
    let mut moved = bytes.clone();
    moved.copy_within(third as usize.., second as usize);
    scratch.set_bytes(&moved);
    assert_eq!(read_all_with_shorts(&scratch).0.len(), 1, "it stood elsewhere");
    // The file's tag, with the header's checksum of another id.
    let owner = Owner { id: FileId(ID.0 ^ 1), tag: Owner::new(ID).tag };
    let mut other = bytes[..second as usize].to_vec();
    short::encode(&mut other, owner, second, b's', b"econd");
    scratch.set_bytes(&other);
    assert_eq!(read_all_with_shorts(&scratch).0.len(), 1, "it is another file's");
}

/// Behind a bad place short records are looked for up to the block's end, also one that
/// crosses it, and no further.
#[test]
fn a_short_record_is_found_in_its_block_only() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    let mut shorts = Vec::new();
    for _ in 0..40 {
        let offset = writer.bytes();
        if append_shortest(&mut writer, &[5; 120]) {
            shorts.push(offset);
        }
    }
    let crossing = BLOCK_BYTES - 112;
    let at = shorts.iter().position(|&short| short == crossing).expect("it crosses the border");
    assert_eq!(shorts[at + 1], BLOCK_BYTES + 16 + 144, "there are more in the next block");
    for (&short, &next) in shorts[..at].iter().zip(&shorts[1..]) {
        assert_eq!(scratch.find_short(short), Some(next));
        assert_eq!(scratch.find_short(short + 1), Some(next));
    }
    for offset in crossing..BLOCK_BYTES {
        assert_eq!(scratch.find_short(offset), None, "{offset}");
    }
    let bytes = scratch.bytes();
    for (end, found) in [(crossing + 128, Some(crossing)), (crossing + 127, None)] {
        scratch.set_bytes(&bytes[..end as usize]);
        assert_eq!(scratch.find_short(shorts[at - 1]), found, "the file ends at {end}");
    }
}
