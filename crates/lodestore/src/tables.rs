//! Open tables.

use crate::table::meta::TableMeta;

/// A live table.
#[derive(Debug)]
pub(crate) struct TableFile {
    pub(crate) meta: TableMeta,
}

/// A slot for `meta`, for tests that need no file.
#[cfg(test)]
pub(crate) fn test_slot(meta: &TableMeta) -> std::sync::Arc<TableFile> {
    std::sync::Arc::new(TableFile { meta: meta.clone() })
}
