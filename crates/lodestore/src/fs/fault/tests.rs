use super::*;
use crate::fs::{MemFs, read_all};

fn faulty() -> FaultFs {
    FaultFs::new(Arc::new(MemFs::new()))
}

/// The chosen call fails with the chosen error, and only that one.
#[test]
fn the_nth_call_fails_once() {
    let fs = faulty();
    let mut file = fs.create(Path::new("a")).unwrap();
    fs.inject(Fault::os(Operation::Append, 2, libc::ENOSPC).after_bytes(3));
    file.append(b"12345").unwrap();
    assert_eq!(file.append(b"67890").unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    file.append(b"x").unwrap();
    assert_eq!(read_all(&fs, Path::new("a")).unwrap(), b"12345678x");
    assert_eq!((fs.calls(Operation::Append), fs.struck()), (3, 1));
}

/// A lasting fault lasts until it is healed, on the chosen files only.
#[test]
fn a_lasting_fault_strikes_its_files_until_healed() {
    let fs = faulty();
    fs.inject(Fault::new(Operation::Sync, 2, io::ErrorKind::Other).forever().on(".wal"));
    let mut log = fs.create(Path::new("1.wal")).unwrap();
    let mut table = fs.create(Path::new("2.table")).unwrap();
    log.sync().unwrap();
    for _ in 0..3 {
        assert!(log.sync().is_err());
        table.sync().unwrap();
    }
    fs.heal();
    log.sync().unwrap();
}

/// Reads can be short, and then give the same bytes in more steps.
#[test]
fn short_reads_are_gone_on_with() {
    let fs = faulty();
    fs.create(Path::new("a")).unwrap().append(&[7; 100]).unwrap();
    fs.shorten_reads(9);
    assert_eq!(read_all(&fs, Path::new("a")).unwrap(), [7; 100]);
    assert_eq!(fs.calls(Operation::Read), 12);
    fs.inject(Fault::new(Operation::Read, 5, io::ErrorKind::Other));
    assert!(read_all(&fs, Path::new("a")).is_err());
}

/// Every operation can be made to fail.
#[test]
fn every_operation_can_fail() {
    let fs = faulty();
    let path = Path::new("a");
    let mut file = fs.create(path).unwrap();
    let reader = fs.open(path).unwrap();
    for operation in ALL {
        fs.inject(Fault::new(operation, 1, io::ErrorKind::Other));
    }
    let failed = [
        fs.create(path).is_err(),
        fs.overwrite(path).is_err(),
        fs.open(path).is_err(),
        fs.list(path).is_err(),
        fs.length(path).is_err(),
        fs.remove(path).is_err(),
        fs.rename(path, path).is_err(),
        fs.hard_link(path, path).is_err(),
        fs.create_directory(path).is_err(),
        fs.remove_directory(path).is_err(),
        fs.sync_directory(path).is_err(),
        matches!(fs.lock(path), Err(LockError::Io(_))),
        reader.read_at(0, &mut [0]).is_err(),
        file.append(b"x").is_err(),
        file.sync().is_err(),
        file.preallocate(1).is_err(),
        file.truncate(0).is_err(),
        file.close().is_err(),
    ];
    assert_eq!(failed, [true; ALL.len()]);
}

const ALL: [Operation; 18] = [
    Operation::Create,
    Operation::Overwrite,
    Operation::Open,
    Operation::List,
    Operation::Length,
    Operation::Remove,
    Operation::Rename,
    Operation::HardLink,
    Operation::CreateDirectory,
    Operation::RemoveDirectory,
    Operation::SyncDirectory,
    Operation::Lock,
    Operation::Read,
    Operation::Append,
    Operation::Sync,
    Operation::Preallocate,
    Operation::Truncate,
    Operation::Close,
];
