//! Flags for what is printed and written beside the lines.

use std::path::PathBuf;

use crate::numbers::{parse_count, parse_switch};

/// None of them changes what is measured, but for what timing costs.
#[derive(Clone, Debug, clap::Args)]
#[command(rename_all = "snake_case", next_help_heading = "Output")]
pub struct OutputFlags {
    /// Time every operation, and print percentiles and a picture after each line
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub histogram: bool,

    /// Print the engine's counters at the end
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub statistics: bool,

    /// Print what the engine does on its own on standard error: flushes, compactions, long waits
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub events: bool,

    /// Write one page with plots, to be opened in a browser; times every operation
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,

    /// Print one JSON document on standard output at the end, and the lines on standard error
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub json: bool,

    /// Print the lines only: no header, progress or summary
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub quiet: bool,

    /// Show progress on standard error [default: if it is a terminal]
    #[arg(long, num_args = 0..=1, default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub progress: Option<bool>,

    /// Print a line with rates on standard error every so many seconds; 0 = never
    #[arg(long, default_value = "0", value_parser = parse_count, value_name = "SECONDS")]
    pub stats_interval_seconds: u64,

    /// Print the engine's statistics, too, whenever --stats_interval_seconds prints
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub stats_per_interval: bool,

    /// Write a row into --report_file every so many seconds; 0 = never
    #[arg(long, default_value = "0", value_parser = parse_count, value_name = "SECONDS")]
    pub report_interval_seconds: u64,

    /// Where operations of each interval go, as CSV; needs --report_interval_seconds [default: report.csv]
    #[arg(long, value_name = "FILE")]
    pub report_file: Option<PathBuf>,

    /// After each repeat of NAME[X5], print the 95 % confidence interval instead of mean and half of its width
    #[arg(long, num_args = 0..=1, default_value = "0", default_missing_value = "1", value_parser = parse_switch, value_name = "0|1", action = clap::ArgAction::Set)]
    pub confidence_interval_only: bool,
}
