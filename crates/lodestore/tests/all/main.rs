//! All integration tests of the engine in one binary: one link, one run.

mod environment;
mod events;
mod explain;
mod inspect;
mod statistics;
mod sync_failures;

mod adopt;
mod repair_leveldb;
mod architecture;
mod public_api;
mod range_deletes;
mod gaps;
mod ingest;
mod limits;
mod row_cache;
mod options;
mod live_options;
mod live_memory;
mod prefixes;
mod scripts;
mod model;
mod pacing;
mod compactions;
mod panics;
mod pending;
mod recovery;
mod rot;
mod crash;
mod faults;
mod golden;
mod failures;
mod direct_reads;
mod descriptors;
mod mapped_reads;
mod memory;
