//! What was done to each call, as a table.

use super::silence::Silence;
use std::collections::BTreeMap;
use std::fmt;

/// What was done to the calls of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Calls of a run that nothing happened to, over all threads and both logs.
    pub calls: usize,
    /// Processes killed at a call.
    pub kills: usize,
    /// Calls that were made to fail.
    pub errors: usize,
    /// Failures of which some command told.
    pub told: usize,
    /// Databases opened and judged afterwards.
    pub recoveries: usize,
}

impl Row {
    fn add(&mut self, other: &Row) {
        self.calls += other.calls;
        self.kills += other.kills;
        self.errors += other.errors;
        self.told += other.told;
        self.recoveries += other.recoveries;
    }
}

/// All rows, by the call's name.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What was done to each.
    pub rows: BTreeMap<&'static str, Row>,
    /// Failures of which no command told: how many of each.
    pub untold: BTreeMap<(&'static str, Silence), usize>,
}

impl Report {
    /// Adds what another one says.
    pub fn add(&mut self, other: Report) {
        for (call, row) in other.rows {
            self.rows.entry(call).or_default().add(&row);
        }
        for (what, count) in other.untold {
            *self.untold.entry(what).or_default() += count;
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:16} {:>6} {:>6} {:>7} {:>6} {:>11}",
            "call", "calls", "kills", "errors", "told", "recoveries"
        )?;
        let mut total = Row::default();
        for (call, row) in &self.rows {
            if row.calls == 0 {
                writeln!(f, "{call:16} never called")?;
                continue;
            }
            total.add(row);
            write_row(f, call, row)?;
        }
        write_row(f, "all", &total)?;
        for ((call, silence), count) in &self.untold {
            writeln!(f, "not told: {count} of {call}, {silence}")?;
        }
        Ok(())
    }
}

fn write_row(f: &mut fmt::Formatter<'_>, name: &str, row: &Row) -> fmt::Result {
    let Row { calls, kills, errors, told, recoveries } = row;
    writeln!(f, "{name:16} {calls:>6} {kills:>6} {errors:>7} {told:>6} {recoveries:>11}")
}
