//! Lookups: one key or many at a time, by one thread or several.

use lode_bench::popularity::Popularity;
use lode_bench::random::Random;

use super::{Done, Purpose, Run, Timer};
use crate::digest::Digest;
use crate::engine::Result;
use crate::failure::Failure;
use crate::stream::Keys;
use crate::workload::{MULTI_GET_KEYS, ZIPF_RANGE};

pub fn random(run: &Run<'_>) -> Result<Done> {
    in_threads(run, run.threads, |thread, count| {
        get_all(run, drawn(run, Purpose::Read, thread, count))
    })
}

pub fn missing(run: &Run<'_>) -> Result<Done> {
    in_threads(run, run.threads, |thread, count| {
        let numbers = drawn(run, Purpose::Missing, thread, count);
        look_up(run, numbers, |keys, number| keys.missing(number))
    })
}

pub fn popular(run: &Run<'_>) -> Result<Done> {
    let popularity = Popularity::new(run.stream.entries(), ZIPF_RANGE, run.stream.seed());
    in_threads(run, run.threads, |thread, count| {
        let mut random = Random::new(run.stream.seed() ^ (Purpose::Zipf as u64 + thread));
        get_all(run, (0..count).map(|_| popularity.draw(&mut random)))
    })
}

pub fn many(run: &Run<'_>) -> Result<Done> {
    in_threads(run, run.threads, |thread, count| {
        get_many(run, drawn(run, Purpose::MultiGet, thread, count))
    })
}

/// Numbers that thread `thread` draws for `purpose`.
pub fn drawn(
    run: &Run<'_>,
    purpose: Purpose,
    thread: u64,
    count: u64,
) -> impl Iterator<Item = u64> + use<> {
    run.stream.draws(purpose as u64 + thread).take(count as usize)
}

/// Looks each of `numbers` up.
pub fn get_all(run: &Run<'_>, numbers: impl Iterator<Item = u64>) -> Result<Done> {
    look_up(run, numbers, |keys, number| keys.key(number))
}

fn look_up(
    run: &Run<'_>,
    numbers: impl Iterator<Item = u64>,
    key_of: impl Fn(&mut Keys, u64) -> &[u8],
) -> Result<Done> {
    let mut keys = run.stream.keys();
    let mut timer = Timer::new(run);
    let mut digest = Digest::default();
    let mut operations = 0;
    for number in numbers {
        let key = key_of(&mut keys, number);
        let visit = &mut |value: &[u8]| digest.add(number, value);
        timer.time(|| run.engine.get(key, visit))?;
        operations += 1;
    }
    Ok(Done { operations, digest: Some(digest), latencies: timer.latencies, ..Done::default() })
}

fn get_many(run: &Run<'_>, numbers: impl Iterator<Item = u64>) -> Result<Done> {
    let mut keys = run.stream.keys();
    let mut timer = Timer::new(run);
    let mut digest = Digest::default();
    let mut numbers = numbers.peekable();
    let mut operations = 0;
    let (mut places, mut wanted) = (Vec::new(), vec![Vec::new(); MULTI_GET_KEYS]);
    while numbers.peek().is_some() {
        places.clear();
        places.extend(numbers.by_ref().take(MULTI_GET_KEYS));
        wanted.truncate(places.len());
        for (number, key) in places.iter().zip(&mut wanted) {
            key.clear();
            key.extend_from_slice(keys.key(*number));
        }
        let visit = &mut |at: usize, value: &[u8]| digest.add(places[at], value);
        timer.time(|| run.engine.multi_get(&wanted, visit))?;
        operations += places.len() as u64;
    }
    Ok(Done { operations, digest: Some(digest), latencies: timer.latencies, ..Done::default() })
}

/// Divides the lookups among `threads` and adds up what they did. `work` takes
/// the thread's number and its share.
pub fn in_threads(
    run: &Run<'_>,
    threads: u64,
    work: impl Fn(u64, u64) -> Result<Done> + Sync,
) -> Result<Done> {
    let share = |thread: u64| run.reads / threads + u64::from(thread < run.reads % threads);
    if threads == 1 {
        return work(0, run.reads);
    }
    let results: Vec<Result<Done>> = std::thread::scope(|scope| {
        let work = &work;
        let start = |thread| scope.spawn(move || work(thread, share(thread)));
        let handles: Vec<_> = (0..threads).map(start).collect();
        let died = || Err(Failure::Failed("a thread of the workload panicked".to_string()));
        handles.into_iter().map(|handle| handle.join().unwrap_or_else(|_| died())).collect()
    });
    let mut sum = Done { digest: Some(Digest::default()), ..Done::default() };
    for done in results {
        let done = done?;
        sum.operations += done.operations;
        sum.latencies.merge(&done.latencies);
        if let (Some(sum), Some(found)) = (&mut sum.digest, &done.digest) {
            sum.merge(found);
        }
    }
    Ok(sum)
}
