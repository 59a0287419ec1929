//! `--memory-limit`: a control group of this process's own, in which page
//! cache counts as memory too.
//!
//! The group is made below the one that the process is in (version 1), or, as
//! version 2 wants no processes in inner groups, below the first of that one
//! and its parent that hands memory control on. Nothing is changed in groups
//! that were there. On the way out the process goes back and the group is
//! removed; an empty one that a killed run left behind is removed by the next.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::BenchError;
use crate::numbers::bytes_text;

const NAME_START: &str = "lode-pulse-";
/// The kernel rounds a limit down to pages; none has larger ones.
const PAGE_BYTES_MAX: u64 = 64 << 10;

/// What device reads the kernel has counted for a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceReads {
    /// Requests to devices.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The process is in a group with a limit while this lives.
#[derive(Debug)]
pub struct MemoryLimit {
    version: Version,
    group: PathBuf,
    /// The group that the process was in before.
    home: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    fn limit_file(self) -> &'static str {
        match self {
            Version::One => "memory.limit_in_bytes",
            Version::Two => "memory.max",
        }
    }

    /// The file that keeps swap from taking what the limit pushes out, and its
    /// content.
    fn swap_limit(self, bytes: u64) -> (&'static str, String) {
        match self {
            Version::One => ("memory.memsw.limit_in_bytes", bytes.to_string()),
            Version::Two => ("memory.swap.max", "0".to_string()),
        }
    }
}

impl MemoryLimit {
    /// Moves this process into a new group that may use `bytes` of memory.
    /// # Errors: `Refused` says why that is not possible and what helps.
    pub fn enter(bytes: u64) -> Result<MemoryLimit, BenchError> {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let (groups, mounts) = (read("/proc/self/cgroup"), read("/proc/self/mountinfo"));
        let Some((version, home)) = home_of(&groups, &mounts) else {
            return Err(refused(bytes, "no control group for memory is mounted here"));
        };
        let parents = match version {
            Version::One => vec![home.as_path()],
            Version::Two => [Some(home.as_path()), home.parent()].into_iter().flatten().collect(),
        };
        let mut reasons = Vec::new();
        for parent in parents {
            remove_leftovers(parent);
            match enter_below(version, parent, &home, bytes) {
                Ok(limit) => return Ok(limit),
                Err(reason) => reasons.push(reason),
            }
        }
        Err(refused(bytes, &reasons.join("; ")))
    }

    /// The most memory that the group has used, page cache included.
    pub fn peak_bytes(&self) -> Option<u64> {
        let name = match self.version {
            Version::One => "memory.max_usage_in_bytes",
            Version::Two => "memory.peak",
        };
        fs::read_to_string(self.group.join(name)).ok()?.trim().parse().ok()
    }

    /// What the group has read from devices, if the kernel tells.
    pub fn device_reads(&self) -> Option<DeviceReads> {
        let text = fs::read_to_string(self.group.join("io.stat")).ok()?;
        Some(device_reads(&text))
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // If this fails the empty group stays until the next run; there is
        // nobody to tell.
        let _ = join(&self.home);
        let _ = fs::remove_dir(&self.group);
    }
}

/// Makes the group below `parent` and goes in; the error is a reason.
fn enter_below(
    version: Version,
    parent: &Path,
    home: &Path,
    bytes: u64,
) -> Result<MemoryLimit, String> {
    let group = parent.join(format!("{NAME_START}{}", std::process::id()));
    let failed =
        |what: &str, path: &Path, error: io::Error| format!("{what} {}: {error}", path.display());
    fs::create_dir(&group).map_err(|error| failed("cannot make", &group, error))?;
    // From here on dropping it removes the group.
    let limit = MemoryLimit { version, group, home: home.to_path_buf() };
    let path = limit.group.join(version.limit_file());
    if version == Version::Two && !path.exists() {
        return Err(format!("{} does not hand memory control on", parent.display()));
    }
    fs::write(&path, bytes.to_string()).map_err(|error| failed("cannot write", &path, error))?;
    let (name, content) = version.swap_limit(bytes);
    let swap = limit.group.join(name);
    if swap.exists() {
        fs::write(&swap, content).map_err(|error| failed("cannot write", &swap, error))?;
    }
    let set = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
    if !set.is_some_and(|set: u64| set <= bytes && bytes - set < PAGE_BYTES_MAX) {
        return Err(format!("{} did not take the limit", path.display()));
    }
    join(&limit.group).map_err(|error| failed("cannot enter", &limit.group, error))?;
    Ok(limit)
}

/// Moves this process, all its threads, into `group`.
fn join(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), std::process::id().to_string())
}

/// Removes groups of runs that were killed. One that is in use cannot be
/// removed, one of a living process is left alone.
fn remove_leftovers(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(NAME_START));
        if process.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn refused(bytes: u64, reason: &str) -> BenchError {
    BenchError::Refused(format!(
        "--memory-limit is not possible: {reason}. Run it as root, or let systemd set the limit \
         and leave --memory-limit out: systemd-run --user --scope -p MemoryMax={bytes} \
         -p MemorySwapMax=0 COMMAND ... (wanted: {})",
        bytes_text(bytes)
    ))
}

/// The version and the directory of the memory group of this process, from the
/// texts of `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn home_of(groups: &str, mounts: &str) -> Option<(Version, PathBuf)> {
    let lines = || groups.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let one = lines().find(|(controllers, _)| controllers.split(',').any(|c| c == "memory"));
    let (version, inside) = match one {
        Some((_, path)) => (Version::One, path),
        None => (Version::Two, lines().find(|(controllers, _)| controllers.is_empty())?.1),
    };
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (root, mounted) = (place.next()?, place.next()?);
        let mut kind = kind.split(' ');
        let is_ours = match (version, kind.next()?) {
            (Version::One, "cgroup") => kind.nth(1)?.split(',').any(|option| option == "memory"),
            (Version::Two, "cgroup2") => true,
            _ => false,
        };
        // A container may see only the part of the tree below `root`.
        let below = Path::new(inside).strip_prefix(root).ok()?;
        is_ours.then(|| (version, Path::new(mounted).join(below)))
    })
}

/// Adds up the devices of an `io.stat`.
fn device_reads(text: &str) -> DeviceReads {
    let sum = |name: &str| {
        let fields = text.split_ascii_whitespace();
        let values = fields.filter_map(|field| field.strip_prefix(name)?.strip_prefix('='));
        values.filter_map(|value| value.parse::<u64>().ok()).sum()
    };
    DeviceReads { count: sum("rios"), bytes: sum("rbytes") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
23 1 254:0 / / rw,relatime - ext4 /dev/vda rw
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
38 31 0:35 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    /// Where both versions are mounted, the one that has the memory controller
    /// is taken; paths are those below the mount.
    #[test]
    fn home_is_found_in_both_versions() {
        let home = |groups| home_of(groups, MOUNTS);
        let one = home("9:name=systemd:/\n8:blkio:/\n4:memory:/user/me\n0::/user.slice\n");
        assert_eq!(one, Some((Version::One, "/sys/fs/cgroup/memory/user/me".into())));
        let joined =
            home_of("5:cpu,memory:/a\n", "35 31 0:32 /a /cg rw - cgroup cgroup rw,cpu,memory\n");
        assert_eq!(joined, Some((Version::One, "/cg/".into())));
        let two = home("0::/user.slice/session-1.scope\n");
        let path = "/sys/fs/cgroup/unified/user.slice/session-1.scope";
        assert_eq!(two, Some((Version::Two, path.into())));
        assert_eq!(home(""), None);
        assert_eq!(home_of("0::/\n", "23 1 254:0 / / rw - ext4 /dev/vda rw\n"), None);
    }

    /// A parent that does not hand memory control on is told of, and no group
    /// is left in it.
    #[test]
    fn parent_without_memory_control_is_left_as_it_was() {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let (below, at_home) = (parent.path(), parent.path());
        let reason = enter_below(Version::Two, below, at_home, 1 << 30).expect_err("no control");
        assert!(reason.contains("does not hand memory control on"), "{reason}");
        // Leaving wrote this process's number into the parent's file.
        fs::remove_file(below.join("cgroup.procs")).expect("an ordinary directory keeps it");
        assert_eq!(fs::read_dir(below).expect("it is there").count(), 0);
        let absent = below.join("absent");
        let reason = enter_below(Version::One, &absent, at_home, 1 << 30).expect_err("no parent");
        assert!(reason.starts_with("cannot make "), "{reason}");
    }

    /// Limits are written in each version's own files, the process goes in, and
    /// home again. (An ordinary directory stands for the kernel's.)
    #[test]
    fn limit_is_written_and_left_again() {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let home = tempfile::tempdir().expect("a temporary directory");
        let me = std::process::id().to_string();
        let limit = enter_below(Version::One, parent.path(), home.path(), 5 << 20);
        let limit = limit.expect("a directory takes everything");
        let read = |name: &str| fs::read_to_string(limit.group.join(name)).expect("written");
        assert_eq!(read("memory.limit_in_bytes"), (5 << 20).to_string());
        assert_eq!(read("cgroup.procs"), me);
        fs::write(limit.group.join("memory.max_usage_in_bytes"), "4096\n").expect("a file");
        assert_eq!(limit.peak_bytes(), Some(4_096));
        assert_eq!(limit.device_reads(), None);
        drop(limit);
        assert_eq!(fs::read_to_string(home.path().join("cgroup.procs")).expect("back"), me);
    }

    /// Groups of processes that are gone are removed, others stay.
    #[test]
    fn leftovers_are_removed() {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let make = |name: String| {
            let path = parent.path().join(name);
            fs::create_dir(&path).expect("a directory");
            path
        };
        // No system numbers its processes this high.
        let dead = make(format!("{NAME_START}4294967295"));
        let alive = make(format!("{NAME_START}{}", std::process::id()));
        let foreign = make("lode".to_string());
        remove_leftovers(parent.path());
        assert!(!dead.exists() && alive.exists() && foreign.exists());
    }

    /// Reads of all devices are added up.
    #[test]
    fn device_reads_are_added_up() {
        let text = "254:0 rbytes=8192 wbytes=4096 rios=2 wios=1 dbytes=0 dios=0\n\
                    254:16 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n";
        assert_eq!(device_reads(text), DeviceReads { count: 3, bytes: 12_288 });
        assert_eq!(device_reads(""), DeviceReads::default());
    }
}
