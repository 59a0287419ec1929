//! What simulated lives did and came to.

macro_rules! report {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// Counts over lives.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Report {
            /// Hash of all calls to the file system.
            pub trace: u64,
            $($(#[$doc])* pub $name: u64,)+
        }

        impl Report {
            /// Adds another life's counts.
            pub fn add(&mut self, other: &Report) {
                self.trace = self.trace.rotate_left(5) ^ other.trace;
                $(self.$name += other.$name;)+
            }

            /// Each count with its name.
            pub fn counts(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)+]
            }
        }
    };
}

report! {
    /// Records written, keys looked up and steps of cursors, before crashes.
    operations,
    /// Entries compared after crashes.
    entries_compared,
    /// Openings of a database that went on living.
    incarnations,
    /// Crashes after which the files were as they were written.
    kills,
    /// Those in the middle of a write.
    torn_kills,
    /// Crashes that took unsynced bytes and names.
    power_losses,
    /// Databases opened after a crash, compared and verified.
    recoveries,
    /// Those that were opened after a crash in the recovery of another.
    recoveries_of_recoveries,
    /// Batches acknowledged.
    acknowledged,
    /// Calls that took in tables, acknowledged.
    ingested,
    /// Families created.
    families_created,
    /// Snapshots compared with all that they must show.
    snapshots_compared,
    /// Calls to the file system that failed.
    faults,
    /// Times that a database was resumed after a failure.
    resumed,
    /// Writes that went to a wrong place.
    misdirected,
    /// Databases refused, or read with an error that names the damage, after that.
    damage_named,
    /// Jumps of the clock.
    clock_jumps,
    /// Lives with two writers or more and two families at a crash, while a
    /// compaction wrote a table, that replayed two log segments or more.
    rich,
    /// Lives in all.
    lives,
    /// Crashes while a compaction wrote a table.
    crashes_in_compactions,
    /// Recoveries that replayed two log segments or more.
    recoveries_of_two_logs,
    /// Flushes.
    flushes,
    /// Compactions.
    compactions,
    /// Manifests begun anew.
    manifest_rotations,
    /// Log segments that reused an older file.
    segments_recycled,
    /// Parts of compactions cut to run on several threads.
    compaction_parts,
}
