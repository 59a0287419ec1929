//! The cap on open files, with readers beside changes of the cap.

use super::{LimitedFile, LimitedFs, OpenFiles, Slot};
use crate::fs::{Access, Fs, MemFs, ReadableFile, read_full_at};
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, Published, thread};
use std::path::PathBuf;
use testkit::explore::explore;
use testkit::random::Random;

const FILES: usize = 3;

/// A file of `fs` whose one byte is `byte`.
fn file(fs: &LimitedFs, byte: u8) -> LimitedFile {
    let path = PathBuf::from(format!("{byte}"));
    let mut file = fs.create(&path).expect("memory takes a file");
    file.append(&[byte]).expect("memory takes a byte");
    let slot = Arc::new(Slot {
        path,
        access: Access::Buffered,
        descriptor: Published::new(Arc::new(None)),
        used: AtomicBool::new(false),
        place: AtomicUsize::new(super::CLOSED),
    });
    fs.reopen(&slot).expect("it is there");
    LimitedFile { fs: fs.clone(), slot }
}

/// The ring and the files agree: those with a place there, and only those, have
/// a descriptor, and they are as many as it says.
fn check(open: &OpenFiles, files: &[Arc<LimitedFile>]) {
    let ring = open.ring.lock();
    assert_eq!(ring.places.iter().flatten().count(), ring.open);
    for file in files {
        let place = file.slot.place.load(Ordering::Relaxed);
        let is_listed = ring.places.get(place).is_some_and(|slot| slot.is_some());
        assert_eq!(file.slot.descriptor.load().is_some(), is_listed, "{file:?}");
    }
}

/// Every read gives its own file's bytes, however few may be open and whatever
/// is closed meanwhile; never are more open than the cap allows, and a file
/// that nobody reads any more is forgotten.
#[test]
fn reads_are_right_below_any_cap() {
    explore("open files", |seed| {
        let mut random = Random::new(seed);
        let fs = LimitedFs::new(Arc::new(MemFs::new()), 2, &Arc::default());
        let files: Vec<_> = (0..FILES as u8).map(|byte| Arc::new(file(&fs, byte))).collect();
        let short_lived = Mutex::new(Some(file(&fs, FILES as u8)));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (fs, files) = (fs.clone(), files.clone());
                let random = Random::new(random.word());
                thread::spawn("reader", move || read(&fs, &files, random))
            })
            .collect();
        let last = short_lived.lock().take();
        drop(last);
        fs.open.close_some();
        fs.set_files_max(random.between(1, 2));
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        check(&fs.open, &files);
        assert!(fs.open.ring.lock().open <= fs.open.files_max());
        drop(files);
        assert_eq!(fs.open.ring.lock().open, 0);
    });
}

fn read(fs: &LimitedFs, files: &[Arc<LimitedFile>], mut random: Random) {
    for _ in 0..3 {
        let byte = random.below(FILES);
        let mut buffer = [0xff];
        let file: &dyn ReadableFile = &*files[byte];
        read_full_at(file, 0, &mut buffer).expect("memory can be read");
        assert_eq!(usize::from(buffer[0]), byte);
        assert!(fs.open.ring.lock().open <= 2);
    }
}
