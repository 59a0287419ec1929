//! Open tables: a slot for each live table, opened at its first use, and the
//! end of a table file once nothing refers to it.
//!
//! Invariant: a file is removed only after the manifest no longer names it
//! (then it is marked obsolete) and the last view that holds it is gone.

use std::path::{Path, PathBuf};

use crate::budget::{Account, Charge, Item, Reservation};
use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::filename;
use crate::fs::{Access, Fs};
use crate::key::KeyOrder;
use crate::scheduler::{Lane, Scheduler};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, OnceLock};
use crate::table::Table;
use crate::table::meta::TableMeta;

mod mapped;

use mapped::{MappedBytes, MappedShare};

/// Where tables live and what opening and removing them needs.
#[derive(Debug)]
pub(crate) struct TableHome {
    pub(crate) fs: Arc<dyn Fs>,
    pub(crate) directory: PathBuf,
    pub(crate) cache: Arc<Cache>,
    pub(crate) scheduler: Arc<Scheduler>,
    /// How tables are read that are not mapped.
    access: Access,
    mapped: Arc<MappedBytes>,
    /// Tables are opened before they are used.
    pub(crate) preloads: bool,
    /// What open tables hold is charged to it.
    memory: Arc<Account>,
    /// True once the directory may be another opener's: nothing may be removed
    /// there any more. Held locked while a file is being removed.
    closed: Mutex<bool>,
    /// Removals that were handed to the scheduler and are not done yet.
    removals: AtomicU64,
}

/// How tables are read: past the page cache, out of mappings, or neither.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TableReads {
    /// Past the page cache.
    pub(crate) direct: bool,
    /// By copying out of mappings of so many bytes of them; 0: of none.
    pub(crate) mapped_bytes_max: u64,
    /// Each is opened before it is used.
    pub(crate) preload: bool,
}

impl TableHome {
    pub(crate) fn new(
        fs: Arc<dyn Fs>,
        directory: PathBuf,
        cache: Arc<Cache>,
        scheduler: Arc<Scheduler>,
        memory: Arc<Account>,
        reads: TableReads,
    ) -> Arc<TableHome> {
        Arc::new(TableHome {
            fs,
            directory,
            cache,
            scheduler,
            access: if reads.direct { Access::Direct } else { Access::Buffered },
            mapped: MappedBytes::new(reads.mapped_bytes_max),
            preloads: reads.preload,
            memory,
            closed: Mutex::new(false),
            removals: AtomicU64::new(0),
        })
    }

    /// Gives the directory up: removals that were not done yet are left to the
    /// next open. A new database there may use the same names.
    pub(crate) fn close(&self) {
        *self.closed.lock() = true;
    }

    /// True if tables are read past the page cache, those that are not mapped.
    pub(crate) fn reads_direct(&self) -> bool {
        self.access == Access::Direct
    }

    /// Bytes of the tables that are mapped.
    pub(crate) fn mapped_bytes(&self) -> u64 {
        self.mapped.bytes()
    }

    /// True while a removed table's file is still to be deleted.
    pub(crate) fn is_removing(&self) -> bool {
        self.removals.load(Ordering::Acquire) > 0
    }

    fn remove(&self, path: &Path) {
        let closed = self.closed.lock();
        if !*closed {
            // A failed removal costs space until the next open removes it.
            let _ = self.fs.remove(path);
        }
        self.removals.fetch_sub(1, Ordering::AcqRel);
    }
}

/// An open table, and what is given back when it is closed.
#[derive(Debug)]
struct Opened {
    table: Arc<Table>,
    _memory: Reservation,
    _mapped: Option<MappedShare>,
}

/// A live table: what the manifest says of it, and the table once opened.
#[derive(Debug)]
pub(crate) struct TableFile {
    pub(crate) meta: TableMeta,
    home: Arc<TableHome>,
    order: KeyOrder,
    opened: OnceLock<Opened>,
    obsolete: AtomicBool,
}

impl TableFile {
    pub(crate) fn new(home: &Arc<TableHome>, order: &KeyOrder, meta: TableMeta) -> Arc<TableFile> {
        Arc::new(TableFile {
            meta,
            home: Arc::clone(home),
            order: order.clone(),
            opened: OnceLock::new(),
            obsolete: AtomicBool::new(false),
        })
    }

    pub(crate) fn path(&self) -> PathBuf {
        filename::table_path(&self.home.directory, self.meta.number)
    }

    /// The table, if it was opened before.
    #[inline]
    pub(crate) fn opened(&self) -> Option<&Arc<Table>> {
        self.opened.get().map(|opened| &opened.table)
    }

    /// The table, opened now if need be.
    ///
    /// # Errors
    /// `Corruption` if the file is missing or is not the one that the manifest
    /// names; `Io` if it cannot be read now.
    pub(crate) fn table(&self) -> Result<&Arc<Table>> {
        if let Some(table) = self.opened() {
            return Ok(table);
        }
        let mapped = self.home.mapped.take(self.meta.bytes);
        let access = if mapped.is_some() { Access::Mapped } else { self.home.access };
        let table = Arc::new(self.open(access)?);
        let memory = Charge::new(&self.home.memory, Item::Tables).reserve(table.memory_bytes());
        // Another thread may have been faster: its table serves as well.
        let opened = Opened { table, _memory: memory, _mapped: mapped };
        Ok(&self.opened.get_or_init(|| opened).table)
    }

    fn open(&self, access: Access) -> Result<Table> {
        let path = self.path();
        let opened = access.open(&*self.home.fs, &path);
        let known_as = self.home.fs.known_as(&path);
        let file = opened.map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => missing(&known_as),
            _ => Error::io(&known_as, "open", source),
        })?;
        let cache_file = self.home.cache.new_file();
        Table::open(file, known_as, &self.meta, self.order.clone(), cache_file)
    }

    /// Says that the manifest names this table no more: its file goes when the
    /// last reader is done.
    pub(crate) fn mark_obsolete(&self) {
        self.obsolete.store(true, Ordering::Release);
    }
}

impl Drop for TableFile {
    /// Whoever drops the last reference may be a reader in a hurry: closing
    /// and deleting happen in the background. What a crash leaves behind is
    /// deleted at the next open.
    fn drop(&mut self) {
        if !self.obsolete.load(Ordering::Acquire) {
            return;
        }
        let (home, path, table) = (Arc::clone(&self.home), self.path(), self.opened.take());
        self.home.removals.fetch_add(1, Ordering::AcqRel);
        self.home.scheduler.submit(Lane::Soon, move || {
            drop(table);
            home.remove(&path);
        });
    }
}

/// The error for a table that the manifest names and that is not there.
pub(crate) fn missing(path: &Path) -> Error {
    Error::corruption(path, 0, "the table is missing; the manifest names it")
}

/// A slot for `meta`, for tests that open no table.
#[cfg(test)]
pub(crate) fn test_slot(meta: &TableMeta) -> Arc<TableFile> {
    static HOME: OnceLock<Arc<TableHome>> = OnceLock::new();
    let home = HOME.get_or_init(|| {
        let fs = Arc::new(crate::fs::MemFs::new());
        let (cache, scheduler) = (Cache::new(0), Scheduler::new(1));
        TableHome::new(
            fs,
            PathBuf::from("test"),
            cache,
            scheduler,
            Account::unlimited(),
            TableReads::default(),
        )
    });
    TableFile::new(home, &KeyOrder::Bytewise, meta.clone())
}

#[cfg(all(test, simulation))]
mod simulation;
