use super::*;
use crate::fs::os::tests::TestDirectory;
use crate::fs::{Fs, OsFs, ReadList};
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
type Read = fn(&mut dyn ReadStream);

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
            length,
        };
        places.iter().map(request).collect()
    };
    let check = |read: Read| {
        let mut served = vec![0; places.len()];
        read(&mut ReadList::new(requests(), |index: usize, result: io::Result<&[u8]>| {
            served[index] += 1;
            let (offset, length) = places[index];
            match content.get(offset..offset + length) {
                Some(expected) => assert!(result.unwrap() == expected, "{:?}", places[index]),
                None => assert_eq!(result.unwrap_err().kind(), io::ErrorKind::UnexpectedEof),
            }
        }));
        assert!(served.iter().all(|&times| times == 1), "{served:?}");
    };
    check(|reads| OsFs.read_many(reads));
    check(|reads| read_in_threads(&mut Spans::new(reads)));
    let mut served = 0;
    for requests in [requests().split_off(599), Vec::new()] {
        OsFs.read_many(&mut ReadList::new(requests, |_, _: io::Result<&[u8]>| served += 1));
    }
    assert_eq!(served, 1);
}

/// Neighbours become one read, of whole blocks, as long as it is not too long.
#[test]
fn neighbours_are_read_together() {
    let directory = TestDirectory::new();
    let Some((a, _)) = direct_file(&directory) else { return };
    let b = OsFs.open_direct(&directory.file("a")).unwrap();
    let k = |n: u64| n << 10;
    let of_a =
        [(100, 200), (300, 5000), (k(8), 10), (k(12) + 1, 10), (k(40), 4096), (k(44), 70_000)];
    let of = |file: &Arc<dyn ReadableFile>, (offset, length)| ReadRequest {
        file: Arc::clone(file),
        offset,
        length,
    };
    let requests = of_a.map(|place| of(&a, place)).into_iter().chain([of(&b, (k(120), 1))]);
    let mut reads = ReadList::new(requests.collect(), |_, _: io::Result<&[u8]>| ());
    let mut spans = Spans::new(&mut reads);
    let found: Vec<_> = std::iter::from_fn(|| spans.next())
        .map(|span| {
            let requests: Vec<usize> = span.requests.iter().map(|(index, _)| *index).collect();
            (span.offset >> 10, span.bytes >> 10, requests)
        })
        .collect();
    let expected =
        [(0, 16, vec![0, 1, 2, 3]), (40, 4, vec![4]), (44, 72, vec![5]), (120, 4, vec![6])];
    assert_eq!(found, expected);
}

/// A stream that gives reads only once others are answered is read to its end.
#[test]
fn streams_go_on_after_answers() {
    struct Chain {
        file: Arc<dyn ReadableFile>,
        asked: usize,
        answered: usize,
    }
    impl ReadStream for Chain {
        fn next(&mut self) -> Option<ReadRequest> {
            if self.asked == 50 || self.asked > self.answered + 2 {
                return None;
            }
            self.asked += 1;
            let offset = self.asked as u64 * 4096;
            Some(ReadRequest { file: Arc::clone(&self.file), offset, length: 10 })
        }

        fn answer(&mut self, _: usize, read: io::Result<&[u8]>) {
            assert_eq!(read.unwrap().len(), 10);
            self.answered += 1;
        }
    }
    let directory = TestDirectory::new();
    let Some((direct, _)) = direct_file(&directory) else { return };
    for file in [direct, OsFs.open(&directory.file("a")).unwrap()] {
        let mut chain = Chain { file, asked: 0, answered: 0 };
        OsFs.read_many(&mut chain);
        assert_eq!((chain.asked, chain.answered), (50, 50));
    }
}

/// A read that was begun gives what a read does, wherever it begins and ends, also
/// if less of it is wanted; one that is given up disturbs none after it.
#[test]
fn begun_reads_give_what_reads_do() {
    let directory = TestDirectory::new();
    let Some((file, content)) = direct_file(&directory) else { return };
    for (offset, length, wanted) in
        [(0, 4096, 4096), (100, 70_000, 70_000), (5000, 9000, 10), (FILE_BYTES - 50, 100, 100)]
    {
        drop(file.begin_read(1, 100));
        let Some(read) = file.begin_read(offset as u64, length) else {
            println!("not tested: no reads go on by themselves here");
            return;
        };
        let mut buffer = vec![0; wanted];
        let count = read.finish(&mut buffer).unwrap();
        let expected = &content[offset..(offset + wanted).min(FILE_BYTES)];
        assert!(buffer[..count] == *expected, "{count} bytes at {offset}");
    }
}
