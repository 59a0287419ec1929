//! Cuts and rot in the files of a log.

use super::*;

/// Three segments; every record below `synced` was made durable.
fn three_segments(synced: Option<u32>) -> (Arc<dyn Fs>, Vec<Vec<u64>>) {
    let (_, fs) = memory();
    let mut log = Log::new(Arc::clone(&fs));
    let mut ends = vec![vec![BLOCK_BYTES]];
    for record in 0..15 {
        log.append(record).unwrap();
        if synced == Some(record + 1) {
            log.sync().unwrap();
        }
        ends.last_mut().unwrap().push(log.writer().bytes());
        if record % 5 == 4 && record < 14 {
            log.rotate(None).unwrap();
            ends.push(vec![log.writer().bytes()]);
        }
    }
    (fs, ends)
}

/// The newest segment cut at any byte keeps exactly the records before.
#[test]
fn newest_segment_cut_anywhere_keeps_the_records_before() {
    let (fs, ends) = three_segments(None);
    let bytes = read_all(&*fs, &path(3)).unwrap();
    for cut in 0..=bytes.len() {
        set(&*fs, &path(3), &bytes[..cut]);
        let (records, recovery) = replay(&*fs, 1).unwrap();
        let whole = ends[2].iter().rposition(|&end| end <= cut as u64).unwrap_or(0);
        assert_eq!(records, (0..10 + whole as u32).collect::<Vec<_>>(), "cut at {cut}");
        let begun = cut >= 256;
        assert_eq!(unused(&*fs, &recovery).is_empty(), begun);
        let at_border = cut as u64 <= ends[2][0] || ends[2].contains(&(cut as u64));
        assert_eq!(recovery.cut.is_none(), at_border, "cut at {cut}");
    }
}

/// An older segment that lost its unsynced end, at a record's border or not,
/// ends the replay there: later segments would leave a hole.
#[test]
fn older_segment_that_lost_its_end_ends_the_replay() {
    let (fs, ends) = three_segments(None);
    let bytes = read_all(&*fs, &path(2)).unwrap();
    for cut in 0..bytes.len() {
        set(&*fs, &path(2), &bytes[..cut]);
        let (records, recovery) = replay(&*fs, 1).unwrap();
        let whole = ends[1].iter().rposition(|&end| end <= cut as u64).unwrap_or(0);
        assert_eq!(records, (0..5 + whole as u32).collect::<Vec<_>>(), "cut at {cut}");
        assert!(recovery.cut.is_some());
        assert!(unused(&*fs, &recovery).contains(&3));
    }
    fs.remove(&path(2)).unwrap();
    let (records, recovery) = replay(&*fs, 1).unwrap();
    assert_eq!(records, [0, 1, 2, 3, 4]);
    assert_eq!(unused(&*fs, &recovery), [3]);
}

/// The same loss is corruption as soon as anything later shows that the bytes
/// were durable: a watermark, the note of a marker, or the successor's header.
#[test]
fn loss_of_durable_bytes_is_corruption() {
    type Proof = fn(&mut Log);
    let proofs: [(&str, Proof); 3] = [
        ("header", |log| {
            log.sync().unwrap();
            log.rotate(None).unwrap();
        }),
        ("marker", |log| {
            log.rotate(None).unwrap();
            log.sealed[0].sync().unwrap();
            log.writer().predecessors_are_durable().unwrap();
        }),
        ("far watermark", |log| {
            log.rotate(None).unwrap();
            log.append(100).unwrap();
            log.rotate(None).unwrap();
            log.sync().unwrap();
            log.append(101).unwrap();
        }),
    ];
    for (name, prove) in proofs {
        let (_, fs) = memory();
        let mut log = Log::new(Arc::clone(&fs));
        (0..5).for_each(|record| log.append(record).unwrap());
        let end = log.writer().bytes() as usize;
        prove(&mut log);
        replay(&*fs, 1).unwrap();
        let bytes = read_all(&*fs, &path(1)).unwrap();
        for cut in (0..end).step_by(8) {
            set(&*fs, &path(1), &bytes[..cut]);
            let error = replay(&*fs, 1).unwrap_err();
            let Error::Corruption { path: at, offset, .. } = &error else { panic!("{error}") };
            if cut >= 256 {
                assert_eq!(*at, path(1), "{name}: {error}");
                assert!(*offset == BLOCK_BYTES || *offset <= cut as u64, "{name}: {error}");
            }
        }
        fs.remove(&path(1)).unwrap();
        let error = replay(&*fs, 1).unwrap_err();
        assert!(
            error.is_corruption() && error.to_string().contains("000001.wal"),
            "{name}: {error}"
        );
    }
}

/// The manifest is such a proof for all segments before the one that it knows to be
/// durable, also where that one holds no record and its header was written earlier.
#[test]
fn loss_before_the_segment_that_the_manifest_knows_is_corruption() {
    let (_, fs) = memory();
    let mut log = Log::new(Arc::clone(&fs));
    (0..5).for_each(|record| log.append(record).unwrap());
    log.rotate(None).unwrap();
    log.rotate(None).unwrap();
    let known = |number| {
        let durable = DurableLog { number, bytes: BLOCK_BYTES };
        replay_expecting(&*fs, Expected { durable, ..from(1) })
    };
    let bytes = read_all(&*fs, &path(1)).unwrap();
    assert_eq!(known(2).unwrap().0, [0, 1, 2, 3, 4]);
    set(&*fs, &path(1), &bytes[..BLOCK_BYTES as usize]);
    assert!(known(1).unwrap().1.cut.is_some(), "it may have been durable up to its header only");
    for number in [2, 3] {
        let error = known(number).unwrap_err();
        assert!(error.is_corruption() && error.to_string().contains("000001.wal"), "{error}");
    }
    fs.remove(&path(1)).unwrap();
    assert!(replay(&*fs, 1).unwrap().1.cut.is_some());
    let error = known(2).unwrap_err();
    assert!(error.is_corruption() && error.to_string().contains("000001.wal"), "{error}");
}

/// Whatever byte changes, recovery gives a prefix or refuses; what was durable
/// before a later write is never given up silently.
#[test]
fn a_changed_byte_gives_a_prefix_or_corruption() {
    for synced in [None, Some(3), Some(8), Some(14)] {
        let (fs, ends) = three_segments(synced);
        for segment in 1..=3u64 {
            let bytes = read_all(&*fs, &path(segment)).unwrap();
            for at in (0..bytes.len()).filter(|at| at % 7 == 0 || at % 512 < 40) {
                let mut damaged = bytes.clone();
                damaged[at] ^= 0x10;
                set(&*fs, &path(segment), &damaged);
                let durable = synced.unwrap_or(0);
                match replay(&*fs, 1) {
                    Ok((records, _)) => {
                        assert_eq!(records, (0..records.len() as u32).collect::<Vec<_>>());
                        assert!(records.len() as u32 >= durable, "{synced:?} {segment} {at}");
                    }
                    Err(Error::Corruption { .. }) => {
                        let last = (durable.saturating_sub(1) / 5 + 1).into();
                        assert!(synced.is_some() && segment <= last, "{synced:?} {segment} {at}");
                    }
                    Err(other) => panic!("{other}"),
                }
            }
            set(&*fs, &path(segment), &bytes);
        }
        assert_eq!(ends.len(), 3);
    }
}

/// A bad record below a later watermark refuses to open and says where; above
/// it, it is a torn tail.
#[test]
fn watermark_tells_rot_from_a_torn_tail() {
    let (_, fs) = memory();
    let mut log = Log::new(Arc::clone(&fs));
    log.append(0).unwrap();
    let second = log.writer().bytes();
    log.append(1).unwrap();
    log.sync().unwrap();
    log.append(2).unwrap();
    let fourth = log.writer().bytes();
    log.append(3).unwrap();
    let bytes = read_all(&*fs, &path(1)).unwrap();

    let mut damaged = bytes.clone();
    damaged[fourth as usize + 30] ^= 1;
    set(&*fs, &path(1), &damaged);
    let (records, recovery) = replay(&*fs, 1).unwrap();
    assert_eq!(records, [0, 1, 2]);
    assert_eq!(recovery.cut.unwrap().offset, fourth);

    damaged = bytes;
    damaged[second as usize + 30] ^= 1;
    set(&*fs, &path(1), &damaged);
    let error = replay(&*fs, 1).unwrap_err();
    assert!(matches!(error, Error::Corruption { offset, .. } if offset == second), "{error}");
}

/// Among the newest records, of which nothing tells that they are durable, a damaged one
/// that others follow is told of: they are given up with it.
#[test]
fn damage_among_the_newest_records_is_told() {
    let (_, fs) = memory();
    let mut log = Log::new(Arc::clone(&fs));
    let mut ends = vec![log.writer().bytes()];
    for record in 0..20 {
        log.append(record).unwrap();
        ends.push(log.writer().bytes());
    }
    assert!(ends[20] < 2 * BLOCK_BYTES, "no later block has a whole header");
    let bytes = read_all(&*fs, &path(1)).unwrap();
    for at in ends[0]..ends[19] {
        let mut damaged = bytes.clone();
        damaged[at as usize] ^= 0x10;
        set(&*fs, &path(1), &damaged);
        let (records, recovery) = replay(&*fs, 1).unwrap();
        let whole = ends.iter().rposition(|&end| end <= at).unwrap();
        assert_eq!(records.len(), whole, "byte {at}");
        assert_eq!(recovery.cut.unwrap().offset, ends[whole], "byte {at}");
    }
}

/// In a segment of version 1.0 nothing is a short record, whatever it looks like.
#[test]
fn first_version_has_no_short_records() {
    let (_, fs) = memory();
    let mut log = Log::new(Arc::clone(&fs));
    log.append(0).unwrap();
    let first = log.writer().bytes();
    log.append(1).unwrap();
    log.append(2).unwrap();
    let header = SegmentHeader { short_records: false, ..log.writer().header().clone() };
    let mut bytes = header.encode();
    bytes.extend_from_slice(&read_all(&*fs, &path(1)).unwrap()[BLOCK_BYTES as usize..]);
    set(&*fs, &path(1), &bytes);
    let (records, recovery) = replay(&*fs, 1).unwrap();
    assert_eq!((records, recovery.segments[0].bytes), (vec![0], first));
    assert!(recovery.cut.is_none(), "nothing there is known to be lost");
    // Nor is one written.
    let mut old = SegmentWriter::create(&fs, &path(2), &header, None, Room::AsNeeded).unwrap();
    let begin = old.append(&payload(0)).unwrap();
    old.append(&payload(1)).unwrap();
    old.append(&payload(2)).unwrap();
    assert_eq!([payload(0).len(), payload(1).len(), payload(2).len()], [16, 53, 90]);
    assert_eq!(old.bytes() - begin, 3 * 24 + 16 + 56 + 96);
}

/// A log goes on in 1.1 behind segments of 1.0.
#[test]
fn versions_of_segments_mix() {
    let (_, fs) = memory();
    let mut log = Log::new(Arc::clone(&fs));
    log.append(0).unwrap();
    let header = SegmentHeader { short_records: false, ..log.writer().header().clone() };
    let old = SegmentWriter::create(&fs, &path(1), &header, None, Room::AsNeeded).unwrap();
    log.writer = Some(old);
    let whole = |record| 24 + payload(record).len().next_multiple_of(8) as u64;
    (0..5).for_each(|record| log.append(record).unwrap());
    assert_eq!(log.writer().bytes(), BLOCK_BYTES + (0..5).map(whole).sum::<u64>());
    log.rotate(None).unwrap();
    (5..10).for_each(|record| log.append(record).unwrap());
    assert!(log.writer().bytes() < BLOCK_BYTES + (5..10).map(whole).sum::<u64>());
    let (records, recovery) = replay(&*fs, 1).unwrap();
    assert_eq!(records, (0..10).collect::<Vec<_>>());
    assert!(recovery.cut.is_none());
}

/// Another file under a segment's name is named as corruption.
#[test]
fn swapped_segments_are_corruption() {
    let (fs, _) = three_segments(None);
    let (other, _) = three_segments(None);
    let mut foreign = Log::new(Arc::clone(&other));
    foreign.append(50).unwrap();
    let bytes = |number| read_all(&*fs, &path(number)).unwrap();
    let (first, second) = (bytes(1), bytes(2));
    set(&*fs, &path(1), &second);
    set(&*fs, &path(2), &first);
    assert!(replay(&*fs, 1).unwrap_err().is_corruption());
    // A log of another database, with the right number.
    set(&*fs, &path(2), &second);
    let header = SegmentHeader { number: 1, id: FileId(99), ..SegmentHeader::default() };
    SegmentWriter::create(&fs, &path(1), &header, None, Room::AsNeeded).unwrap();
    let error = replay(&*fs, 1).unwrap_err();
    assert!(error.to_string().contains("of database"), "{error}");
    // One of this database.
    let header = SegmentHeader { database: FileId(1), ..header };
    SegmentWriter::create(&fs, &path(1), &header, None, Room::AsNeeded).unwrap();
    let error = replay(&*fs, 1).unwrap_err();
    assert!(error.to_string().contains("should have"), "{error}");
}

/// A segment whose records are sound, as many and as long, but not those that
/// its successor knows, is corruption: no lost tail looks like this.
#[test]
fn other_records_of_the_same_length_are_corruption() {
    let (fs, _) = three_segments(None);
    let bytes = read_all(&*fs, &path(1)).unwrap();
    let mut again = Log::new(Arc::clone(&fs));
    for record in [0, 1, 2, 3, 4] {
        let mut changed = payload(record);
        changed[16..].fill(9);
        again.writer().append(&changed).unwrap();
    }
    assert_eq!(again.writer().bytes(), bytes.len() as u64);
    let error = recover(
        &*fs,
        from(1),
        &[(1, path(1)), (2, path(2))],
        Access::ReadWrite,
        &mut |_, _| Ok(()),
    )
    .unwrap_err();
    assert!(error.to_string().contains("not those"), "{error}");
}

/// Either copy of a header is enough; with none the segment was not begun.
#[test]
fn one_copy_of_the_header_is_enough() {
    let (fs, _) = three_segments(None);
    let bytes = read_all(&*fs, &path(3)).unwrap();
    for (damage, records) in [(&[0][..], 15), (&[2048], 15), (&[100], 15), (&[0, 2048], 10)] {
        let mut damaged = bytes.clone();
        damage.iter().for_each(|&at: &usize| damaged[at] ^= 1);
        set(&*fs, &path(3), &damaged);
        assert_eq!(replay(&*fs, 1).unwrap().0.len(), records);
    }
}

/// `bytes` of a segment with other ones at `at` of its header, whose checksum is
/// right again.
fn with_header_bytes(bytes: &[u8], at: usize, new: &[u8]) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    for copy in [0, 2048] {
        changed[copy + at..][..new.len()].copy_from_slice(new);
        let checksum = crate::checksum::crc32c(&changed[copy..copy + 252]);
        changed[copy + 252..copy + 256].copy_from_slice(&checksum.to_le_bytes());
    }
    changed
}

/// What a later version writes is refused as such, not called damaged.
#[test]
fn newer_logs_are_incompatible() {
    let (fs, _) = three_segments(None);
    let bytes = read_all(&*fs, &path(1)).unwrap();
    let change = |at: usize| {
        set(&*fs, &path(1), &with_header_bytes(&bytes, at, &[bytes[at] ^ 4]));
        replay(&*fs, 1)
    };
    for at in [8, 9, 24, 32, 39, 160, 176, 178] {
        assert!(matches!(change(at), Err(Error::Incompatible { .. })), "byte {at}");
    }
    assert_eq!(change(16).unwrap().0.len(), 15, "a compatible feature is ignored");
    for at in [12, 156, 180, 251] {
        assert_eq!(change(at).unwrap().0.len(), 15, "byte {at} is reserved");
    }
    change(24).unwrap_err();
    let mut count = 0;
    let visit = &mut |_: Place<'_>, _: &[u8]| {
        count += 1;
        Ok(())
    };
    recover(&*fs, from(1), &[(1, path(1))], Access::ReadOnly, visit).unwrap();
    assert_eq!(count, 5, "reading is allowed");
}

/// Every segment follows an older one, so that the way back has an end.
#[test]
fn a_segment_that_follows_itself_or_a_newer_one_is_corruption() {
    let (fs, _) = three_segments(None);
    let bytes = read_all(&*fs, &path(2)).unwrap();
    let own_id = bytes[48..64].to_vec();
    for number in [2u64, 3, u64::MAX] {
        let predecessor = [&number.to_le_bytes()[..], &own_id].concat();
        set(&*fs, &path(2), &with_header_bytes(&bytes, 112, &predecessor));
        for first in [1, 2] {
            let error = replay(&*fs, first).unwrap_err();
            assert!(error.is_corruption(), "{number}: {error}");
            assert!(error.to_string().contains("invalid fields"), "{number}: {error}");
        }
    }
}

/// Random bytes as a log never panic and never take long.
#[test]
fn random_files_never_panic() {
    let (fs, _) = three_segments(Some(7));
    let originals: Vec<_> = (1..=3).map(|n| read_all(&*fs, &path(n)).unwrap()).collect();
    let mut seed = 7u64;
    let mut random = move |limit: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % limit
    };
    for _ in 0..3000 {
        for (index, original) in originals.iter().enumerate() {
            let mut bytes = original.clone();
            for _ in 0..random(4) {
                let (at, length) = (random(bytes.len()), random(64));
                let end = (at + length).min(bytes.len());
                bytes[at..end].fill_with(|| random(256) as u8);
            }
            if random(3) == 0 {
                bytes.truncate(random(bytes.len() + 1));
            }
            set(&*fs, &path(index as u64 + 1), &bytes);
        }
        if let Ok((records, _)) = replay(&*fs, 1) {
            assert_eq!(records, (0..records.len() as u32).collect::<Vec<_>>());
        }
    }
}
