//! Failures of which no command tells, and why that is right.

use super::inject::Thread;
use super::target::{After, MARK};
use std::fmt;

/// Why nothing was said of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Silence {
    /// The database was being closed: whoever drops it cannot be told, and
    /// what was acknowledged is as safe as before.
    Closing,
    /// It was about the file that says which options hold; nothing needs it, and
    /// the property `lodestore.options-failure` tells.
    OptionsFile,
    /// It was the manifest's witness of what is durable already: of a group of its
    /// own, or of a segment of the log, for which there was no room.
    Witness,
    /// A file of the database that was not needed any more stays until the next
    /// open removes it.
    Leftover,
    /// There is another way, which was taken: a copy for a link, writing
    /// without room or zeros ahead.
    OtherWay,
    /// It was tried again, as what may pass by itself is in the background, and
    /// where a descriptor can be freed.
    TriedAgain,
    /// It only read, ahead of any need, and was read again when there was one:
    /// what commands read is compared with what they must.
    ReadAgain,
    /// It was not made by the engine: the C library's allocator asks what the
    /// machine allows before it gives memory back, and does without an answer.
    Allocator,
}

impl Silence {
    /// The reason, if there is one, not to tell of the call of `thread` in
    /// `line`, which is one of `lines`; as strace wrote them down.
    pub fn of(thread: Thread, after: After, line: &str, lines: &str) -> Option<Silence> {
        let call = line.split('(').next().unwrap_or_default();
        let before = lines.split(line).next().unwrap_or_default();
        let marks = before.lines().filter(|line| line.starts_with(MARK)).count();
        let passes = after == After::ByItself;
        let creates = line.contains("O_CREAT");
        // Not the directory, which is opened to be synced.
        let is_read = [".table\"", ".wal\""].iter().any(|end| line.contains(end));
        // The witness of a group is a record without content. That of a segment
        // looks like any edit; one that changes families or tables and is lost
        // is found by whoever judges what the database holds.
        let is_witness = line.contains("/MANIFEST-") && (passes || line.contains(", 24, "));
        // As glibc does in `check_may_shrink_heap`.
        let is_allocator = line.contains(r#""/proc/sys/vm/overcommit_memory""#);
        // No record and no header of the log begins with so many: these are written ahead of
        // what follows a sync, which goes to the same place and would tell.
        let is_zeros = line.contains(r#".wal>, "\0\0\0\0\0\0\0\0"#);
        match call {
            _ if marks % 2 == 1 => Some(Silence::Closing),
            "openat" if is_allocator => Some(Silence::Allocator),
            _ if line.contains(".tmp") || line.contains("/OPTIONS-") => Some(Silence::OptionsFile),
            _ if passes && thread != Thread::Main => Some(Silence::TriedAgain),
            "openat" if passes => Some(Silence::TriedAgain),
            "openat" if !creates && is_read => Some(Silence::ReadAgain),
            "pread64" => Some(Silence::ReadAgain),
            "pwrite64" if is_witness => Some(Silence::Witness),
            "unlink" | "unlinkat" => Some(Silence::Leftover),
            "pwrite64" if is_zeros => Some(Silence::OtherWay),
            "link" | "linkat" | "fallocate" => Some(Silence::OtherWay),
            _ => None,
        }
    }
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Silence::Closing => "while the database was closed",
            Silence::OptionsFile => "of the file of options",
            Silence::Witness => "a witness of what is durable",
            Silence::Leftover => "of a file that is not needed",
            Silence::OtherWay => "where there is another way",
            Silence::TriedAgain => "which was tried again",
            Silence::ReadAgain => "which was read again when it was needed",
            Silence::Allocator => "of the C library's allocator",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only what happens between two marks is closing.
    #[test]
    fn marks_enclose_closing() {
        let failed = "fdatasync(7</db/000003.wal>) = -1 EIO (INJECTED)";
        let lines = |marks: usize| format!("{}{failed}\n", "getppid() = 1\n".repeat(marks));
        let of = |marks| Silence::of(Thread::Main, After::Resume, failed, &lines(marks));
        assert_eq!(of(0), None);
        assert_eq!(of(1), Some(Silence::Closing));
        assert_eq!(of(2), None);
    }

    /// The allocator's question to the machine is none of the engine's calls; a
    /// file of the database that cannot be created is.
    #[test]
    fn the_allocator_asks_for_itself() {
        let of = |call: &str| {
            let line = format!("{call} = -1 EIO (Input/output error) (INJECTED)");
            Silence::of(Thread::Flush, After::Resume, &line, &line)
        };
        let asks = r#"openat(AT_FDCWD</db>, "/proc/sys/vm/overcommit_memory", O_RDONLY|O_CLOEXEC)"#;
        assert_eq!(of(asks), Some(Silence::Allocator));
        let creates = r#"openat(AT_FDCWD</db>, "/db/000009.table", O_RDWR|O_CREAT|O_EXCL, 0666)"#;
        assert_eq!(of(creates), None);
    }

    /// What is written ahead into the log may fail in silence, a record may not.
    #[test]
    fn zeros_are_no_record() {
        let of = |bytes: &str| {
            let line = format!(r#"pwrite64(7</db/000003.wal>, "{bytes}", 32, 4096) = -1 EIO"#);
            Silence::of(Thread::Main, After::Resume, &line, &line)
        };
        assert_eq!(of(r"\0\0\0\0\0\0\0\0\0"), Some(Silence::OtherWay));
        assert_eq!(of(r"\0\0\0\6\0\0\0\0\0"), None);
    }
}
