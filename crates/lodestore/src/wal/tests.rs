use super::recover::Recovery;
use super::*;
use crate::fs::{Capabilities, Fault, FaultFs, MemFs, Operation, read_all};
use crate::key::FileId;
use crate::record::BLOCK_BYTES;
use std::collections::BTreeSet;
use std::path::PathBuf;

mod crashes;
mod damage;

fn path(number: u64) -> PathBuf {
    PathBuf::from(format!("{number:06}.wal"))
}

/// A log as the database keeps it: rotates, syncs in order, recycles.
struct Log {
    fs: Arc<dyn Fs>,
    writer: Option<SegmentWriter>,
    sealed: Vec<Sealed>,
    next_number: u64,
}

impl Log {
    fn new(fs: Arc<dyn Fs>) -> Log {
        let mut log = Log::closed(fs);
        log.begin(None, None).unwrap();
        log
    }

    /// A log without a segment yet.
    fn closed(fs: Arc<dyn Fs>) -> Log {
        Log { fs, writer: None, sealed: Vec::new(), next_number: 1 }
    }

    fn begin(&mut self, predecessor: Option<Predecessor>, recycle: Option<&Path>) -> Result<()> {
        let number = self.next_number;
        self.next_number += 1;
        let header = SegmentHeader {
            number,
            id: FileId(u128::from(number) << 64 | 0xabcd),
            database: FileId(1),
            manifest_id: FileId(2),
            manifest_edit: 3,
            first_sequence: 4,
            predecessor,
            short_records: true,
        };
        let writer =
            SegmentWriter::create(&self.fs, &path(number), &header, recycle, Room::Ahead(1 << 16))?;
        self.writer = Some(writer);
        Ok(())
    }

    fn writer(&mut self) -> &mut SegmentWriter {
        self.writer.as_mut().expect("the log is open")
    }

    fn rotate(&mut self, recycle: Option<&Path>) -> Result<()> {
        let sealed = self.writer.take().expect("the log is open").seal();
        let predecessor = sealed.as_predecessor();
        self.sealed.push(sealed);
        self.begin(Some(predecessor), recycle)
    }

    fn append(&mut self, record: u32) -> std::result::Result<(), Failure> {
        self.writer().append(&payload(record)).map(|_| ())
    }

    fn sync(&mut self) -> Result<()> {
        for sealed in &mut self.sealed {
            sealed.sync()?;
        }
        self.writer().predecessors_are_durable().map_err(Failure::into_error)?;
        self.writer().sync().map_err(Failure::into_error)
    }
}

/// Batches of many lengths, known by the bytes behind their headers, with the numbers
/// of their places: most are short records, therefore.
fn payload(record: u32) -> Vec<u8> {
    let mut bytes = u64::from(record).to_le_bytes().to_vec();
    bytes.extend_from_slice(&1u32.to_le_bytes());
    bytes.extend_from_slice(&record.to_le_bytes());
    bytes.resize(16 + (record as usize * 37) % 300, record as u8);
    bytes
}

/// A manifest that needs the segments from `first_live` on.
fn from(first_live: u64) -> Expected<'static> {
    let (directory, database) = (Path::new(""), FileId(1));
    Expected { directory, database, first_live, durable: DurableLog::default() }
}

/// The numbers of the files that there are.
fn numbers(fs: &dyn Fs) -> Vec<u64> {
    let names = fs.list(Path::new("")).unwrap();
    names.iter().map(|name| name.strip_suffix(".wal").unwrap().parse().unwrap()).collect()
}

/// Those that hold nothing of the log: they were not begun, or follow a cut.
fn unused(fs: &dyn Fs, recovery: &Recovery) -> Vec<u64> {
    let is_used = |number: &u64| recovery.segments.iter().any(|s| s.header.number == *number);
    numbers(fs).into_iter().filter(|number| !is_used(number)).collect()
}

/// The records that recovery gives, and what it says.
fn replay(fs: &dyn Fs, first_live: u64) -> Result<(Vec<u32>, Recovery)> {
    replay_expecting(fs, from(first_live))
}

fn replay_expecting(fs: &dyn Fs, expected: Expected<'_>) -> Result<(Vec<u32>, Recovery)> {
    let segments: Vec<_> = numbers(fs).into_iter().map(|number| (number, path(number))).collect();
    let mut records = Vec::new();
    let recovery = recover(fs, expected, &segments, Access::ReadWrite, &mut |place, bytes| {
        assert_eq!(place.path, path(place.number));
        let record = u32::from_le_bytes(bytes[12..16].try_into().unwrap());
        assert_eq!(bytes, payload(record), "a wrong record at {place:?}");
        records.push(record);
        Ok(())
    })?;
    Ok((records, recovery))
}

fn memory() -> (MemFs, Arc<dyn Fs>) {
    let fs = MemFs::new();
    (fs.clone(), Arc::new(fs))
}

fn set(fs: &dyn Fs, path: &Path, bytes: &[u8]) {
    fs.create(path).unwrap().append(bytes).unwrap();
}

/// Records come back in order across segments, with what each header says.
#[test]
fn records_come_back_in_order_across_segments() {
    let (_, fs) = memory();
    let mut log = Log::new(Arc::clone(&fs));
    for record in 0..30 {
        log.append(record).unwrap();
        if record % 10 == 9 {
            log.rotate(None).unwrap();
        }
        if record == 13 {
            log.sync().unwrap();
        }
    }
    let (records, recovery) = replay(&*fs, 1).unwrap();
    assert_eq!(records, (0..30).collect::<Vec<_>>());
    assert!(recovery.cut.is_none() && unused(&*fs, &recovery).is_empty());
    assert_eq!(recovery.segments.len(), 4);
    assert_eq!(recovery.segments[3].header, *log.writer().header());
    assert_eq!(recovery.as_predecessor().unwrap().bytes, log.writer().bytes());
    let expected = log.writer.take().unwrap().seal().as_predecessor();
    assert_eq!(recovery.as_predecessor().unwrap(), expected);
    let (records, _) = replay(&*fs, 3).unwrap();
    assert_eq!(records, (20..30).collect::<Vec<_>>(), "older segments are of no interest");
}

/// A record longer than any buffer, alone in its segment.
#[test]
fn a_huge_record_comes_back() {
    let (_, fs) = memory();
    let mut log = Log::new(Arc::clone(&fs));
    let huge: Vec<u8> = (0..5u32 << 20).map(|i| (i * 31) as u8).collect();
    log.writer().append(&huge).unwrap();
    log.writer().append_and_sync(b"after").unwrap();
    let mut reader = SegmentReader::open(&*fs, &path(1), 1).unwrap();
    assert!(reader.next().unwrap().unwrap().1 == huge);
    assert_eq!(reader.next().unwrap().unwrap().1, b"after");
    assert!(reader.next().unwrap().is_none());
    assert_eq!(log.writer().bytes() % BLOCK_BYTES, 0);
}

/// A file that can't be truncated takes nothing after a failed append; one
/// that can is cut back. Either way the failed record is never seen.
#[test]
fn a_failed_append_leaves_no_record() {
    for truncation in [true, false] {
        for written in [0, 1, 30, usize::MAX] {
            let capabilities = Capabilities { truncation, ..Capabilities::default() };
            let fs = FaultFs::new(Arc::new(MemFs::with_capabilities(capabilities)));
            let mut log = Log::new(Arc::new(fs.clone()));
            log.append(0).unwrap();
            fs.inject(Fault::os(Operation::Append, 1, libc::ENOSPC).after_bytes(written));
            let failure = log.append(1).unwrap_err();
            assert_eq!(matches!(failure, Failure::Undone(_)), truncation);
            assert_eq!(log.writer().poison().is_none(), truncation);
            if !truncation {
                assert!(matches!(log.append(2), Err(Failure::Poisoned(_))));
                log.rotate(None).unwrap();
            }
            log.append(3).unwrap();
            log.sync().unwrap();
            let (records, recovery) = replay(&fs, 1).unwrap();
            assert_eq!(records, [0, 3]);
            assert!(recovery.cut.is_none());
        }
    }
}

/// After a failed sync, of data or of the name, the file is never synced or
/// written again.
#[test]
fn a_failed_sync_is_never_repeated() {
    for operation in [Operation::Sync, Operation::SyncDirectory] {
        let fs = FaultFs::new(Arc::new(MemFs::new()));
        let mut log = Log::new(Arc::new(fs.clone()));
        log.append(0).unwrap();
        fs.inject(Fault::new(operation, 1, std::io::ErrorKind::Other));
        assert!(matches!(log.writer().sync(), Err(Failure::Poisoned(_))));
        let calls = || (fs.calls(Operation::Sync), fs.calls(Operation::Append));
        let before = calls();
        assert!(matches!(log.writer().sync(), Err(Failure::Poisoned(_))));
        assert!(matches!(log.append(1), Err(Failure::Poisoned(_))));
        let mut sealed = log.writer.take().unwrap().seal();
        assert!(sealed.sync().is_err() && !sealed.is_durable());
        assert_eq!(calls(), before);
    }
}

/// A record whose sync failed has failed: whether the file can be cut or only
/// its successor tells where it ends, no recovery gives it.
#[test]
fn a_record_that_could_not_be_synced_is_not_given_back() {
    for truncation in [true, false] {
        let capabilities = Capabilities { truncation, ..Capabilities::default() };
        let fs = FaultFs::new(Arc::new(MemFs::with_capabilities(capabilities)));
        let mut log = Log::new(Arc::new(fs.clone()));
        log.append(0).unwrap();
        let end = log.writer().bytes();
        fs.inject(Fault::os(Operation::Sync, 1, libc::ENOSPC));
        let failure = log.writer().append_and_sync(&payload(1));
        assert!(matches!(failure, Err(Failure::Poisoned(_))));
        assert_eq!(log.writer().bytes(), end);
        if truncation {
            assert_eq!(replay(&fs, 1).unwrap().0, [0], "before there is a successor");
        }
        log.rotate(None).unwrap();
        log.append(3).unwrap();
        assert_eq!(replay(&fs, 1).unwrap().0, [0, 3]);
    }
}

/// A batch with the number and the count that are given.
fn batch(first: u64, count: u32, records: &[u8]) -> Vec<u8> {
    [&first.to_le_bytes()[..], &count.to_le_bytes(), records].concat()
}

/// Whatever numbers and counts batches have, and however long they are, they come back;
/// those that go on where the one before ended, with few entries, in short records.
#[test]
fn batches_come_back_from_short_records() {
    let (_, fs) = memory();
    let mut log = Log::new(Arc::clone(&fs));
    let batches = [
        (batch(7, 1, b"the first"), 24 + 24),
        (batch(8, 3, b"goes on"), 16),
        (batch(11, 0, b"opaque"), 16),
        (batch(11, 255, b"many"), 16),
        (batch(266, 256, b"too many"), 24 + 24),
        (batch(523, 1, b"a number is left out"), 24 + 32),
        (batch(524, 1, b"goes on"), 16),
        (batch(3, 1, b"goes back"), 24 + 24),
        (batch(4, 1, b""), 16),
        (b"no batch".to_vec(), 24 + 8),
        (batch(5, 1, b"after what is none"), 24 + 32),
        (batch(6, 1, &[b'l'; 4095]), 24 + 4112),
        (batch(7, 1, b"in the next block"), 24 + 32),
        (batch(8, 1, &[b'l'; 4094]), 8 + 4096),
    ];
    for (batch, bytes) in &batches {
        let offset = log.writer().append(batch).unwrap();
        assert_eq!(log.writer().bytes() - offset, *bytes, "{batch:?}");
    }
    let mut reader = SegmentReader::open(&*fs, &path(1), 1).unwrap();
    for (batch, _) in &batches {
        assert_eq!(reader.next().unwrap().unwrap().1, batch);
    }
    assert!(reader.next().unwrap().is_none());
}

/// The number of a batch that could not be appended is the next one's: that one has its
/// place, and nothing of what failed.
#[test]
fn a_batch_in_place_of_a_failed_one_comes_back() {
    let others = [
        [batch(2, 2, b"another"), batch(4, 1, b"behind it")],
        // Its number went to what is not in the log, as an ingested table.
        [batch(3, 1, b"another"), batch(4, 1, b"behind it")],
    ];
    for (written, others) in
        [0, 1, 9, 20, usize::MAX].map(|n| [(n, &others[0]), (n, &others[1])]).concat()
    {
        let fs = FaultFs::new(Arc::new(MemFs::new()));
        let mut log = Log::new(Arc::new(fs.clone()));
        log.append(0).unwrap();
        log.append(1).unwrap();
        fs.inject(Fault::os(Operation::Append, 1, libc::ENOSPC).after_bytes(written));
        let failure = log.append(2).unwrap_err();
        assert!(matches!(failure, Failure::Undone(_)));
        others.iter().for_each(|other| _ = log.writer().append(other).unwrap());
        let mut reader = SegmentReader::open(&fs, &path(1), 1).unwrap();
        for expected in [payload(0), payload(1)].iter().chain(others) {
            assert_eq!(reader.next().unwrap().unwrap().1, expected, "{written}");
        }
        assert!(reader.next().unwrap().is_none());
    }
}

/// Syncing a segment while an older one may still be lost is a bug of ours.
#[test]
#[should_panic(expected = "is synced before the one before it")]
fn segments_are_synced_in_order() {
    let (_, fs) = memory();
    let mut log = Log::new(fs);
    log.append(0).unwrap();
    log.rotate(None).unwrap();
    let _ = log.writer().sync();
}

/// After a durable predecessor a segment can be synced at once, and a sealed
/// one can be synced on another thread.
#[test]
fn sealed_segments_can_be_synced_elsewhere() {
    let (_, fs) = memory();
    let mut log = Log::new(fs);
    log.append(0).unwrap();
    log.sync().unwrap();
    log.rotate(None).unwrap();
    assert!(log.writer().are_predecessors_durable());
    log.append(1).unwrap();
    log.rotate(None).unwrap();
    assert!(!log.writer().are_predecessors_durable());
    let mut sealed = log.sealed.pop().unwrap();
    let synced = std::thread::spawn(move || sealed.sync().map(|()| sealed));
    assert!(synced.join().unwrap().unwrap().is_durable());
    log.writer().predecessors_are_durable().unwrap();
    log.writer().sync().unwrap();
}

/// A recycled segment shows none of its former records, however much of the
/// new life is written; without overwriting the old file just goes.
#[test]
fn recycled_files_show_no_stale_record() {
    for overwriting in [true, false] {
        let capabilities = Capabilities { overwriting, ..Capabilities::default() };
        let fs: Arc<dyn Fs> = Arc::new(MemFs::with_capabilities(capabilities));
        let mut log = Log::new(Arc::clone(&fs));
        (0..100).for_each(|record| log.append(record).unwrap());
        log.rotate(None).unwrap();
        // The same lengths again: every new record ends where an old one began.
        log.rotate(Some(&path(1))).unwrap();
        for record in 0..100 {
            let (records, recovery) = replay(&*fs, 2).unwrap();
            assert_eq!(records, (0..record).collect::<Vec<_>>());
            assert!(recovery.cut.is_none(), "{:?}", recovery.cut);
            log.append(record).unwrap();
        }
        assert!(fs.open(&path(1)).is_err());
        assert_eq!(replay(&*fs, 2).unwrap().0.len(), 100);
    }
}

/// A crash between the new name of a recycled file and its new header leaves a
/// segment that was not begun.
#[test]
fn recycled_file_with_its_old_header_was_not_begun() {
    let (_, fs) = memory();
    let mut log = Log::new(Arc::clone(&fs));
    log.append(0).unwrap();
    log.rotate(None).unwrap();
    log.append(1).unwrap();
    fs.rename(&path(1), &path(3)).unwrap();
    let (records, recovery) = replay(&*fs, 2).unwrap();
    assert_eq!(records, [1]);
    assert_eq!(unused(&*fs, &recovery), [3]);
    // The same with a live segment is no crash: someone renamed it.
    assert!(replay(&*fs, 1).unwrap_err().is_corruption());
}

/// A reader follows the live segment and stops where it was sealed.
#[test]
fn a_live_segment_can_be_followed() {
    let (_, fs) = memory();
    let mut log = Log::new(Arc::clone(&fs));
    let mut reader = SegmentReader::open(&*fs, &path(1), 1).unwrap();
    for record in 0..20 {
        assert!(reader.next().unwrap().is_none());
        log.append(record).unwrap();
        if record % 5 == 0 {
            log.sync().unwrap();
        }
        reader.set_limit(log.writer().bytes());
        assert_eq!(reader.next().unwrap().unwrap().1, payload(record));
    }
    assert!(reader.next().unwrap().is_none());
    // A record that must be there and is damaged is no end of the log.
    let mut bytes = read_all(&*fs, &path(1)).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    set(&*fs, &path(1), &bytes);
    let mut reader = SegmentReader::open(&*fs, &path(1), 1).unwrap();
    while reader.next().unwrap().is_some() {}
    reader.set_limit(log.writer().bytes());
    assert!(reader.next().unwrap_err().is_corruption());
    assert!(SegmentReader::open(&*fs, &path(1), 2).unwrap_err().is_corruption());
}

/// A recovered segment is made durable where that is possible.
#[test]
fn recovered_segments_can_be_made_durable() {
    let (memory, fs) = memory();
    let mut log = Log::new(fs);
    log.append(7).unwrap();
    let after = memory.kill();
    assert!(sync_recovered(&after, &path(1)).unwrap());
    for seed in 0..20 {
        assert_eq!(replay(&after.crash(seed), 1).unwrap().0, [7]);
    }
    let appending = MemFs::with_capabilities(Capabilities::default());
    assert!(!sync_recovered(&appending, &path(1)).unwrap());
}
