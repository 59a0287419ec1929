//! One run of the target under strace.
//!
//! strace counts calls by thread, and the kernel takes a SIGKILL that is sent
//! at the entry of a call as the end of the process *before* that call. So
//! strace is attached to one thread alone: the n-th call is then the n-th of
//! that thread, and all of its calls are met one by one. What is on disk right
//! after a call is what is there before the next one.

use super::story::{Log, met};
use super::target::{After, MARK};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A run that takes longer hangs.
const RUN_MAX: Duration = Duration::from_secs(60);

/// A thread of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thread {
    /// The one that plays the story.
    Main,
    /// The one that flushes.
    Flush,
    /// The one that compacts.
    Compact,
}

impl Thread {
    /// All threads that make calls.
    pub const ALL: [Thread; 3] = [Thread::Main, Thread::Flush, Thread::Compact];

    /// Its name, as the system knows it; the main thread has the program's.
    fn name(self) -> Option<&'static str> {
        match self {
            Thread::Main => None,
            Thread::Flush => Some("lode-flush"),
            Thread::Compact => Some("lode-compact"),
        }
    }
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blow {
    /// The process is killed before it.
    Kill,
    /// It gives this error, by name, and is not done.
    Error(&'static str),
}

impl Blow {
    /// What may be expected after it.
    pub fn after(self) -> After {
        match self {
            Blow::Kill => After::Kill,
            Blow::Error("ENOSPC" | "EMFILE") => After::ByItself,
            Blow::Error(_) => After::Resume,
        }
    }
}

/// What strace is to do.
#[derive(Clone, Copy, Debug)]
pub enum Order<'a> {
    /// Write down these calls.
    Record(&'a [&'static str]),
    /// Strike the `nth` call of this name.
    Strike(&'static str, Blow, usize),
}

impl Order<'_> {
    fn after(self) -> After {
        match self {
            Order::Record(_) => After::Kill,
            Order::Strike(_, blow, _) => blow.after(),
        }
    }

    /// strace's arguments. `?`: not every machine has every call.
    fn arguments(self) -> Vec<String> {
        let expressions = match self {
            Order::Record(calls) => {
                let calls: Vec<String> = calls.iter().map(|call| format!("?{call}")).collect();
                vec![format!("trace={}", calls.join(","))]
            }
            Order::Strike(call, blow, nth) => {
                let what = match blow {
                    Blow::Kill => "signal=SIGKILL".to_string(),
                    Blow::Error(name) => format!("error={name}"),
                };
                vec![format!("trace=?{call},?{MARK}"), format!("inject=?{call}:{what}:when={nth}")]
            }
        };
        expressions.into_iter().flat_map(|one| ["-e".to_string(), one]).collect()
    }
}

/// What came of a run.
#[derive(Debug)]
pub struct Ended {
    /// It was killed.
    pub killed: bool,
    /// A call of it was made to fail.
    pub failed: bool,
    /// What it said that it met; empty if nothing.
    pub met: String,
    /// The calls that strace wrote down.
    pub calls: String,
}

/// Runs the target in `directory` with strace on one of its threads.
///
/// # Errors
/// A sentence, if strace does not work or the target found something wrong.
pub fn run(
    program: &Path,
    directory: &Path,
    log: Log,
    thread: Thread,
    order: Order<'_>,
) -> Result<Ended, String> {
    let starting = |what: &str, error| format!("starting {what}: {error}");
    let mut target = Command::new(program)
        .arg("play")
        .arg(directory)
        .args([log.name(), order.after().name()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| starting("the target", error))?;
    let mut said = BufReader::new(target.stdout.take().expect("it was piped"));
    let mut ready = String::new();
    said.read_line(&mut ready).map_err(|error| error.to_string())?;
    let calls = directory.join("calls");
    let strace = thread_id(target.id(), thread).and_then(|id| {
        let mut strace = Command::new("strace")
            .args(["-y", "-o"])
            .arg(&calls)
            .args(order.arguments())
            .args(["-p", &id.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| starting("strace", error))?;
        wait_until_attached(&mut strace).map(|()| strace)
    });
    let mut strace = match strace {
        Ok(strace) => strace,
        Err(what) => {
            let _ = target.kill();
            let _ = target.wait();
            return Err(what);
        }
    };
    // It may be gone at once.
    let _ = target.stdin.take().expect("it was piped").write_all(b"go\n");
    let status = wait(&mut target);
    let _ = strace.wait();
    let (status, mut wrong) = (status?, String::new());
    let _ = target.stderr.take().expect("it was piped").read_to_string(&mut wrong);
    let killed = status.signal() == Some(9) && matches!(order, Order::Strike(_, Blow::Kill, _));
    if !status.success() && !killed {
        return Err(format!("the target ended with {status}: {wrong}"));
    }
    let calls = std::fs::read_to_string(calls).map_err(|error| error.to_string())?;
    Ok(Ended { killed, failed: calls.contains("(INJECTED)"), met: met(directory), calls })
}

fn wait(target: &mut Child) -> Result<ExitStatus, String> {
    let deadline = Instant::now() + RUN_MAX;
    loop {
        match target.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if Instant::now() > deadline => {
                let _ = target.kill();
                let _ = target.wait();
                return Err(format!("the target was not done after {RUN_MAX:?}"));
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => return Err(format!("waiting: {error}")),
        }
    }
}

/// The number of a thread of process `process`. A thread names itself only once
/// it runs.
fn thread_id(process: u32, thread: Thread) -> Result<u32, String> {
    let Some(name) = thread.name() else { return Ok(process) };
    for _ in 0..1_000 {
        if let Some(id) = find_thread(process, name).map_err(|error| error.to_string())? {
            return Ok(id);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(format!("the target has no thread {name}"))
}

fn find_thread(process: u32, name: &str) -> std::io::Result<Option<u32>> {
    for entry in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let path = entry?.path();
        let is_it = std::fs::read_to_string(path.join("comm"))?.trim() == name;
        if is_it {
            return Ok(path.file_name().and_then(|id| id.to_str()?.parse().ok()));
        }
    }
    Ok(None)
}

/// strace says when it has its thread.
fn wait_until_attached(strace: &mut Child) -> Result<(), String> {
    let said = BufReader::new(strace.stderr.take().expect("it was piped"));
    let mut all = String::new();
    let mut lines = said.lines();
    while let Some(Ok(line)) = lines.next() {
        if line.contains("attached") && !line.contains("attach:") {
            // Read on, so that strace is never stopped by a full pipe.
            std::thread::spawn(move || lines.for_each(drop));
            return Ok(());
        }
        all.push_str(&line);
        all.push('\n');
    }
    let _ = strace.wait();
    Err(format!("strace did not attach: {}", all.trim()))
}
