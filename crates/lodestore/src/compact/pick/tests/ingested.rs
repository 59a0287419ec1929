use super::*;

impl Model {
    /// Puts a new table with these keys where it may go; gives the level.
    fn ingest(&mut self, keys: impl IntoIterator<Item = u32>) -> usize {
        self.sequence += 1;
        let sequence = self.sequence;
        let entries: BTreeMap<u32, Newest> =
            keys.into_iter().map(|key| (key, (sequence, false))).collect();
        self.oracle.extend(entries.iter().map(|(&key, &newest)| (key, newest)));
        let meta = self.table(entries).with_sequence(sequence);
        let (first, last) = (meta.smallest.user_key.clone(), meta.largest.user_key.clone());
        let range = KeyRange { first, last };
        let level = level_for(&self.version, &self.limits, &self.running, &[], &range);
        self.apply(&VersionEdit { tables_added: vec![(0, level, meta)], ..Default::default() });
        level
    }
}

/// Tables from outside, put in while compactions are at work that end later:
/// none comes under an older entry of its keys, or into a range that is being
/// written (applying would fail), and every level comes to its size again.
#[test]
fn tables_from_outside_never_come_under_older_entries() {
    let (mut deep, mut kept_up) = (0, 0);
    for seed in 0..6 {
        let mut model = Model::new(seed);
        let span = [3_000, 30_000, 300_000][seed as usize % 3];
        let threads = 2 + seed as usize % 3;
        for round in 0..300 {
            let from = model.below(span) as u32;
            let count = 20 + model.below(60);
            match model.below(3) {
                // Neighbours, so that there is room between tables.
                0 => model.flush(from..from + count as u32, false),
                1 => model.flush((from..).step_by(3).take(count as usize / 4), true),
                _ => {
                    let width = 1 + model.below(8) as u32;
                    let running = model.running.clone();
                    model.running = Running::default();
                    let range = KeyRange {
                        first: from.to_be_bytes().to_vec(),
                        last: (from + width - 1).to_be_bytes().to_vec(),
                    };
                    let alone =
                        level_for(&model.version, &model.limits, &model.running, &[], &range);
                    model.running = running;
                    let level = model.ingest(from..from + width);
                    assert!(level <= alone);
                    deep += usize::from(level > 0);
                    kept_up += usize::from(level < alone);
                }
            }
            let keep = model.below(threads as u64) as usize;
            model.work(threads, keep);
            if round % 25 == 0 {
                model.check_readers();
            }
        }
        model.work(threads, 0);
        model.check_readers();
        model.check_converged();
    }
    assert!(deep > 10 && kept_up > 0, "{deep} went deep, {kept_up} were kept up by compactions");
}

/// A table that comes with older ones goes above those that it overlaps.
#[test]
fn tables_that_come_together_keep_their_order() {
    let model = Model::new(1);
    let range = |first: u8, last: u8| KeyRange { first: vec![first], last: vec![last] };
    let level = |placed: &[(usize, KeyRange)], range: &KeyRange| {
        level_for(&model.version, &model.limits, &model.running, placed, range)
    };
    assert_eq!(level(&[], &range(1, 5)), BOTTOM);
    assert_eq!(level(&[(BOTTOM, range(1, 5))], &range(6, 9)), BOTTOM);
    // The level above the bottom is above the base of an empty database.
    assert_eq!(level(&[(BOTTOM, range(1, 5))], &range(5, 9)), 0);
    assert_eq!(level(&[(0, range(1, 5))], &range(5, 9)), 0);
}
