//! What single benchmarks are told by flags of their own: how far a seek goes
//! on, how reads and writes are mixed, what `mixgraph` and `timeseries` draw.
//! Checked by `settings`, used by `workloads`.

use std::time::Duration;

use serde::Serialize;

/// All of them.
#[derive(Clone, Debug, Serialize)]
pub struct Shapes {
    /// How a seek goes on.
    pub seek: SeekShape,
    /// Of the keys that lookups draw, the most popular are drawn `exp` of this
    /// times as often as the least popular; 0 draws all alike.
    pub read_exp_range: f64,
    /// Distance between the numbers of the keys of one `multi_get`; 0 draws
    /// each at random.
    pub multiread_stride: u64,
    /// Lookups of 100 operations of `readrandomwriterandom`.
    pub read_percent: u64,
    /// `mergerandom` merges into keys of the numbers below this.
    pub merge_keys: u64,
    /// Level of `zstdcomp` and `zstduncomp`.
    pub zstd_level: i32,
    /// What `mixgraph` does.
    pub mix: MixShape,
    /// What `timeseries` does.
    pub series: SeriesShape,
}

/// How a seek goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SeekShape {
    /// Entries that are read after it, the one that was found included.
    pub nexts: u64,
    /// True if they are read backwards.
    pub reverse: bool,
}

/// `mixgraph`: lookups, writes and scans with the distributions of Cao, Dong,
/// Vemuri and Du, "Characterizing, Modeling, and Benchmarking RocksDB Key-Value
/// Workloads at Facebook" (FAST 2020).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MixShape {
    /// How often each range of keys is used; `None` if all are alike.
    pub ranges: Option<RangeShape>,
    /// `a` and `b` of `a * x^b`: how often a key is used; `None` if all are
    /// alike.
    pub keys: Option<(f64, f64)>,
    /// Bytes of values.
    pub value: Pareto,
    /// A longer value gets the remainder by this many bytes.
    pub value_bytes_max: u64,
    /// Entries that are scanned after a seek.
    pub scan: Pareto,
    /// A longer scan gets the remainder by this many entries.
    pub scan_max: u64,
    /// Shares of lookups, writes and seeks; their sum is 1.
    pub shares: [f64; 3],
    /// A rate that swings, if that is wanted.
    pub sine: Option<Sine>,
}

/// Ranges of keys, of which the `x`-th hottest is used with a probability of
/// `a * exp(b * x) + c * exp(d * x)`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RangeShape {
    /// The ranges.
    pub count: u64,
    /// The factors `a`, `b`, `c`, `d`.
    pub factors: [f64; 4],
}

/// A generalized Pareto distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pareto {
    /// Where it begins.
    pub theta: f64,
    /// How heavy its tail is.
    pub k: f64,
    /// How wide it is.
    pub sigma: f64,
}

/// Operations a second that follow `a * sin(b * t + c) + d`, `t` in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sine {
    /// The factors `a`, `b`, `c`, `d`.
    pub factors: [f64; 4],
    /// The rate is set anew after this time.
    pub interval: Duration,
    /// Up to this part of half of `a` is added to or taken from the rate.
    pub noise: f64,
}

/// `timeseries`: entries of an id and a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SeriesShape {
    /// Ids are below this.
    pub ids: u64,
    /// Entries whose time is this much before the newest are expired.
    pub time_range: u64,
    /// Of the reading threads, so many delete what is expired instead.
    pub deletion_threads: usize,
}
