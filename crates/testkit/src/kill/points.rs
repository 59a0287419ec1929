//! Places at which the process kills itself, found by watching the file
//! system: the engine has no switch for them.

use lodestore::fs::{
    Capabilities, FileLock, Fs, LockError, ReadStream, ReadableFile, WritableFile,
};
use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// How files end that are written outside of the database to be ingested.
pub const SOURCE_EXTENSION: &str = "source";

/// What the engine is doing, as its calls to the file system show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Point {
    /// A flush thread writes a table.
    Flush,
    /// A compaction thread writes a table.
    Compaction,
    /// A new manifest is written, or becomes the current one.
    ManifestRotation,
    /// A log segment is written over, or renamed to be.
    SegmentRecycling,
    /// The manifest is written to while a family is dropped.
    FamilyDrop,
    /// A table that is ingested comes into the directory.
    IngestArrival,
    /// The manifest is written to by an ingest.
    IngestEdit,
    /// The manifest of an ingest is durable: its tables are shown to readers,
    /// and files that were moved lose their old names.
    IngestPublication,
}

impl Point {
    /// Every point.
    pub const ALL: [Point; 8] = [
        Point::Flush,
        Point::Compaction,
        Point::ManifestRotation,
        Point::SegmentRecycling,
        Point::FamilyDrop,
        Point::IngestArrival,
        Point::IngestEdit,
        Point::IngestPublication,
    ];

    /// Its name in reports and on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Point::Flush => "flush",
            Point::Compaction => "compaction",
            Point::ManifestRotation => "manifest-rotation",
            Point::SegmentRecycling => "segment-recycling",
            Point::FamilyDrop => "family-drop",
            Point::IngestArrival => "ingest-arrival",
            Point::IngestEdit => "ingest-edit",
            Point::IngestPublication => "ingest-publication",
        }
    }
}

/// What a thread of the target is doing, where its calls alone do not show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    FamilyDrop,
    Ingest,
}

thread_local! {
    static DOING: Cell<Option<Doing>> = const { Cell::new(None) };
}

/// Runs `work`, which drops a family.
pub fn while_dropping_family<T>(work: impl FnOnce() -> T) -> T {
    doing(Doing::FamilyDrop, work)
}

/// Runs `work`, which ingests tables.
pub fn while_ingesting<T>(work: impl FnOnce() -> T) -> T {
    doing(Doing::Ingest, work)
}

fn doing<T>(what: Doing, work: impl FnOnce() -> T) -> T {
    DOING.set(Some(what));
    let result = work();
    DOING.set(None);
    result
}

/// When to die: at the `nth` call that belongs to `point`.
#[derive(Debug)]
pub struct Trigger {
    point: Point,
    nth: u64,
    seen: AtomicU64,
    /// Called just before the process kills itself.
    report: fn(Point),
}

impl Trigger {
    /// Dies at the `nth` call of `point`, counted from 1.
    pub fn new(point: Point, nth: u64, report: fn(Point)) -> Arc<Trigger> {
        Arc::new(Trigger { point, nth, seen: AtomicU64::new(0), report })
    }

    /// True if this call is the one at which to die.
    fn is_due(&self, point: Option<Point>) -> bool {
        point == Some(self.point) && self.seen.fetch_add(1, Ordering::Relaxed) + 1 == self.nth
    }

    /// Ends the process as `kill -9` does: nothing is flushed or unwound.
    fn die(&self) -> ! {
        (self.report)(self.point);
        let process = rustix::process::getpid();
        let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
        std::process::abort() // not reached: SIGKILL cannot be refused
    }
}

/// Tables that are being written in the background. Each change is reported,
/// so that whoever looks after a kill knows what it has cut short.
#[derive(Debug)]
pub struct InFlight {
    /// By flushes, and by compactions.
    tables: Mutex<[u64; 2]>,
    report: fn(u64),
}

impl InFlight {
    /// The bit of a reported state that says that a flush wrote a table.
    pub const FLUSH: u64 = 1;
    /// The same of a compaction.
    pub const COMPACTION: u64 = 2;

    /// Nothing is in flight; `report` is called with each new state.
    pub fn new(report: fn(u64)) -> Arc<InFlight> {
        Arc::new(InFlight { tables: Mutex::default(), report })
    }

    fn change(&self, who: usize, change: impl FnOnce(u64) -> u64) {
        // Reported under the lock, so that the last report is the last state.
        let mut tables = self.tables.lock().expect("no one panics while counting");
        tables[who] = change(tables[who]);
        let bit = |at: usize, bit: u64| if tables[at] > 0 { bit } else { 0 };
        (self.report)(bit(0, InFlight::FLUSH) | bit(1, InFlight::COMPACTION));
    }
}

/// One table of [`InFlight`], counted until it is dropped.
#[derive(Debug)]
struct TableInFlight {
    of: Arc<InFlight>,
    who: usize,
}

impl TableInFlight {
    fn begin(of: &Arc<InFlight>, path: &Path) -> Option<TableInFlight> {
        let who = match background_point(path)? {
            Point::Flush => 0,
            _ => 1,
        };
        of.change(who, |tables| tables + 1);
        Some(TableInFlight { of: Arc::clone(of), who })
    }
}

impl Drop for TableInFlight {
    fn drop(&mut self) {
        self.of.change(self.who, |tables| tables - 1);
    }
}

/// A file system whose process dies at a [`Trigger`].
#[derive(Debug)]
pub struct PointFs {
    inner: Arc<dyn Fs>,
    trigger: Option<Arc<Trigger>>,
    in_flight: Arc<InFlight>,
}

impl PointFs {
    /// Watches `inner`; without a trigger nobody dies.
    pub fn new(
        inner: Arc<dyn Fs>,
        trigger: Option<Arc<Trigger>>,
        in_flight: Arc<InFlight>,
    ) -> Arc<PointFs> {
        Arc::new(PointFs { inner, trigger, in_flight })
    }

    /// Does `work`. If this is the moment to die: odd calls die before, even
    /// ones after it.
    fn at<T>(&self, point: Option<Point>, work: impl FnOnce() -> T) -> T {
        let Some(trigger) = &self.trigger else { return work() };
        let due = trigger.is_due(point);
        if due && trigger.nth % 2 == 1 {
            trigger.die();
        }
        let result = work();
        if due {
            trigger.die();
        }
        result
    }

    fn wrap(
        &self,
        path: &Path,
        file: io::Result<Box<dyn WritableFile>>,
    ) -> io::Result<Box<dyn WritableFile>> {
        let inner = file?;
        let in_flight = TableInFlight::begin(&self.in_flight, path);
        let (path, trigger) = (path.to_path_buf(), self.trigger.clone());
        Ok(Box::new(PointFile { inner, path, trigger, _in_flight: in_flight }))
    }
}

/// What a call that changes `path` belongs to.
fn point_of(path: &Path, creates: bool) -> Option<Point> {
    let name = path.file_name()?.to_str()?;
    let manifest = is_manifest(path);
    match DOING.get() {
        Some(Doing::FamilyDrop) if manifest => return Some(Point::FamilyDrop),
        Some(Doing::Ingest) if manifest => return Some(Point::IngestEdit),
        Some(Doing::Ingest) if name.ends_with(".table") => return Some(Point::IngestArrival),
        _ => {}
    }
    if manifest && creates || name == "CURRENT" {
        return Some(Point::ManifestRotation);
    }
    background_point(path)
}

/// Flush or compaction, if one of them writes `path`, a table.
fn background_point(path: &Path) -> Option<Point> {
    if !has_extension(path, "table") {
        return None;
    }
    match std::thread::current().name() {
        Some("lode-flush") => Some(Point::Flush),
        Some("lode-compact") => Some(Point::Compaction),
        _ => None,
    }
}

/// What a call belongs to that comes after the manifest's sync.
fn point_after_edit() -> Option<Point> {
    (DOING.get() == Some(Doing::Ingest)).then_some(Point::IngestPublication)
}

fn is_manifest(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"MANIFEST-"))
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension == wanted)
}

fn is_segment(path: &Path) -> bool {
    has_extension(path, "wal")
}

impl Fs for PointFs {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WritableFile>> {
        let file = self.at(point_of(path, true), || self.inner.create(path));
        self.wrap(path, file)
    }

    fn overwrite(&self, path: &Path) -> io::Result<Box<dyn WritableFile>> {
        let recycles = is_segment(path);
        let point = if recycles { Some(Point::SegmentRecycling) } else { point_of(path, false) };
        let file = self.at(point, || self.inner.overwrite(path));
        self.wrap(path, file)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadableFile>> {
        self.inner.open(path)
    }

    fn open_direct(&self, path: &Path) -> io::Result<Arc<dyn ReadableFile>> {
        self.inner.open_direct(path)
    }

    fn read_many(&self, reads: &mut dyn ReadStream) {
        self.inner.read_many(reads);
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        self.inner.list(directory)
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        self.inner.length(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let point = if has_extension(path, SOURCE_EXTENSION) { point_after_edit() } else { None };
        self.at(point, || self.inner.remove(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let recycles = is_segment(from) && is_segment(to);
        let point = if recycles { Some(Point::SegmentRecycling) } else { point_of(to, true) };
        self.at(point, || self.inner.rename(from, to))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.at(point_of(to, true), || self.inner.hard_link(from, to))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.inner.create_directory(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_directory(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.inner.sync_directory(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>, LockError> {
        self.inner.lock(path)
    }
}

#[derive(Debug)]
struct PointFile {
    inner: Box<dyn WritableFile>,
    path: PathBuf,
    trigger: Option<Arc<Trigger>>,
    /// Dropped with the file, when it is written.
    _in_flight: Option<TableInFlight>,
}

impl PointFile {
    fn is_due(&self, point: Option<Point>) -> bool {
        self.trigger.as_ref().is_some_and(|trigger| trigger.is_due(point))
    }

    fn die(&self) {
        if let Some(trigger) = &self.trigger {
            trigger.die();
        }
    }
}

impl WritableFile for PointFile {
    /// Dies after half of the bytes, as a process can that is killed inside
    /// a large write.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_due(point_of(&self.path, false)) {
            self.inner.append(&bytes[..bytes.len() / 2])?;
            self.die();
        }
        self.inner.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.is_due(point_of(&self.path, false)) {
            self.die();
        }
        let result = self.inner.sync();
        if is_manifest(&self.path) && self.is_due(point_after_edit()) {
            self.die();
        }
        result
    }

    fn preallocate(&mut self, length: u64) -> io::Result<()> {
        self.inner.preallocate(length)
    }

    fn preallocate_mapped(&mut self, length: u64) -> io::Result<()> {
        self.inner.preallocate_mapped(length)
    }

    fn write_back(&mut self, offset: u64, length: u64) {
        self.inner.write_back(offset, length);
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.inner.truncate(length)
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        self.inner.close()
    }
}
