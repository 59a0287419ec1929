use super::*;
use crate::fs::{ReadList, ReadRequest, read_all, read_full_at};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of its own for one test; removed when the test ends well.
pub(super) struct TestDirectory(PathBuf);

impl TestDirectory {
    pub(super) fn new() -> TestDirectory {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("lodestore-os-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        TestDirectory(path)
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }
}

/// Many reads at once give what single ones would, in memory or not, each
/// exactly once, also where some fail.
#[test]
fn many_reads_are_each_served_once() {
    const BLOCK: usize = 4096;
    let directory = TestDirectory::new();
    let path = directory.file("a");
    let content: Vec<u8> = (0..64 * BLOCK).map(|i| (i / 7) as u8).collect();
    let mut file = OsFs.create(&path).unwrap();
    file.append(&content).unwrap();
    file.sync().unwrap();
    file.close().unwrap();
    let cold = File::open(&path).unwrap();
    rustix::fs::fadvise(&cold, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    let reader = OsFs.open(&path).unwrap();
    let request = |offset: usize| ReadRequest {
        file: Arc::clone(&reader),
        offset: offset as u64,
        length: 100,
    };
    read_full_at(&*reader, 0, &mut [0; 10]).unwrap(); // some are in memory now
    for count in [0, 1, 200] {
        let offset = |index: usize| index * 37 % 65 * BLOCK; // the last is past the end
        let mut served = vec![0; count];
        let requests = (0..count).map(|i| request(offset(i))).collect();
        OsFs.read_many(&mut ReadList::new(requests, |index, result: io::Result<&[u8]>| {
            served[index] += 1;
            match content.get(offset(index)..offset(index) + 100) {
                Some(expected) => assert_eq!(result.unwrap(), expected),
                None => assert_eq!(result.unwrap_err().kind(), io::ErrorKind::UnexpectedEof),
            }
        }));
        assert!(served.iter().all(|&times| times == 1));
    }
}

/// What was appended is there, at its place, after each way of going on.
#[test]
fn files_hold_what_was_written() {
    let directory = TestDirectory::new();
    let path = directory.file("a");
    let mut file = OsFs.create(&path).unwrap();
    file.preallocate(1 << 20).unwrap();
    file.append(b"hello").unwrap();
    file.append(b" world").unwrap();
    file.sync().unwrap();
    assert_eq!(OsFs.length(&path).unwrap(), 11, "preallocation keeps the length");
    file.truncate(5).unwrap();
    file.append(b"!").unwrap();
    file.close().unwrap();
    assert_eq!(read_all(&OsFs, &path).unwrap(), b"hello!");

    let mut file = OsFs.overwrite(&path).unwrap();
    file.append(b"J").unwrap();
    file.close().unwrap();
    let reader = OsFs.open(&path).unwrap();
    reader.will_need(0, 6);
    let mut bytes = [0; 4];
    read_full_at(&*reader, 1, &mut bytes).unwrap();
    assert_eq!(&bytes, b"ello");
    assert_eq!(reader.read_at(6, &mut bytes).unwrap(), 0);
    assert_eq!(reader.length().unwrap(), 6);
    let past_end = read_full_at(&*reader, 3, &mut bytes).unwrap_err();
    assert_eq!(past_end.kind(), io::ErrorKind::UnexpectedEof);
}

/// Names follow links, renames and removals.
#[test]
fn directories_follow_their_operations() {
    let directory = TestDirectory::new();
    let inner = directory.file("x/y");
    OsFs.create_directory(&inner).unwrap();
    OsFs.create_directory(&inner).unwrap();
    OsFs.create(&inner.join("a")).unwrap().close().unwrap();
    OsFs.hard_link(&inner.join("a"), &inner.join("b")).unwrap();
    OsFs.rename(&inner.join("a"), &inner.join("c")).unwrap();
    let mut names = OsFs.list(&inner).unwrap();
    names.sort();
    assert_eq!(names, ["b", "c"]);
    OsFs.sync_directory(&inner).unwrap();
    assert!(OsFs.remove_directory(&inner).is_err(), "not empty");
    OsFs.remove(&inner.join("b")).unwrap();
    OsFs.remove(&inner.join("c")).unwrap();
    OsFs.remove_directory(&inner).unwrap();
    assert_eq!(OsFs.open(&inner).unwrap_err().kind(), io::ErrorKind::NotFound);
}

/// Errors of writing reach the caller (the device is always full).
#[test]
fn a_full_disk_is_an_error() {
    let Ok(mut file) = OsFs.overwrite(Path::new("/dev/full")) else {
        return;
    };
    assert_eq!(file.append(b"x").unwrap_err().kind(), io::ErrorKind::StorageFull);
}

fn holder(path: &Path) -> Option<u32> {
    match OsFs.lock(path) {
        Err(LockError::Held { holder_pid }) => holder_pid,
        other => panic!("expected a held lock, got {other:?}"),
    }
}

/// Tries the lock on a file as another process, as LevelDB takes it.
/// Prints `free` or `held`; with `keep`, holds it until its input ends.
const PROBE: &str = "
import fcntl, sys
f = open(sys.argv[1], 'r+')
try:
    fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    print('free', flush=True)
except OSError:
    print('held', flush=True)
if len(sys.argv) > 2:
    sys.stdin.read()
";

fn python(script: &str, arguments: &[&Path]) -> Option<Child> {
    let mut command = Command::new("python3");
    command.arg("-c").arg(script).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()
}

fn probe(path: &Path) -> Option<String> {
    let output = python(PROBE, &[path])?.wait_with_output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_string())
}

/// A second opener in this process is turned away, and its failed try does
/// not drop the first one's lock (closing any descriptor of `LOCK` would).
#[test]
fn second_opener_in_the_process_is_refused_and_harms_nothing() {
    let directory = TestDirectory::new();
    let path = directory.file("LOCK");
    let lock = OsFs.lock(&path).unwrap();
    for _ in 0..2 {
        assert_eq!(holder(&path), Some(std::process::id()));
        assert_ne!(probe(&path).as_deref(), Some("free"), "another process could lock");
    }
    // The same file by another name, and the same name after the file is gone.
    std::os::unix::fs::symlink(&directory.0, directory.file("link")).unwrap();
    assert_eq!(holder(&directory.file("link/LOCK")), Some(std::process::id()));
    OsFs.hard_link(&path, &directory.file("LOCK2")).unwrap();
    assert_eq!(holder(&directory.file("LOCK2")), Some(std::process::id()));
    OsFs.remove(&path).unwrap();
    assert_eq!(holder(&path), Some(std::process::id()));

    drop(lock);
    drop(OsFs.lock(&path).unwrap());
    assert_ne!(probe(&path).as_deref(), Some("held"), "the lock outlived its holder");
    drop(OsFs.lock(&path).unwrap());
}

/// A LevelDB for Go, which locks in another way, is found too.
#[test]
fn a_file_that_is_flocked_is_held() {
    let directory = TestDirectory::new();
    let path = directory.file("LOCK");
    let other = std::fs::File::create(&path).unwrap();
    // SAFETY: the descriptor is open while `other` lives.
    assert_eq!(unsafe { libc::flock(other.as_raw_fd(), libc::LOCK_EX) }, 0);
    assert!(matches!(OsFs.lock(&path), Err(LockError::Held { .. })));
    drop(other);
    drop(OsFs.lock(&path).unwrap());
}

/// A LevelDB in another process that has the lock is found and named.
#[test]
fn a_foreign_holder_is_named() {
    use std::io::Read;
    let directory = TestDirectory::new();
    let path = directory.file("LOCK");
    std::fs::write(&path, b"").unwrap();
    let Some(mut child) = python(PROBE, &[&path, Path::new("keep")]) else {
        return;
    };
    let mut said = [0; 5];
    if child.stdout.as_mut().unwrap().read_exact(&mut said).is_err() {
        return; // no fcntl module here
    }
    assert_eq!(&said, b"free\n");
    assert_eq!(holder(&path), Some(child.id()));
    drop(child.stdin.take());
    child.wait().unwrap();
    drop(OsFs.lock(&path).unwrap());
}

/// Another copy of this library in the same process has a registry of its own:
/// the lock on `LOCK.open` turns it away before it touches `LOCK`.
#[test]
fn the_second_file_excludes_what_the_registry_does_not_know() {
    let directory = TestDirectory::new();
    let path = directory.file("LOCK");
    let lock = OsFs.lock(&path).unwrap();
    lock::without_registry(&directory.0, || {
        assert_eq!(holder(&path), Some(std::process::id()));
    });
    assert_ne!(probe(&path).as_deref(), Some("free"), "the failed open dropped the lock");
    drop(lock);
    drop(OsFs.lock(&path).unwrap());
}

/// A lock that was let go can be taken again, although a child that was forked
/// meanwhile still has a copy of its descriptors.
#[test]
fn copies_of_descriptors_do_not_keep_a_lock() {
    let directory = TestDirectory::new();
    let path = directory.file("LOCK");
    let lock = OsFs.lock(&path).unwrap();
    let beside = directory.file("LOCK.open").canonicalize().unwrap();
    let links = std::fs::read_dir("/proc/self/fd").unwrap();
    let link = links
        .map(|link| link.unwrap().path())
        .find(|link| std::fs::read_link(link).is_ok_and(|target| target == beside))
        .expect("it is open");
    let number = link.file_name().unwrap().to_str().unwrap().parse().unwrap();
    // SAFETY: the descriptor is open as long as `lock` is held.
    let copy = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) }.try_clone_to_owned().unwrap();
    drop(lock);
    drop(OsFs.lock(&path).unwrap());
    drop(copy);
}

/// What is appended through a mapping is read back at once, through other
/// descriptors too, over the borders of windows and past the mapped part, with syncs
/// between and without; truncating goes on from there.
#[test]
fn mapped_appends_are_in_the_file() {
    let directory = TestDirectory::new();
    let path = directory.file("mapped");
    let mapped_bytes = (1 << 20) + 5000;
    let mut file = OsFs.create(&path).unwrap();
    file.preallocate_mapped(mapped_bytes).unwrap();
    let mut expected = Vec::new();
    // Short ones are copied, also over the borders of windows and the end of
    // what is mapped; long ones are written.
    let parts = [4096, 131, 300_000].into_iter().chain(std::iter::repeat_n(10_007, 90));
    for (i, bytes) in parts.chain([1, 600_000]).enumerate() {
        let part: Vec<u8> = (0..bytes).map(|at| (at * 31 + i) as u8).collect();
        if i % 5 < 3 {
            file.append(&part).unwrap();
        } else {
            // More pieces than one call takes.
            let pieces: Vec<&[u8]> = part.chunks(7).flat_map(|piece| [piece, b""]).collect();
            file.append_parts(&pieces).unwrap();
        }
        expected.extend_from_slice(&part);
        assert!(read_all(&OsFs, &path).unwrap().starts_with(&expected), "after part {i}");
        if i % 8 < 3 {
            file.sync().unwrap();
        }
    }
    let there = read_all(&OsFs, &path).unwrap();
    assert!(
        there[expected.len()..].iter().all(|byte| *byte == 0),
        "zeros behind what was appended"
    );
    assert!(there.len() - expected.len() <= 2 * FILLED_BYTES as usize);
    file.truncate(900_000).unwrap();
    file.append(b"end").unwrap();
    file.close().unwrap();
    expected.truncate(900_000);
    expected.extend_from_slice(b"end");
    assert!(read_all(&OsFs, &path).unwrap() == expected);

    let mut file = OsFs.overwrite(&path).unwrap();
    file.preallocate_mapped(1 << 16).unwrap();
    file.append(b"ag").unwrap();
    file.sync().unwrap();
    file.append_parts(&[b"", b"a", b"in", b""]).unwrap();
    file.append_parts(&[b""]).unwrap();
    file.append_parts(&[]).unwrap();
    file.close().unwrap();
    expected[..5].copy_from_slice(b"again");
    assert!(read_all(&OsFs, &path).unwrap() == expected, "an overwritten file keeps the rest");
}

/// A file that outgrows its room by short appends gets longer once in many of them: so most
/// syncs have no length to write, and what comes between two syncs is copied as before.
#[test]
fn behind_its_room_a_file_grows_in_steps() {
    const APPEND_BYTES: usize = 4096;
    let directory = TestDirectory::new();
    let room_bytes = 64 << 10;
    for appends_a_sync in [1, 3, usize::MAX] {
        let path = directory.file("log");
        let mut file = OsFs.create(&path).unwrap();
        file.preallocate_mapped(room_bytes).unwrap();
        let mut expected = Vec::new();
        let mut lengths = std::collections::BTreeSet::new();
        for i in 0..2000 {
            let part = [i as u8; APPEND_BYTES];
            file.append(&part).unwrap();
            expected.extend_from_slice(&part);
            if (i + 1) % appends_a_sync == 0 {
                file.sync().unwrap();
            }
            lengths.insert(OsFs.length(&path).unwrap());
        }
        // Where files are not mapped, nothing is asked for ahead.
        let is_mapped = Mapping::new(&File::open(&path).unwrap(), room_bytes).is_some();
        let steps = 1 + (expected.len() as u64).div_ceil(FILLED_BYTES);
        assert!(!is_mapped || lengths.len() as u64 <= steps, "{appends_a_sync}: {lengths:?}");
        assert!(read_all(&OsFs, &path).unwrap().starts_with(&expected));
    }
}

/// A file of a former life whose pages the page cache does not have is written over as
/// one whose pages it has: what was appended is there, also where that began within a page.
#[test]
fn what_is_not_cached_is_written_over() {
    let directory = TestDirectory::new();
    let path = directory.file("former");
    let length = (1 << 20) + 5000;
    std::fs::write(&path, vec![7; length]).unwrap();
    for appended in [131, 4096, 10_000] {
        let file = std::fs::File::open(&path).unwrap();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let mut file = OsFs.overwrite(&path).unwrap();
        file.preallocate_mapped(length as u64).unwrap();
        let mut expected = Vec::new();
        // Long ones are written, and leave windows that are entered in their middle.
        for (i, bytes) in [appended, 300_000, 1, appended, 3].into_iter().enumerate() {
            let part: Vec<u8> = (0..bytes).map(|at| (at * 31 + i) as u8).collect();
            file.append(&part).unwrap();
            expected.extend_from_slice(&part);
        }
        file.close().unwrap();
        let bytes = read_all(&OsFs, &path).unwrap();
        assert!(bytes.starts_with(&expected), "appends of {appended}");
        assert_eq!(bytes.len(), length);
    }
}

/// Where there is no room ahead, appends still take what fits, and the error
/// for the rest is an error, not a signal.
#[test]
fn a_mapping_without_room_is_none() {
    let directory = TestDirectory::new();
    let path = directory.file("a");
    let mut file = OsFs.create(&path).unwrap();
    // More than any file system takes in one file.
    file.preallocate_mapped(1 << 62).unwrap();
    file.append(b"fits").unwrap();
    assert_eq!(read_all(&OsFs, &path).unwrap(), b"fits");
}

/// A file system that keeps the blocks it found before there were no more (ext4) has them
/// back, and the file its length and its bytes.
#[test]
fn room_that_does_not_suffice_is_given_back() {
    use std::os::unix::fs::MetadataExt;
    const FOUND_BYTES: u64 = 1 << 20;
    let directory = TestDirectory::new();
    let path = directory.file("a");
    for flags in [FallocateFlags::KEEP_SIZE, FallocateFlags::empty()] {
        for there in [0, 5000] {
            let file = File::create(&path).unwrap();
            file.write_all_at(&vec![7; there], 0).unwrap();
            if rustix::fs::fallocate(&file, flags, 0, FOUND_BYTES).is_err() {
                return; // nothing is allocated ahead here
            }
            file.set_len(there as u64).unwrap();
            let finds_too_little = || {
                rustix::fs::fallocate(&file, flags, 0, FOUND_BYTES)?;
                assert!(file.metadata().unwrap().blocks() * 512 >= FOUND_BYTES);
                Err(Errno::NOSPC)
            };
            assert!(!all_or_nothing(&file, finds_too_little).unwrap());
            assert!(file.metadata().unwrap().blocks() * 512 < FOUND_BYTES / 2, "{flags:?}");
            assert_eq!(std::fs::read(&path).unwrap(), vec![7; there], "{flags:?}");
        }
    }
}

/// True if the page cache has the file's first page.
fn is_first_page_cached(file: &File) -> bool {
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    let (page_bytes, mut state) = (rustix::param::page_size(), 0_u8);
    // SAFETY: a new mapping at an address of the kernel's choice, which is never read and
    // is gone before anybody else knows of it; `state` takes the one byte for its one page.
    unsafe {
        let base =
            mmap(std::ptr::null_mut(), page_bytes, ProtFlags::READ, MapFlags::SHARED, file, 0);
        let base = base.unwrap();
        assert_eq!(libc::mincore(base, page_bytes, &raw mut state), 0);
        munmap(base, page_bytes).unwrap();
    }
    state & 1 == 1
}

/// A window that begins before what is appended leaves the pages alone that were synced:
/// made writable, they would be written a second time.
#[test]
fn a_window_does_not_touch_what_was_synced() {
    let directory = TestDirectory::new();
    let path = directory.file("mapped");
    let mut file = OsFs.create(&path).unwrap();
    file.preallocate_mapped(1 << 20).unwrap();
    file.append(&vec![7; 64 << 10]).unwrap();
    file.sync().unwrap();
    let looked_at = File::open(&path).unwrap();
    rustix::fs::fadvise(&looked_at, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    if is_first_page_cached(&looked_at) {
        return; // a file system in memory
    }
    // What follows a sync is written, the next is copied.
    file.append(b"written").unwrap();
    file.append(b"copied").unwrap();
    assert!(!is_first_page_cached(&looked_at));
}

/// A file that belongs to somebody else is read, too, though only its owner may ask not to
/// have the time noted.
#[cfg(target_os = "linux")]
#[test]
fn files_of_others_are_read() {
    use std::os::unix::fs::PermissionsExt;
    let directory = TestDirectory::new();
    let path = directory.file("theirs");
    std::fs::write(&path, b"content").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let read = std::thread::spawn(move || {
        const NOBODY: libc::uid_t = 65_534;
        // SAFETY: changes as whom this thread, and no other, meets the file system, if it
        // has the right to; the second call changes nothing, and says who that is now.
        let (_, now) = unsafe { (libc::setfsuid(NOBODY), libc::setfsuid(libc::uid_t::MAX)) };
        let mut found = [0; 7];
        let file = OsFs.open(&path).unwrap();
        read_full_at(&*file, 0, &mut found).unwrap();
        let asked = OpenOptions::new().read(true).custom_flags(NO_ACCESS_TIMES).open(&path);
        (found, now as libc::uid_t == NOBODY, asked.is_err())
    });
    let (found, is_nobody, is_refused) = read.join().unwrap();
    assert_eq!(&found, b"content");
    assert!(is_refused || !is_nobody, "only the owner may ask");
}
