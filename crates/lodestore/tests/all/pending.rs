//! Lookups that are begun now and awaited later.

use std::future::Future;
use std::io::ErrorKind;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};

use lodestore::fs::{Fault, FaultFs, Operation};
use lodestore::{Db, Error, FamilyOptions, Fs, MemFs, Options, PendingGet, ReadOptions, Value};

const KEYS: u32 = 6000;

fn options(fs: Arc<dyn Fs>) -> Options {
    let family = FamilyOptions {
        memtable_bytes: 64 << 10,
        table_bytes: 32 << 10,
        block_bytes: 512,
        ..FamilyOptions::default()
    };
    Options { create_if_missing: true, cache_bytes: 0, fs, family, ..Options::default() }
}

fn key(i: u32) -> [u8; 4] {
    (i * 2).to_be_bytes()
}

fn value(i: u32) -> Vec<u8> {
    testkit::random::bytes(60, u64::from(i))
}

/// A database whose entries are in tables, of which nothing is in memory.
fn database(fs: &Arc<MemFs>) -> Result<Db, Error> {
    let fs: Arc<dyn Fs> = fs.clone();
    let db = Db::open("db", options(Arc::clone(&fs)))?;
    (0..KEYS).try_for_each(|i| db.put(&key(i * 7919 % KEYS), &value(i * 7919 % KEYS)))?;
    db.flush()?;
    drop(db);
    Db::open("db", options(fs))
}

/// Polls until it is done, and sleeps in between until it is woken.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Thread(std::thread::Thread);
    impl Wake for Thread {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Thread(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// More lookups than are served together, awaited in another order than begun, by
/// several threads at once: each gives what `get` gives.
#[test]
fn what_was_begun_comes_out_as_it_was() -> Result<(), Error> {
    let db = database(&Arc::new(MemFs::new()))?;
    let threads = 3;
    let barrier = Barrier::new(threads);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (db, barrier) = (&db, &barrier);
            scope.spawn(move || {
                barrier.wait();
                let begun: Vec<(u32, PendingGet)> =
                    (0..2 * KEYS).map(|i| (i, db.get_later(&i.to_be_bytes()))).collect();
                for (i, pending) in begun.into_iter().rev() {
                    let by_future = (i as usize + thread).is_multiple_of(2);
                    let found = if by_future { block_on(pending) } else { pending.wait() };
                    let expected = i.is_multiple_of(2).then(|| value(i / 2));
                    assert_eq!(found.expect("it is read").as_deref(), expected.as_deref());
                }
            });
        }
    });
    Ok(())
}

/// A lookup sees the state in which it was begun, whatever is written, flushed and
/// compacted before it is read; what is in memory is there at once.
#[test]
fn a_lookup_sees_the_moment_when_it_was_begun() -> Result<(), Error> {
    let db = database(&Arc::new(MemFs::new()))?;
    let old = ReadOptions::at(&db.snapshot());
    for round in 0..20u32 {
        let keys = || (0..KEYS).skip(round as usize).step_by(50);
        let begun: Vec<(u32, PendingGet)> = keys().map(|i| (i, db.get_later(&key(i)))).collect();
        let before = if round == 0 { None } else { Some((round - 1).to_be_bytes()) };
        for i in 0..KEYS {
            db.put(&key(i), &round.to_be_bytes())?;
        }
        let in_memory = db.get_later(&key(KEYS - 1));
        assert!(in_memory.is_ready());
        assert_eq!(in_memory.wait()?.as_deref(), Some(&round.to_be_bytes()[..]));
        if round % 5 == 0 {
            db.compact_range(None, None)?;
        }
        for (i, pending) in begun {
            let expected = before.map_or_else(|| value(i), |bytes| bytes.to_vec());
            assert_eq!(pending.wait()?.as_deref(), Some(&expected[..]), "round {round}, key {i}");
        }
        let then = db.get_later_with(&old, &key(round));
        assert_eq!(then.wait()?.as_deref(), Some(&value(round)[..]));
    }
    Ok(())
}

/// A file that can't be read fails the lookups that need it, and these alone; a
/// lookup that nobody waits for harms nobody; one outlives the database's handle.
#[test]
fn failures_and_leavers_concern_nobody_else() -> Result<(), Error> {
    let memory = Arc::new(MemFs::new());
    drop(database(&memory)?);
    let fs = FaultFs::new(memory);
    let db = Db::open("db", options(Arc::new(fs.clone())))?;
    let wait = |pending: PendingGet| -> Result<Option<Value>, Error> { pending.wait() };
    assert_eq!(wait(db.get_later(&key(1)))?.as_deref(), Some(&value(1)[..]));

    fs.inject(Fault::new(Operation::Read, 1, ErrorKind::Other).forever().on(".table"));
    let begun: Vec<PendingGet> = (0..100).map(|i| db.get_later(&key(i))).collect();
    let failed = begun.into_iter().map(wait).filter(Result::is_err).count();
    assert_eq!(failed, 100);
    drop(db.get_later(&key(7)));
    fs.heal();
    assert_eq!(wait(db.get_later(&key(2)))?.as_deref(), Some(&value(2)[..]));

    for i in 0..1000 {
        drop(db.get_later(&key(i)));
    }
    let snapshot_of_another = {
        let other = Db::open("other", options(Arc::new(MemFs::new())))?;
        ReadOptions::at(&other.snapshot())
    };
    let refused = db.get_later_with(&snapshot_of_another, &key(1));
    assert!(matches!(refused.wait(), Err(Error::InvalidArgument { .. })));
    let last = db.get_later(&key(3));
    drop(db);
    assert_eq!(wait(last)?.as_deref(), Some(&value(3)[..]));
    Ok(())
}

/// A future wakes the task that polled it last, once.
#[test]
fn the_task_that_waits_is_woken() -> Result<(), Error> {
    #[derive(Default)]
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let db = database(&Arc::new(MemFs::new()))?;
    for i in 0..200 {
        let (first, last) = (Arc::<Count>::default(), Arc::<Count>::default());
        let mut pending = pin!(db.get_later(&key(i)));
        let wakers = [&first, &last].map(|count| Waker::from(Arc::clone(count)));
        let mut poll = |waker| pending.as_mut().poll(&mut Context::from_waker(waker));
        if wakers.iter().any(|waker| poll(waker).is_ready()) {
            continue; // it was faster
        }
        while last.0.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(first.0.load(Ordering::SeqCst), 0);
        let Poll::Ready(found) = pending.as_mut().poll(&mut Context::from_waker(&wakers[1])) else {
            panic!("it woke too early")
        };
        assert_eq!(found?.as_deref(), Some(&value(i)[..]));
    }
    Ok(())
}
