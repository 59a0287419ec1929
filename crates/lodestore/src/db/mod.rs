//! The open database.
//!
//! | part | job |
//! |---|---|
//! | `handle`, `family_handle` | the public handles |
//! | `family` | one family, open; all of them; what they share |
//! | `engine` | what they share; sealing of memtables |
//! | `queue`, `write`, `commit`, `logs`, `sealed` | group commit: who leads, log, memtables, publication |
//! | `view`, `snapshot` | what readers take, and what keeps old versions |
//! | `lookup`, `many`, `read`, `pending`, `value`, `explain` | point lookups, now or later, and what one did |
//! | `cursor`, `key_range` | walking over keys |
//! | `background`, `flush`, `compaction`, `parts`, `health` | work in the background, and its failures |
//! | `pressure`, `pacer`, `admission`, `stalls`, `memory` | how fast writers may go meanwhile, and what they waited for |
//! | `open`, `replay`, `resume`, `destroy` | begin, recovery, end |
//! | `live`, `options_file` | options that change, and the file that says which hold |
//! | `families`, `checkpoint`, `ingest`, `updates`, `verify`, `properties`, `publish` | the rest of the surface |

mod snapshot;
mod value;
mod view;
mod pressure;
mod pacer;
mod health;
mod lookup;
mod family;
mod many;
mod read;
mod pending;
mod explain;
mod key_range;
mod cursor;
mod queue;
mod commit;
mod sealed;
mod logs;
mod background;
mod stalls;
mod admission;
mod engine;
mod options_file;
mod memory;
mod write;
mod flush;
mod parts;
mod compaction;
mod families;
mod replay;
mod open;
mod resume;
mod destroy;
mod live;
mod checkpoint;
mod ingest;
mod updates;
mod verify;
mod properties;
mod publish;
mod family_handle;
mod handle;

pub(crate) use checkpoint::{link_or_copy, link_or_copy_synced, prepare_directory, remove_copy};
pub use cursor::{DbCursor, Range};
pub use explain::{
    BlockSource, BlockUse, Explanation, FilterAnswer, Outcome, Place, Searched, VersionMet,
};
pub(crate) use families::descriptor;
pub(crate) use family::DEFAULT_NAME;
pub use family_handle::Family;
pub use handle::Db;
pub use ingest::{IngestReport, IngestedTable};
pub use key_range::KeyRange;
pub(crate) use open::{take_lock, with_file_limit};
pub use pending::PendingGet;
pub use properties::{LevelStats, MemoryStats, Stats};
pub use read::ReadOptions;
pub use snapshot::Snapshot;
pub use updates::{LogPin, Updates};
pub use value::Value;
pub use verify::VerifyReport;
