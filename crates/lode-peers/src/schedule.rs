//! Which child does what, and when. Pure.
//!
//! A round is all groups at all sizes in random order; the engines of one group
//! come right after each other, in random order, so that what is compared was
//! measured as near in time as it can be.

use std::path::{Path, PathBuf};

use lode_bench::permutation::Permutation;
use lode_bench::random::SplitMix;

use crate::engines::EngineKind;
use crate::lanes::Lane;
use crate::protocol::Job;
use crate::stream::Shape;
use crate::workload::{Group, Workload};

/// What a run compares.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How engines are set up.
    pub lane: Lane,
    /// Ours first.
    pub engines: Vec<EngineKind>,
    /// What is measured.
    pub workloads: Vec<Workload>,
    /// At these sizes of keys and values.
    pub shapes: Vec<Shape>,
    /// Entries of each database.
    pub entries: u64,
    /// Repeats.
    pub rounds: usize,
    /// What streams and orders follow from.
    pub seed: u64,
    /// Threads that look keys up.
    pub threads: u64,
    /// How many they look up.
    pub reads: u64,
    /// Time each call.
    pub latencies: bool,
    /// Memory that a child may use.
    pub memory_limit: Option<u64>,
}

impl Plan {
    /// The jobs of `round` in their order, each with a directory of its own
    /// below `scratch`.
    pub fn jobs(&self, round: usize, scratch: &Path) -> Vec<Job> {
        let mut random = SplitMix::new(self.seed);
        let seed = (0..=round).map(|_| random.next()).last().unwrap_or(self.seed);
        let mut jobs = Vec::new();
        for (group, shape) in shuffled(self.blocks(), seed) {
            let engines = shuffled(self.engines.clone(), seed ^ jobs.len() as u64 ^ 1);
            jobs.extend(engines.into_iter().map(|engine| Job {
                engine,
                lane: self.lane,
                group,
                workloads: self.measured(group),
                shape,
                entries: self.entries,
                seed,
                threads: self.threads,
                reads: self.reads,
                latencies: self.latencies,
                directory: directory(scratch, round, engine, group, shape),
                memory_limit: self.memory_limit,
            }));
        }
        jobs
    }

    /// Groups and sizes. Those that have sizes of their own come once.
    fn blocks(&self) -> Vec<(Group, Shape)> {
        let groups = Group::ALL.into_iter().filter(|group| !self.measured(*group).is_empty());
        let of_group = |group: Group| {
            let shapes = if group.has_own_sizes() { &self.shapes[..1] } else { &self.shapes[..] };
            shapes.iter().map(move |&shape| (group, shape))
        };
        groups.flat_map(of_group).collect()
    }

    fn measured(&self, group: Group) -> Vec<Workload> {
        let of_group = |workload: &&Workload| self.workloads.contains(workload);
        group.workloads().iter().filter(of_group).copied().collect()
    }
}

fn directory(
    scratch: &Path,
    round: usize,
    engine: EngineKind,
    group: Group,
    shape: Shape,
) -> PathBuf {
    let (engine, shape) = (engine.name(), shape.name());
    scratch.join(format!("{round}-{engine}-{group:?}-{shape}").to_lowercase())
}

fn shuffled<T: Clone>(items: Vec<T>, seed: u64) -> Vec<T> {
    if items.is_empty() {
        return items;
    }
    let order = Permutation::new(items.len() as u64, seed);
    (0..items.len() as u64).map(|at| items[order.at(at) as usize].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn plan() -> Plan {
        Plan {
            lane: Lane::Equal,
            engines: vec![EngineKind::Lodestore, EngineKind::LodestoreAgain, EngineKind::RocksDb],
            workloads: vec![Workload::ReadSeq, Workload::FillSeq, Workload::PulseRead],
            shapes: vec![Shape::Standard, Shape::Hashes],
            entries: 1_000,
            rounds: 3,
            seed: 5,
            threads: 1,
            reads: 1_000,
            latencies: false,
            memory_limit: None,
        }
    }

    /// Every engine does every group at every size once a round, right after
    /// the other engines, with the same stream, in a directory of its own.
    #[test]
    fn rounds_are_complete_and_paired() {
        let jobs = plan().jobs(0, Path::new("/scratch"));
        assert_eq!(jobs.len(), 3 * (2 + 2 + 1));
        let directories: HashSet<&Path> = jobs.iter().map(|job| job.directory.as_path()).collect();
        assert_eq!(directories.len(), jobs.len());
        for block in jobs.chunks(3) {
            let engines: HashSet<EngineKind> = block.iter().map(|job| job.engine).collect();
            assert_eq!(engines.len(), 3);
            let alike = |job: &Job| {
                (job.group, job.shape, job.seed) == (block[0].group, block[0].shape, block[0].seed)
            };
            assert!(block.iter().all(alike));
        }
        let random = jobs.iter().find(|job| job.group == Group::Random).expect("it is planned");
        assert_eq!(random.workloads, [Workload::ReadSeq]);
    }

    /// Each round has an order and a stream of its own; the seed repeats them.
    #[test]
    fn orders_follow_from_the_seed() {
        let order = |plan: &Plan, round| {
            let jobs = plan.jobs(round, Path::new("/scratch"));
            jobs.iter().map(|job| (job.engine, job.group, job.shape)).collect::<Vec<_>>()
        };
        let other = Plan { seed: 6, ..plan() };
        assert_eq!(order(&plan(), 1), order(&plan(), 1));
        let orders: HashSet<_> = (0..20).map(|round| order(&plan(), round)).collect();
        assert!(orders.len() > 15, "{} orders of 20", orders.len());
        assert_ne!(order(&plan(), 0), order(&other, 0));
        let seed = |round| plan().jobs(round, Path::new("/scratch"))[0].seed;
        assert_ne!(seed(0), seed(1));
        let first: HashSet<EngineKind> = (0..20).map(|round| order(&plan(), round)[0].0).collect();
        assert_eq!(first.len(), 3, "each engine comes first now and then");
    }
}
