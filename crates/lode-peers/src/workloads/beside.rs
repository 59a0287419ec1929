//! Reading while writing. The writer writes what is there already, so that
//! what readers must find is known, and keeps to the same rate for everybody.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};

use lode_bench::pace::Pace;

use super::write::filled_at_random;
use super::{Done, Purpose, Run, read};
use crate::engine::Result;
use crate::failure::Failure;
use crate::workload::PUTS_BESIDE_PER_SECOND;

/// `threads` look keys up while one writes.
pub fn read(run: &Run<'_>, threads: u64, begin: &mut dyn FnMut()) -> Result<Done> {
    let stop = AtomicBool::new(false);
    let (is_writing, writes) = mpsc::channel();
    let (read, written) = std::thread::scope(|scope| {
        let stop = &stop;
        let writer = scope.spawn(move || write(run, stop, is_writing));
        // A writer that failed before its first put is told of below.
        let _ = writes.recv();
        begin();
        let read = read::in_threads(run, threads, |thread, count| {
            read::get_all(run, read::drawn(run, Purpose::Beside, thread, count))
        });
        stop.store(true, Ordering::Relaxed);
        let died = || Err(Failure::Failed("the writer beside the readers panicked".to_string()));
        (read, writer.join().unwrap_or_else(|_| died()))
    });
    Ok(Done { puts_beside: Some(written?), ..read? })
}

/// Writes single entries, whatever the lane says of batches, until `stop`. Says
/// so once it is writing.
fn write(run: &Run<'_>, stop: &AtomicBool, is_writing: Sender<()>) -> Result<u64> {
    let pace = Pace::new(PUTS_BESIDE_PER_SECOND);
    let mut keys = run.stream.keys();
    let mut puts = 0;
    let mut numbers = filled_at_random(run);
    while !stop.load(Ordering::Relaxed) {
        let Some(number) = numbers.next() else {
            numbers = filled_at_random(run);
            continue;
        };
        pace.wait(1, stop);
        run.engine.put(keys.key(number), run.stream.value(number, 0))?;
        puts += 1;
        if puts == 1 {
            // Nobody waits for more than the first.
            let _ = is_writing.send(());
        }
    }
    Ok(puts)
}
