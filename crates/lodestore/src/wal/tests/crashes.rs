//! A crash at every operation of a run, as a kill and as power losses.

use super::*;

/// What the writer was told.
#[derive(Clone, Copy, Debug, Default)]
struct Acknowledged {
    written: u32,
    synced: u32,
}

/// Writes records until something fails.
fn run(log: &mut Log, first: u32, count: u32, told: &mut Acknowledged) -> Result<()> {
    for record in first..first + count {
        log.append(record).map_err(Failure::into_error)?;
        told.written = record + 1;
        if record % 7 == 5 {
            log.rotate(None)?;
        }
        if record % 4 == 3 {
            log.sync()?;
            told.synced = record + 1;
        }
    }
    Ok(())
}

/// Recovers, checks that nothing acknowledged is lost, and goes on writing.
fn check(after: &MemFs, least: u32, most: u32, context: &str) -> u32 {
    let (records, recovery) = replay(after, 1).unwrap_or_else(|error| panic!("{context}: {error}"));
    let count = records.len() as u32;
    assert_eq!(records, (0..count).collect::<Vec<_>>(), "{context}");
    assert!(least <= count && count <= most, "{context}: {count} not in {least}..={most}");

    // As the database does: what does not count goes, what counts is made
    // durable, and a new segment begins.
    let fs: Arc<dyn Fs> = Arc::new(after.clone());
    let highest = numbers(&*fs).into_iter().max().unwrap_or(0);
    for number in unused(&*fs, &recovery) {
        fs.remove(&path(number)).unwrap();
    }
    let mut log = Log { fs, writer: None, sealed: Vec::new(), next_number: highest + 1 };
    log.begin(recovery.as_predecessor(), None).unwrap();
    for segment in &recovery.segments {
        assert!(sync_recovered(after, &path(segment.header.number)).unwrap());
    }
    let mut told = Acknowledged::default();
    run(&mut log, count, 5, &mut told).unwrap();
    log.sync().unwrap();
    for seed in 0..2 {
        let again = after.crash(seed);
        let (records, _) = replay(&again, 1).unwrap_or_else(|error| panic!("{context}: {error}"));
        assert_eq!(records.len() as u32, count + 5, "{context}: after a second crash");
    }
    count
}

/// Stopped at any operation, a killed process loses nothing that was
/// acknowledged, and a power loss nothing that was synced.
#[test]
fn a_crash_at_any_operation_keeps_what_was_acknowledged() {
    let whole = MemFs::new();
    run(&mut Log::new(Arc::new(whole.clone())), 0, 30, &mut Acknowledged::default()).unwrap();
    let mut outcomes = BTreeSet::new();
    for stop in 0..whole.operations() {
        let fs = MemFs::new();
        fs.stop_after(stop);
        let mut told = Acknowledged::default();
        let mut log = Log::closed(Arc::new(fs.clone()));
        let begun = log.begin(None, None);
        assert!(begun.and_then(|()| run(&mut log, 0, 30, &mut told)).is_err());
        check(&fs.kill(), told.written, told.written + 1, &format!("killed at {stop}"));
        for seed in 0..12 {
            let context = format!("power lost at {stop} with seed {seed}");
            let kept = check(&fs.crash(seed), told.synced, told.written + 1, &context);
            outcomes.insert((kept == told.written, kept == told.synced));
        }
    }
    assert!(outcomes.len() >= 3, "the crashes are too much alike: {outcomes:?}");
}

/// The same with recycled files, where a stale record may lie behind any torn
/// one: none is ever taken for a new one.
#[test]
fn a_crash_while_recycling_shows_nothing_stale() {
    for stop in 0.. {
        let fs = MemFs::new();
        let shared: Arc<dyn Fs> = Arc::new(fs.clone());
        let mut log = Log::new(Arc::clone(&shared));
        (1000..1040).for_each(|record| log.append(record).unwrap());
        log.sync().unwrap();
        log.rotate(None).unwrap();
        log.sync().unwrap();
        fs.stop_after(fs.operations() + stop);
        let mut told = Acknowledged::default();
        let done = recycle_and_write(&mut log, &mut told);
        for seed in 0..8 {
            let (records, _) = replay(&fs.crash(seed), 2).unwrap();
            let count = records.len() as u32;
            assert_eq!(records, (0..count).collect::<Vec<_>>(), "stop {stop} seed {seed}");
            assert!(told.synced <= count && count <= told.written + 1);
        }
        if done.is_ok() {
            return;
        }
    }
}

fn recycle_and_write(log: &mut Log, told: &mut Acknowledged) -> Result<()> {
    // The rotation and all that follows it may fail at any operation.
    log.rotate(Some(&path(1)))?;
    run_in_one_segment(log, told)
}

fn run_in_one_segment(log: &mut Log, told: &mut Acknowledged) -> Result<()> {
    for record in 0..20 {
        log.append(record).map_err(Failure::into_error)?;
        told.written = record + 1;
        if record % 6 == 5 {
            log.sync()?;
            told.synced = record + 1;
        }
    }
    Ok(())
}
