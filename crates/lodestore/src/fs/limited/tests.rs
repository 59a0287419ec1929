use super::*;
use crate::fs::{Fault, FaultFs, MemFs, Operation, ReadList, read_full_at};

const EMFILE: i32 = 24;

/// `count` files of one byte, their number, below a cap.
fn files(inner: Arc<dyn Fs>, files_max: usize, count: u8) -> (LimitedFs, Vec<Descriptor>) {
    let fs = LimitedFs::new(inner, files_max, &Arc::default());
    let opened = (0..count).map(|i| {
        let path = PathBuf::from(format!("{i}"));
        let mut file = fs.create(&path).expect("memory takes a file");
        file.append(&[i]).expect("memory takes a byte");
        fs.open(&path).expect("it is there")
    });
    let opened = opened.collect();
    (fs, opened)
}

fn byte(file: &Descriptor) -> io::Result<u8> {
    let mut buffer = [0];
    read_full_at(&**file, 0, &mut buffer).map(|()| buffer[0])
}

/// Any number of files can be read through a few descriptors.
#[test]
fn more_files_than_the_cap_are_read() {
    for files_max in [1, 2, 7] {
        let (fs, files) = files(Arc::new(MemFs::new()), files_max, 50);
        for round in 0..3 {
            for (i, file) in files.iter().enumerate() {
                assert_eq!(byte(file).expect("it reads"), i as u8, "round {round}");
                assert!(fs.open.ring.lock().open <= files_max);
            }
        }
        assert!(fs.open.statistics.get(Counter::FilesClosed) >= 100);
        drop(files);
        assert_eq!(fs.open.ring.lock().open, 0, "dropped files are forgotten");
    }
}

/// A file that is read again and again stays open while others come and go.
#[test]
fn a_file_in_use_stays_open() {
    let counting = FaultFs::new(Arc::new(MemFs::new()));
    let (_fs, files) = files(Arc::new(counting.clone()), 4, 40);
    byte(&files[0]).expect("it reads");
    let before = counting.calls(Operation::Open);
    for file in &files[1..] {
        byte(file).expect("it reads");
        byte(&files[0]).expect("it reads");
    }
    assert!(counting.calls(Operation::Open) - before <= 40, "the first was opened no more");
}

/// Reads of many files at once hold no more than the cap, each answered under
/// its own number.
#[test]
fn many_reads_at_once_keep_to_the_cap() {
    let (fs, files) = files(Arc::new(MemFs::new()), 5, 60);
    let read = |file: &Descriptor| ReadRequest { file: Arc::clone(file), offset: 0, length: 1 };
    let mut answers = vec![None; files.len()];
    let requests = files.iter().map(read).collect();
    fs.read_many(&mut ReadList::new(requests, |i: usize, result: io::Result<&[u8]>| {
        assert!(answers[i].replace(result.expect("it reads").to_vec()).is_none());
    }));
    let expected: Vec<_> = (0..60).map(|i| Some(vec![i])).collect();
    assert_eq!(answers, expected);
}

/// A call that finds no descriptor frees some and succeeds; one that never
/// finds any says so.
#[test]
fn missing_descriptors_are_freed_or_reported() {
    let failing = FaultFs::new(Arc::new(MemFs::new()));
    let (fs, files) = files(Arc::new(failing.clone()), 100, 20);
    for operation in [Operation::Create, Operation::Open, Operation::SyncDirectory, Operation::List]
    {
        failing.inject(Fault::os(operation, 1, EMFILE));
        let open = fs.open.ring.lock().open;
        let result = match operation {
            Operation::Create => fs.create(Path::new("new")).map(drop),
            Operation::Open => fs.open(Path::new("3")).map(drop),
            Operation::List => fs.list(Path::new("")).map(drop),
            _ => fs.sync_directory(Path::new("")),
        };
        result.expect("some descriptor was freed");
        assert!(fs.open.ring.lock().open < open, "{operation:?}");
        assert!(files.iter().all(|file| byte(file).is_ok()));
    }
    failing.inject(Fault::os(Operation::Open, 1, EMFILE).forever());
    let failed = fs.open(Path::new("3")).expect_err("there is no descriptor");
    assert!(is_out_of_descriptors(&failed));
    failing.heal();
    for (i, file) in files.iter().enumerate() {
        assert_eq!(byte(file).expect("it reads again"), i as u8);
    }
}
