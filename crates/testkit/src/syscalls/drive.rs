//! Every call of the story, one after the other: the process is killed at it,
//! or it fails.

use super::inject::{Blow, Ended, Order, Thread, run};
use super::recover::recover;
use super::report::{Report, Row};
use super::silence::Silence;
use super::story::{Log, Progress, story};
use crate::temp_dir::TempDir;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// A call, and the errors that it is made to give.
type Struck = (&'static str, &'static [&'static str]);

/// Calls that are struck. A device fails with EIO, a full one with ENOSPC, and a
/// process without descriptors with EMFILE.
pub const CALLS: [Struck; 23] = [
    ("pwrite64", &["EIO", "ENOSPC"]),
    ("pwritev", &["EIO", "ENOSPC"]),
    ("pwritev2", &["EIO", "ENOSPC"]),
    ("write", &["EIO", "ENOSPC"]),
    ("writev", &["EIO", "ENOSPC"]),
    ("fsync", &["EIO"]),
    ("fdatasync", &["EIO"]),
    ("sync_file_range", &["EIO"]),
    ("msync", &["EIO"]),
    ("rename", &["EIO", "ENOSPC"]),
    ("renameat", &["EIO", "ENOSPC"]),
    ("renameat2", &["EIO", "ENOSPC"]),
    ("link", &["EIO", "ENOSPC"]),
    ("linkat", &["EIO", "ENOSPC"]),
    ("unlink", &["EIO"]),
    ("unlinkat", &["EIO"]),
    ("openat", &["EIO", "EMFILE"]),
    ("ftruncate", &["EIO"]),
    ("fallocate", &["EIO", "ENOSPC"]),
    ("copy_file_range", &["EIO", "ENOSPC"]),
    ("io_uring_enter", &["EIO"]),
    ("mkdir", &["EIO", "ENOSPC"]),
    ("pread64", &["EIO"]),
];

/// Whether strace works here. The error says why it does not.
///
/// # Errors
/// A sentence for a person.
pub fn strace_works() -> Result<(), String> {
    let mut probe = Command::new("strace");
    probe.args(["-qq", "-o", "/dev/null", "-e", "inject=getppid:retval=1", "true"]);
    match probe.stdin(Stdio::null()).output() {
        Err(error) => Err(format!("strace cannot be started: {error}")),
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_string()),
    }
}

/// Calls of one name, made by one thread, that one thing happens to.
#[derive(Clone, Copy, Debug)]
struct Task {
    call: &'static str,
    blow: Blow,
    thread: Thread,
    log: Log,
    /// Calls that a run without blows makes.
    calls: usize,
}

/// Strikes each call whose name is in `wanted`, or all of them if that is
/// empty, with `workers` processes at once.
///
/// # Errors
/// What was found wrong, in words; the files are left where that says.
pub fn drive(program: &Path, wanted: &[String], workers: usize) -> Result<Report, String> {
    let mut struck = Vec::new();
    for name in wanted {
        let known = CALLS.iter().find(|(call, _)| call == name);
        struck.push(*known.ok_or_else(|| format!("{name} is none of the calls that are struck"))?);
    }
    if wanted.is_empty() {
        struck = CALLS.to_vec();
    }
    let mut report = Report::default();
    let tasks = tasks(program, &struck, &mut report)?;
    let tasks = Mutex::new(tasks);
    let next = || tasks.lock().expect("no one panics while choosing").pop_front();
    let done = std::thread::scope(|scope| {
        let work = || {
            let mut report = Report::default();
            while let Some(task) = next() {
                let result = strike_each(program, &task, &mut report);
                if result.is_err() {
                    // The others need not go on.
                    tasks.lock().expect("no one panics while choosing").clear();
                }
                result?;
            }
            Ok(report)
        };
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, Result<Report, String>>| {
            worker.join().unwrap_or_else(|_| Err("a worker panicked".to_string()))
        };
        workers.into_iter().map(join).collect::<Vec<_>>()
    });
    for of_worker in done {
        report.add(of_worker?);
    }
    Ok(report)
}

/// Plays the story undisturbed, and lists what can be done to its calls.
fn tasks(program: &Path, struck: &[Struck], report: &mut Report) -> Result<VecDeque<Task>, String> {
    let names: Vec<&'static str> = struck.iter().map(|(call, _)| *call).collect();
    report.rows = names.iter().map(|call| (*call, Row::default())).collect();
    let mut tasks = VecDeque::new();
    for log in Log::ALL {
        for thread in Thread::ALL {
            let directory = TempDir::new("calls");
            let ended = run(program, directory.path(), log, thread, Order::Record(&names))?;
            for (call, count) in count_calls(&ended.calls) {
                let Some((call, errors)) = struck.iter().find(|(name, _)| *name == call) else {
                    return Err(format!("strace wrote down {call}, which was not asked for"));
                };
                report.rows.entry(call).or_default().calls += count;
                let errors = errors.iter().map(|error| Blow::Error(error));
                // Killed before a read: nothing has changed since the call before.
                let kill = (*call != "pread64").then_some(Blow::Kill);
                tasks.extend(kill.into_iter().chain(errors).map(|blow| Task {
                    call,
                    blow,
                    thread,
                    log,
                    calls: count,
                }));
            }
        }
    }
    // The longest first, so that all workers end together.
    tasks.make_contiguous().sort_by_key(|task| std::cmp::Reverse(task.calls));
    Ok(tasks)
}

/// How often each call was written down: `name(...`, one a line.
fn count_calls(lines: &str) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for (call, _) in lines.lines().filter_map(|line| line.split_once('(')) {
        *counts.entry(call).or_default() += 1;
    }
    counts
}

/// Strikes the first call, the second, and so on, until a run meets none. The
/// background does not make quite the same calls each time: a run that met none
/// counts only if no undisturbed one would have.
fn strike_each(program: &Path, task: &Task, report: &mut Report) -> Result<(), String> {
    for nth in 1.. {
        let directory = TempDir::new("syscall");
        let is_struck = strike(program, task, nth, directory.path(), report).map_err(|what| {
            let Task { call, blow, thread, log, .. } = task;
            format!(
                "{call} number {nth} of thread {thread:?}, log {}, {blow:?}: {what}\n\
                 the files are left in {}",
                log.name(),
                keep(&directory).display()
            )
        });
        if !is_struck? && nth > task.calls {
            return Ok(());
        }
    }
    Ok(())
}

/// Leaves the directory for someone to look at.
fn keep(directory: &TempDir) -> PathBuf {
    let kept = directory.path().with_extension("kept");
    let _ = std::fs::rename(directory.path(), &kept); // shown where it is, then
    kept
}

/// One run: whether a call was struck.
fn strike(
    program: &Path,
    task: &Task,
    nth: usize,
    directory: &Path,
    report: &mut Report,
) -> Result<bool, String> {
    let order = Order::Strike(task.call, task.blow, nth);
    let ended = run(program, directory, task.log, task.thread, order)?;
    let Ended { killed, failed, met, calls } = ended;
    let row = report.rows.entry(task.call).or_default();
    row.kills += usize::from(killed);
    row.errors += usize::from(failed);
    row.told += usize::from(failed && !met.is_empty());
    if !failed && !met.is_empty() {
        return Err(format!("nothing failed, but it told: {met}"));
    }
    if failed && met.is_empty() {
        let line = calls.lines().find(|line| line.contains("(INJECTED)")).unwrap_or_default();
        let silence = Silence::of(task.thread, task.blow.after(), line, &calls);
        let silence = silence.ok_or_else(|| format!("nobody was told of {line}"))?;
        *report.untold.entry((task.call, silence)).or_default() += 1;
    }
    let done = Progress::read(directory).map_err(|error| format!("progress: {error}"))?;
    recover(directory, &story(task.log), done)
        .map_err(|what| format!("after {done} commands, met {met:?}: {what}"))?;
    report.rows.entry(task.call).or_default().recoveries += 1;
    Ok(killed || failed)
}
