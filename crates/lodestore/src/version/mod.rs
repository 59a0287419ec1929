//! Which tables make up the database, and how that is kept durably.
//!
//! | part | job |
//! |---|---|
//! | `field` | tagged fields, so that an older program knows what it may skip |
//! | `table_field` | a table's description as such fields |
//! | `edit` | one change: tables added and deleted, families, counters |
//! | `state` | what all edits so far add up to |
//! | `level` | one level's tables, in order |
//! | `levels` | a family's levels, arranged for readers; immutable |
//! | `current` | the file `CURRENT`, which names the manifest in use |
//! | `manifest` | the durable log of edits |
//!
//! A change goes: `VersionEdit` -> `Manifest::append` (synced) ->
//! `State::apply` and `Version::apply` -> readers see the new version.

mod field;
mod table_field;
pub(crate) mod edit;
pub(crate) mod state;
mod level;
pub(crate) mod levels;
mod current;
pub(crate) mod manifest;

pub(crate) use current::{Current, read as read_current};
pub(crate) use edit::{FamilyDescriptor, VersionEdit};
pub(crate) use level::{KeyRange, Level, ends_before};
pub(crate) use levels::{Below, LEVELS, Version};
pub(crate) use manifest::{Manifest, ManifestIdentity};
pub(crate) use state::State;
