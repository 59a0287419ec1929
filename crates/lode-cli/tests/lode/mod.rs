//! Runs the program `lode` as a user does.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a run left behind.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: Vec<u8>,
    pub err: String,
}

impl Ran {
    /// Standard output, which must be UTF-8.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.out).expect("the output is text")
    }

    /// The same run, which must have ended with `code`.
    #[track_caller]
    pub fn expect(self, code: i32) -> Ran {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    /// Standard output as one JSON value.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.out).expect("the output is one JSON value")
    }
}

/// Runs `lode` with `arguments` and `input`.
pub fn lode_with_input(arguments: &[&str], input: &[u8]) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lode"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("lode starts");
    let mut stdin = child.stdin.take().expect("it was piped");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // A program that refuses its command line reads nothing.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("lode ends");
    writer.join().expect("the writer does not panic");
    Ran {
        code: output.status.code().expect("lode was not killed"),
        out: output.stdout,
        err: String::from_utf8(output.stderr).expect("messages are text"),
    }
}

/// Runs `lode` with `arguments`.
pub fn lode(arguments: &[&str]) -> Ran {
    lode_with_input(arguments, b"")
}

/// A directory for one test, removed with it.
pub struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Place {
        Place { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs `lode db --db <directory>/db` with `arguments` and `input`.
    pub fn db_with_input(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let path = self.path("db");
        let mut all = vec!["db", "--db", text(&path)];
        all.extend_from_slice(arguments);
        lode_with_input(&all, input)
    }

    pub fn db(&self, arguments: &[&str]) -> Ran {
        self.db_with_input(arguments, b"")
    }
}

/// `path` as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are UTF-8")
}
