//! Flags for single benchmarks.

use crate::numbers::{OrDefault, parse_bytes, parse_count, parse_count_or_default, parse_switch};

/// Seeks, batches of lookups, mixtures, merges.
#[derive(Clone, Debug, clap::Args)]
#[command(rename_all = "snake_case", next_help_heading = "Single benchmarks")]
pub struct SingleFlags {
    /// seekrandom*: entries to read after each seek, the one that was found included
    #[arg(long, default_value = "0", value_parser = parse_count, value_name = "N")]
    pub seek_nexts: u64,

    /// seekrandom*: read them backwards
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub reverse_iterator: bool,

    /// readrandom*, readwhile*, multiread*: some keys are read exp(X) times as often as others, spread over all; 0 = all alike
    #[arg(long, default_value_t = 0.0, value_name = "X", allow_negative_numbers = true)]
    pub read_random_exp_range: f64,

    /// multiread*: distance between the keys of a batch; 0 = each at random
    #[arg(long, default_value = "0", value_parser = parse_count, value_name = "N")]
    pub multiread_stride: u64,

    /// readrandomwriterandom: lookups of 100 operations
    #[arg(long, default_value = "90", value_parser = parse_count, value_name = "PERCENT")]
    pub readwritepercent: u64,

    /// mergerandom: keys are made of the numbers below this; -1 = num
    #[arg(long, default_value = "-1", value_parser = parse_count_or_default, value_name = "N", allow_negative_numbers = true)]
    pub merge_keys: OrDefault,
}

/// The distributions of `mixgraph`.
#[derive(Clone, Debug, clap::Args)]
#[command(rename_all = "snake_case", next_help_heading = "mixgraph")]
pub struct MixFlags {
    /// Share of lookups
    #[arg(
        long,
        default_value_t = 1.0,
        value_name = "X",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub mix_get_ratio: f64,

    /// Share of writes
    #[arg(
        long,
        default_value_t = 0.0,
        value_name = "X",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub mix_put_ratio: f64,

    /// Share of seeks with scans
    #[arg(
        long,
        default_value_t = 0.0,
        value_name = "X",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub mix_seek_ratio: f64,

    /// Ranges of keys of which each has its own share; needs keyrange_dist_*
    #[arg(long, default_value = "1", value_parser = parse_count, value_name = "N")]
    pub keyrange_num: u64,

    /// a in the share a*exp(b*x)+c*exp(d*x) of the x-th hottest range of keys; all 0 = no ranges
    #[arg(
        long,
        default_value_t = 0.0,
        value_name = "X",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub keyrange_dist_a: f64,

    /// b in it
    #[arg(
        long,
        default_value_t = 0.0,
        value_name = "X",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub keyrange_dist_b: f64,

    /// c in it
    #[arg(
        long,
        default_value_t = 0.0,
        value_name = "X",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub keyrange_dist_c: f64,

    /// d in it
    #[arg(
        long,
        default_value_t = 0.0,
        value_name = "X",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub keyrange_dist_d: f64,

    /// a in a*x^b, how often keys are used; 0 = all alike
    #[arg(
        long,
        default_value_t = 0.0,
        value_name = "X",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub key_dist_a: f64,

    /// b in it
    #[arg(
        long,
        default_value_t = 0.0,
        value_name = "X",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub key_dist_b: f64,

    /// Sizes of values, generalized Pareto distribution: theta
    #[arg(
        long,
        default_value_t = 0.0,
        value_name = "X",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub value_theta: f64,

    /// k of it
    #[arg(
        long,
        default_value_t = 0.2615,
        value_name = "X",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub value_k: f64,

    /// sigma of it
    #[arg(
        long,
        default_value_t = 25.45,
        value_name = "X",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub value_sigma: f64,

    /// Lengths of scans, generalized Pareto distribution: theta
    #[arg(
        long,
        default_value_t = 0.0,
        value_name = "X",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub iter_theta: f64,

    /// k of it
    #[arg(
        long,
        default_value_t = 2.517,
        value_name = "X",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub iter_k: f64,

    /// sigma of it
    #[arg(
        long,
        default_value_t = 14.236,
        value_name = "X",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub iter_sigma: f64,

    /// Longest value; of a longer one the remainder is taken
    #[arg(long, default_value = "1024", value_parser = parse_bytes, value_name = "BYTES")]
    pub mix_max_value_size: u64,

    /// Longest scan; of a longer one the remainder is taken
    #[arg(long, default_value = "10000", value_parser = parse_count, value_name = "N")]
    pub mix_max_scan_len: u64,

    /// Let the rate swing: sine_a*sin(sine_b*t+sine_c)+sine_d operations a second, t in seconds
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub sine_mix_rate: bool,

    /// Time after which that rate is set anew
    #[arg(long, default_value = "10000", value_parser = parse_count, value_name = "MS")]
    pub sine_mix_rate_interval_milliseconds: u64,

    /// Noise of that rate, as a part of sine_a, from 0 to 1
    #[arg(
        long,
        default_value_t = 0.0,
        value_name = "X",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub sine_mix_rate_noise: f64,

    /// a in the rate's formula
    #[arg(
        long,
        default_value_t = 1.0,
        value_name = "X",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub sine_a: f64,

    /// b in it
    #[arg(
        long,
        default_value_t = 1.0,
        value_name = "X",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub sine_b: f64,

    /// c in it
    #[arg(
        long,
        default_value_t = 0.0,
        value_name = "X",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub sine_c: f64,

    /// d in it
    #[arg(
        long,
        default_value_t = 1.0,
        value_name = "X",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub sine_d: f64,
}

/// The entries of `timeseries`.
#[derive(Clone, Debug, clap::Args)]
#[command(rename_all = "snake_case", next_help_heading = "timeseries")]
pub struct SeriesFlags {
    /// Ids are below this
    #[arg(long, default_value = "100000", value_parser = parse_count, value_name = "N")]
    pub key_id_range: u64,

    /// What becomes of old entries: none (they stay) or delete (readers delete them)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = ExpireStyle::None, value_name = "STYLE")]
    pub expire_style: ExpireStyle,

    /// Entries are old when so many newer ones were written
    #[arg(long, default_value = "100000", value_parser = parse_count, value_name = "N")]
    pub time_range: u64,

    /// Readers that delete old entries instead of reading, with --expire_style=delete
    #[arg(long, default_value = "1", value_parser = parse_count, value_name = "N")]
    pub num_deletion_threads: u64,
}

/// What becomes of old entries of `timeseries`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum ExpireStyle {
    /// They stay.
    #[default]
    None,
    /// Readers delete them.
    Delete,
    /// RocksDB's third style, which is refused: there are no such filters.
    CompactionFilter,
}
