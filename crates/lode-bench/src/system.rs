//! What the machine tells about itself and about this process. Everything is
//! optional: what a system does not tell is left out of reports.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// The most memory that this process has had resident so far, in bytes.
pub fn peak_rss_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Memory of this process that is resident now, in bytes.
pub fn rss_bytes() -> Option<u64> {
    let sizes = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = sizes.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Processor time that all threads of this process have used so far.
pub fn cpu_time() -> Duration {
    clock(ClockId::ProcessCPUTime)
}

/// Processor time that this thread has used so far.
pub fn thread_cpu_time() -> Duration {
    clock(ClockId::ThreadCPUTime)
}

fn clock(id: ClockId) -> Duration {
    let time = clock_gettime(id);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Bytes that this process has made devices read so far; what came out of the
/// page cache is not in it.
pub fn device_read_bytes() -> Option<u64> {
    let counts = fs::read_to_string("/proc/self/io").ok()?;
    let line = counts.lines().find_map(|line| line.strip_prefix("read_bytes:"))?;
    line.trim().parse().ok()
}

/// The processor, as in `2 * AMD EPYC`.
pub fn processor() -> Option<String> {
    let cores = std::thread::available_parallelism().ok()?;
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown model", |rest| rest.trim_start_matches([' ', '\t', ':']));
    Some(format!("{cores} * {model}"))
}

/// Seconds since 1970.
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Bytes of all files below `directory`. A file that vanishes meanwhile is not
/// counted; a directory that is not there has none.
pub fn directory_bytes(directory: &Path) -> io::Result<u64> {
    sum_of_files(directory, &|metadata| metadata.len())
}

/// Bytes that all files below `directory` take on the device, as
/// [`directory_bytes`]: less where a file has holes.
pub fn allocated_bytes(directory: &Path) -> io::Result<u64> {
    /// The system counts in these, whatever the file system's blocks are.
    const UNIT_BYTES: u64 = 512;
    sum_of_files(directory, &|metadata| metadata.blocks() * UNIT_BYTES)
}

fn sum_of_files(directory: &Path, of: &dyn Fn(&Metadata) -> u64) -> io::Result<u64> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut bytes = 0;
    for entry in entries {
        let entry = entry?;
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes += sum_of_files(&entry.path(), of)?,
            Ok(metadata) => bytes += of(&metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}
