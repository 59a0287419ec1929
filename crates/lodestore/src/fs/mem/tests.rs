use super::*;
use crate::fs::read_all;
use std::collections::BTreeSet;

fn write(fs: &MemFs, path: &str, bytes: &[u8]) -> Box<dyn WritableFile> {
    let mut file = fs.create(Path::new(path)).unwrap();
    file.append(bytes).unwrap();
    file
}

fn content(fs: &MemFs, path: &str) -> Option<Vec<u8>> {
    read_all(fs, Path::new(path)).ok()
}

/// What was synced, with its name, is there after every power loss; what was
/// not is there in some and not in others.
#[test]
fn power_loss_takes_only_what_was_not_synced() {
    let fs = MemFs::new();
    let mut file = write(&fs, "a", &[1; 1000]);
    file.sync().unwrap();
    fs.sync_directory(Path::new("")).unwrap();
    file.append(&[2; 3000]).unwrap();
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let after = content(&fs.crash(seed), "a").unwrap();
        assert!(after.len() >= 1000 && after[..1000] == [1; 1000]);
        // Each sector is whole: all of the append's part of it, or nothing.
        for sector in after[1024.min(after.len())..].chunks(SECTOR_BYTES) {
            assert!(sector.iter().all(|&byte| byte == sector[0] && (byte == 0 || byte == 2)));
        }
        seen.insert(after);
    }
    assert!(seen.len() > 10, "only {} outcomes", seen.len());
    let mut all = vec![1; 1000];
    all.extend([2; 3000]);
    assert!(seen.contains(&vec![1; 1000]) && seen.contains(&all));
    assert_eq!(content(&fs.crash(7), "a"), content(&fs.crash(7), "a"), "a seed repeats itself");
    assert!(file.append(b"x").is_err(), "the process is gone");
}

use super::inode::SECTOR_BYTES;

/// Overwriting without sync leaves any mix of old and new sectors.
#[test]
fn overwritten_sectors_are_old_or_new() {
    let fs = MemFs::new();
    write(&fs, "a", &[1; 2048]).sync().unwrap();
    fs.sync_directory(Path::new("")).unwrap();
    let mut file = fs.overwrite(Path::new("a")).unwrap();
    file.append(&[2; 2048]).unwrap();
    let mut mixes = BTreeSet::new();
    for seed in 0..300 {
        let after = content(&fs.crash(seed), "a").unwrap();
        assert_eq!(after.len(), 2048);
        let sectors: Vec<u8> = after.chunks(SECTOR_BYTES).map(|sector| sector[0]).collect();
        assert!(after.chunks(SECTOR_BYTES).zip(&sectors).all(|(all, &one)| all == [one; 512]));
        mixes.insert(sectors);
    }
    assert_eq!(mixes.len(), 16, "every mix of four sectors");
}

/// A name is durable once its directory is synced; a rename is all or nothing.
#[test]
fn names_are_durable_only_after_their_directory_is_synced() {
    let fs = MemFs::new();
    fs.create_directory(Path::new("/d/e")).unwrap();
    fs.sync_directory(Path::new("/")).unwrap();
    fs.sync_directory(Path::new("/d")).unwrap();
    write(&fs, "/d/e/old", b"old").sync().unwrap();
    fs.sync_directory(Path::new("/d/e")).unwrap();
    write(&fs, "/d/e/new", b"new").sync().unwrap();
    fs.rename(Path::new("/d/e/new"), Path::new("/d/e/old")).unwrap();
    let mut outcomes = BTreeSet::new();
    for seed in 0..100 {
        let after = fs.crash(seed);
        let old = content(&after, "/d/e/old").expect("a name that was durable is never lost");
        assert!(old == b"old" || old == b"new");
        outcomes.insert((old, content(&after, "/d/e/new")));
    }
    assert!(outcomes.contains(&(b"old".to_vec(), None)));
    assert!(outcomes.contains(&(b"new".to_vec(), None)));
    let after = fs.kill();
    after.sync_directory(Path::new("/d/e")).unwrap();
    assert!((0..50).all(|seed| content(&after.crash(seed), "/d/e/old").unwrap() == b"new"));
}

/// A removed file may come back, and a directory that was never made durable
/// takes its files with it.
#[test]
fn unsynced_removals_and_directories_may_be_undone() {
    let fs = MemFs::new();
    write(&fs, "a", b"a").sync().unwrap();
    fs.sync_directory(Path::new("")).unwrap();
    fs.remove(Path::new("a")).unwrap();
    fs.create_directory(Path::new("d")).unwrap();
    write(&fs, "d/x", b"x").sync().unwrap();
    fs.sync_directory(Path::new("d")).unwrap();
    let outcomes: BTreeSet<(bool, bool)> = (0..100)
        .map(|seed| fs.crash(seed))
        .map(|after| (content(&after, "a").is_some(), content(&after, "d/x").is_some()))
        .collect();
    assert_eq!(outcomes.len(), 4);
}

/// A killed process loses nothing, and its locks are free; what it had not
/// synced can still be lost with the power.
#[test]
fn kill_keeps_everything_and_frees_locks() {
    let fs = MemFs::new();
    let lock = fs.lock(Path::new("LOCK")).unwrap();
    assert!(matches!(fs.lock(Path::new("LOCK")), Err(LockError::Held { .. })));
    write(&fs, "a", b"12345");
    fs.hard_link(Path::new("a"), Path::new("b")).unwrap();
    let after = fs.kill();
    assert!(fs.open(Path::new("a")).is_err(), "the old process is gone");
    drop(lock);
    drop(after.lock(Path::new("LOCK")).unwrap());
    drop(after.lock(Path::new("LOCK")).unwrap());
    assert_eq!(content(&after, "a").unwrap(), b"12345");
    let mut file = after.overwrite(Path::new("b")).unwrap();
    file.append(b"x").unwrap();
    assert_eq!(content(&after, "a").unwrap(), b"x2345", "two names of one file");
    let lost = (0..50).filter(|&seed| content(&after.crash(seed), "a").is_none()).count();
    assert!(lost > 0 && lost < 50);
}

/// After the chosen number of changes the process is gone, within a write at
/// the latest.
#[test]
fn the_process_can_be_stopped_at_every_change() {
    let run = |fs: &MemFs| -> io::Result<()> {
        let mut file = fs.create(Path::new("a"))?;
        file.append(&[1; 100])?;
        file.append(&[2; 100])?;
        file.sync()?;
        fs.sync_directory(Path::new(""))?;
        fs.rename(Path::new("a"), Path::new("b"))
    };
    let whole = MemFs::new();
    run(&whole).unwrap();
    assert_eq!(whole.operations(), 6);
    for n in 0..6 {
        let fs = MemFs::new();
        fs.stop_after(n);
        assert!(run(&fs).is_err() && fs.is_stopped());
        let after = fs.kill();
        let length = content(&after, "a").map(|bytes| bytes.len());
        match n {
            0 => assert_eq!(length, None),
            1 => assert!(length.unwrap() <= 100),
            2 => assert!((100..=200).contains(&length.unwrap())),
            _ => assert_eq!(length, Some(200)),
        }
    }
}

/// A file system that can only append says so, and refuses the rest.
#[test]
fn missing_capabilities_are_refused() {
    let fs = MemFs::with_capabilities(Capabilities::default());
    assert_eq!(fs.capabilities(), Capabilities::default());
    let mut file = write(&fs, "a", b"abc");
    let unsupported = io::ErrorKind::Unsupported;
    assert_eq!(file.truncate(1).unwrap_err().kind(), unsupported);
    assert_eq!(fs.overwrite(Path::new("a")).unwrap_err().kind(), unsupported);
    assert_eq!(fs.hard_link(Path::new("a"), Path::new("b")).unwrap_err().kind(), unsupported);
    file.preallocate(100).unwrap();
    file.close().unwrap();
    assert_eq!(content(&fs, "a").unwrap(), b"abc");
}

/// Errors are those of a real file system.
#[test]
fn errors_are_those_of_a_real_file_system() {
    let fs = MemFs::new();
    let kind = |result: io::Result<()>| result.unwrap_err().kind();
    let not_found = io::ErrorKind::NotFound;
    assert_eq!(kind(fs.open(Path::new("a")).map(|_| ())), not_found);
    assert_eq!(kind(fs.create(Path::new("d/a")).map(|_| ())), not_found);
    assert_eq!(kind(fs.remove(Path::new("a"))), not_found);
    assert_eq!(kind(fs.rename(Path::new("a"), Path::new("b"))), not_found);
    assert_eq!(kind(fs.list(Path::new("d")).map(|_| ())), not_found);
    fs.create_directory(Path::new("d")).unwrap();
    write(&fs, "d/a", b"");
    assert_eq!(fs.list(Path::new("d")).unwrap(), ["a"]);
    assert_eq!(kind(fs.remove_directory(Path::new("d"))), io::ErrorKind::DirectoryNotEmpty);
    fs.remove(Path::new("d/a")).unwrap();
    fs.remove_directory(Path::new("d")).unwrap();
}

/// A fork has all that is here, knows what of it is durable, and goes its own way.
#[test]
fn a_fork_is_a_crash_that_did_not_come() {
    let fs = MemFs::new();
    let mut file = write(&fs, "a", b"synced");
    file.sync().unwrap();
    fs.sync_directory(Path::new("")).unwrap();
    file.append(b" not").unwrap();
    let fork = fs.fork();
    file.append(b" and more").unwrap();
    assert_eq!(content(&fs, "a").unwrap(), b"synced not and more");
    assert_eq!(content(&fork.kill(), "a").unwrap(), b"synced not");
    let left: BTreeSet<_> = (0..20).map(|seed| content(&fork.crash(seed), "a").unwrap()).collect();
    let (old, new) = (b"synced".to_vec(), b"synced not".to_vec());
    assert!(left.contains(&old) && left.contains(&new));
    assert!(!fs.is_stopped());
}

/// A process may be killed in the middle of a write, which must be the last.
#[test]
fn the_last_append_can_be_torn() {
    let fs = MemFs::new();
    let mut file = write(&fs, "a", b"old");
    file.sync().unwrap();
    assert!(!fs.fork().tear_last_append(1), "a sync came after it");
    file.append(b"0123").unwrap();
    let torn = |seed| {
        let fork = fs.fork();
        assert!(fork.tear_last_append(seed));
        content(&fork, "a").unwrap()
    };
    let left: BTreeSet<_> = (0..50).map(torn).collect();
    let all = [&b"old"[..], b"old0", b"old01", b"old012"].map(<[u8]>::to_vec);
    assert_eq!(left, BTreeSet::from(all));
}

/// The bytes of a misdirected append are in a wrong place of the same directory, and
/// not in theirs. A file that is in another directory too is spared.
#[test]
fn a_misdirected_append_lands_elsewhere_once() {
    let mut wrong = 0;
    for seed in 0..20 {
        let fs = MemFs::new();
        let mut file = write(&fs, "a", &[1; 600]);
        drop(write(&fs, "b", &[2; 1200]));
        fs.create_directory(Path::new("other")).unwrap();
        drop(write(&fs, "other/c", &[6; 1200]));
        fs.hard_link(Path::new("other/c"), Path::new("linked")).unwrap();
        fs.misdirect(2, seed);
        file.append(&[3; 10]).unwrap();
        assert!(fs.will_misdirect());
        file.append(&[4; 10]).unwrap();
        assert!(!fs.will_misdirect());
        file.append(&[5; 10]).unwrap();
        let (a, b) = (content(&fs, "a").unwrap(), content(&fs, "b").unwrap());
        assert_eq!((&a[600..610], &a[620..]), (&[3; 10][..], &[5; 10][..]));
        let strays = a.iter().chain(&b).filter(|&&byte| byte == 4).count();
        assert_eq!(strays, 10, "seed {seed}");
        assert_eq!(content(&fs, "other/c").unwrap(), [6; 1200]);
        wrong += usize::from(b.contains(&4));
    }
    assert!(wrong > 0, "it never came to the other file");
}
