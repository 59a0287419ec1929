//! Processes that want a directory that is in use: one that holds it, one that
//! only tries, and one that locks it as LevelDB does.

use lodestore::{Db, Error, Options};
use rustix::fs::FlockOperation;
use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// What a process does to the directory; its name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opener {
    /// Opens the database.
    Lodestore,
    /// Takes a write lock on the whole file `LOCK`, by fcntl(2).
    LevelDb,
}

impl Opener {
    fn name(self) -> &'static str {
        match self {
            Opener::Lodestore => "lodestore",
            Opener::LevelDb => "leveldb",
        }
    }
}

/// Does what the command line `lodestore|leveldb DIRECTORY` says: prints `held`
/// and holds on until its input ends, or prints `busy PID`.
///
/// # Errors
/// What else came of it, in words.
pub fn open(arguments: &[String]) -> Result<(), String> {
    let [opener, directory] = arguments else {
        return Err("expected lodestore|leveldb DIRECTORY".to_string());
    };
    let directory = Path::new(directory);
    match opener.as_str() {
        "lodestore" => match Db::open(directory, Options::default()) {
            Ok(_db) => hold(),
            Err(Error::Busy { holder_pid, .. }) => {
                say(&format!("busy {}", holder_pid.unwrap_or(0)))
            }
            Err(error) => Err(error.to_string()),
        },
        "leveldb" => {
            let mut lock = OpenOptions::new();
            lock.read(true).write(true).create(true).truncate(false);
            let file = lock.open(directory.join("LOCK")).map_err(|error| error.to_string())?;
            match rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => hold(),
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => say("busy 0"),
                Err(error) => Err(error.to_string()),
            }
        }
        _ => Err(format!("unknown opener {opener}")),
    }
}

fn say(line: &str) -> Result<(), String> {
    println!("{line}");
    io::stdout().flush().map_err(|error| error.to_string())
}

fn hold() -> Result<(), String> {
    say("held")?;
    io::copy(&mut io::stdin(), &mut io::sink()).map(drop).map_err(|error| error.to_string())
}

/// A process that was started as an opener.
#[derive(Debug)]
pub struct Started {
    child: Child,
    /// Its answer: `held`, or `busy` and a process.
    pub said: String,
}

impl Started {
    /// Starts `program open ...` and waits for its answer.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn new(program: &Path, opener: Opener, directory: &Path) -> Started {
        let mut command = Command::new(program);
        command.args(["open", opener.name()]).arg(directory);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the opener can be started");
        let mut said = String::new();
        let output = child.stdout.take().expect("it was piped");
        BufReader::new(output).read_line(&mut said).expect("it can be read");
        Started { child, said: said.trim().to_string() }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it with -9.
    pub fn kill(mut self) {
        let _ = self.child.kill(); // it may be gone
        let _ = self.child.wait();
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // Its input ends, and with it its hold.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
