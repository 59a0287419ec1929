use super::*;
use crate::fs::os::tests::TestDirectory;
use crate::fs::{Fs, OsFs};
use std::sync::Arc;

const FILE_BYTES: usize = 300 * 1000;

/// A file and its content; `None` where files can't be read directly.
fn direct_file(directory: &TestDirectory) -> Option<(Arc<dyn ReadableFile>, Vec<u8>)> {
    let path = directory.file("a");
    let content: Vec<u8> = (0..FILE_BYTES).map(|i| (i * 31 / 7) as u8).collect();
    std::fs::write(&path, &content).unwrap();
    match OsFs.open_direct(&path) {
        Ok(file) => Some((file, content)),
        Err(error) => {
            println!("not tested, {} can't be read directly: {error}", path.display());
            None
        }
    }
}

/// Any range comes back, whatever blocks a device has, up to the end of the file
/// and not beyond.
#[test]
fn any_range_is_read_directly() {
    let directory = TestDirectory::new();
    let Some((file, content)) = direct_file(&directory) else { return };
    for offset in [0, 1, 4095, 4096, 8191, 100_000, FILE_BYTES - 1, FILE_BYTES, FILE_BYTES + 9000] {
        for length in [0, 1, 100, 4096, 4097, 65_536, FILE_BYTES + 5000] {
            let mut buffer = vec![0; length];
            let read = file.read_at(offset as u64, &mut buffer).unwrap();
            let expected = content.get(offset..).unwrap_or_default();
            let expected = &expected[..length.min(expected.len())];
            assert!(buffer[..read] == *expected, "{length} bytes at {offset}: {read}");
        }
    }
    assert_eq!(file.length().unwrap(), FILE_BYTES as u64);
}

/// A way to read many at once.
type Read = fn(Vec<ReadRequest>, &mut dyn FnMut(usize, ReadResult));

/// Many reads at once give what single ones would, each exactly once: neighbours,
/// the same block twice, blocks across the borders of a device's, long ones, and
/// one past the end, which fails alone. With a ring and without.
#[test]
fn many_direct_reads_are_each_served_once() {
    let directory = TestDirectory::new();
    let Some((file, content)) = direct_file(&directory) else { return };
    let places: Vec<(usize, usize)> = (0..600)
        .map(|i| match i % 7 {
            0 => (i * 400, 4000),
            1 => ((i - 1) * 400 + 4000, 500),
            2 => ((i - 2) * 400, 4000),
            3 => (i * 487 % 200_000, 70_000),
            4 => (FILE_BYTES - 50, 50),
            5 if i > 300 => (FILE_BYTES - 50, 51),
            _ => (i * 7919 % 290_000, 1 + i),
        })
        .collect();
    let requests = || -> Vec<ReadRequest> {
        let request = |&(offset, length): &(usize, usize)| ReadRequest {
            file: Arc::clone(&file),
            offset: offset as u64,
            buffer: vec![0; length],
        };
        places.iter().map(request).collect()
    };
    let check = |read: Read| {
        let mut served = vec![0; places.len()];
        read(requests(), &mut |index, result| {
            served[index] += 1;
            let (offset, length) = places[index];
            match content.get(offset..offset + length) {
                Some(expected) => assert!(result.unwrap() == expected, "{:?}", places[index]),
                None => assert_eq!(result.unwrap_err().kind(), io::ErrorKind::UnexpectedEof),
            }
        });
        assert!(served.iter().all(|&times| times == 1), "{served:?}");
    };
    check(|reads, complete| OsFs.read_many(reads, complete));
    check(|mut reads, complete| {
        let all: Vec<usize> = (0..reads.len()).collect();
        read_one_by_one(&mut reads, &all, complete);
    });
    let mut served = 0;
    OsFs.read_many(requests().split_off(599), &mut |_, _| served += 1);
    OsFs.read_many(Vec::new(), &mut |_, _| served += 1);
    assert_eq!(served, 1);
}

/// Neighbours become one read, of whole blocks, as long as it is not too long.
#[test]
fn neighbours_are_read_together() {
    let directory = TestDirectory::new();
    let (a, b) = (directory.file("a"), directory.file("b"));
    let [a, b] = [a, b].map(|path| File::create(path).unwrap());
    let k = |n: u64| n << 10;
    let of_a =
        [(100, 200), (300, 5000), (k(8), 10), (k(12) + 1, 10), (k(40), 4096), (k(44), 70_000)];
    let places: Vec<_> = of_a.into_iter().chain([(k(120), 1)]).collect();
    let files = [&a, &a, &a, &a, &a, &a, &b];
    let found: Vec<_> = spans(&files, &places)
        .iter()
        .map(|span| (span.offset >> 10, span.bytes >> 10, span.requests.clone()))
        .collect();
    assert_eq!(found, [(0, 16, 0..4), (40, 4, 4..5), (44, 72, 5..6), (120, 4, 6..7)]);
}
