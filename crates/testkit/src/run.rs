//! Two surfaces, one history: the first difference, and the shortest history
//! that still shows one.

use crate::command::{Command, Output};
use crate::surface::Surface;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs of a shrunk history that are tried at most.
const SHRINK_RUNS_MAX: usize = 300;

/// Where two surfaces parted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The history up to and including the command that showed it.
    pub history: Vec<Command>,
    /// What should have come of the last command.
    pub expected: Vec<String>,
    /// What came of it.
    pub found: Vec<String>,
}

impl fmt::Display for Difference {
    /// A behaviour script, with what was found as a comment.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.history.iter().try_for_each(|command| writeln!(f, "{command}"))?;
        writeln!(f, "----")?;
        self.expected.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        writeln!(f, "\n# found instead:")?;
        self.found.iter().try_for_each(|line| writeln!(f, "# {line}"))
    }
}

/// Runs `history` on both; the first difference, if there is one. A panic of
/// the tested surface is a difference too.
pub fn compare(
    oracle: &mut dyn Surface,
    tested: &mut dyn Surface,
    history: &[Command],
) -> Option<Box<Difference>> {
    for (i, command) in history.iter().enumerate() {
        let expected = oracle.run(command);
        let found = catch_unwind(AssertUnwindSafe(|| tested.run(command)))
            .unwrap_or_else(|panic| Output::Failed(format!("panic: {}", message(&*panic))));
        if expected != found {
            let history = history[..=i].to_vec();
            let (expected, found) = (expected.lines(), found.lines());
            return Some(Box::new(Difference { history, expected, found }));
        }
    }
    None
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_string()))
        .unwrap_or_else(|| "without a message".to_string())
}

/// Drops commands from a failing history for as long as it keeps failing.
/// `fails` runs a history on fresh surfaces.
pub fn shrink(
    found: Box<Difference>,
    mut fails: impl FnMut(&[Command]) -> Option<Box<Difference>>,
) -> Box<Difference> {
    let mut best = found;
    let mut chunk = best.history.len() / 2;
    let mut runs = 0;
    while chunk > 0 {
        let mut start = 0;
        while start < best.history.len() && runs < SHRINK_RUNS_MAX {
            let end = (start + chunk).min(best.history.len());
            let mut shorter = best.history.clone();
            shorter.drain(start..end);
            runs += 1;
            match fails(&shorter) {
                Some(difference) => best = difference,
                None => start = end,
            }
        }
        chunk /= 2;
    }
    shrink_batches(best, &mut runs, &mut fails)
}

/// Drops records from the batches of a failing history.
fn shrink_batches(
    mut best: Box<Difference>,
    runs: &mut usize,
    fails: &mut impl FnMut(&[Command]) -> Option<Box<Difference>>,
) -> Box<Difference> {
    let mut at = 0;
    while at < best.history.len() {
        let Command::Write { changes, .. } = &best.history[at] else {
            at += 1;
            continue;
        };
        let mut chunk = changes.len() / 2;
        while chunk > 0 && *runs < 2 * SHRINK_RUNS_MAX {
            let mut start = 0;
            loop {
                let mut history = best.history.clone();
                let Some(Command::Write { changes, .. }) = history.get_mut(at) else { break };
                if start >= changes.len() || *runs >= 2 * SHRINK_RUNS_MAX {
                    break;
                }
                let end = (start + chunk).min(changes.len());
                if end - start == changes.len() {
                    break;
                }
                changes.drain(start..end);
                *runs += 1;
                match fails(&history) {
                    Some(difference) if difference.history.len() > at => best = difference,
                    _ => start = end,
                }
            }
            chunk /= 2;
        }
        at += 1;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Generator, Shape};
    use crate::model::{Model, keeps_the_contract};

    /// A model that forgets a deletion, as an engine with a bug would.
    #[derive(Default)]
    struct Forgetful(Model);

    impl Surface for Forgetful {
        fn run(&mut self, command: &Command) -> Output {
            let mut command = command.clone();
            if let Command::Write { changes, .. } = &mut command {
                changes.retain(|c| c.action != crate::command::Action::Delete);
                if changes.is_empty() {
                    return Output::Done;
                }
            }
            self.0.run(&command)
        }
    }

    /// A lost deletion is found, and shown by few commands.
    #[test]
    fn a_planted_bug_is_found_and_shrunk() {
        let run = |history: &[Command]| {
            compare(&mut Model::default(), &mut Forgetful::default(), history)
        };
        let history: Vec<Command> = Generator::new(1, Shape::default()).take(300).collect();
        let found = run(&history).expect("the bug shows within 300 commands");
        let shortest = shrink(found, run);
        assert!(shortest.history.len() <= 6, "still long:\n{shortest}");
    }

    /// A single delete of what was put twice may give anything: no history has one.
    #[test]
    fn histories_keep_the_contract_of_single_deletes() {
        for seed in (0..1000).chain([2369]) {
            let history: Vec<Command> = Generator::new(seed, Shape::default()).take(200).collect();
            assert!(keeps_the_contract(&history), "seed {seed}");
        }
        let script = "open db create=yes\nput k a\nput k b\nsingle-delete k";
        let history: Vec<Command> =
            script.lines().map(|line| crate::parse::command(line).expect("a command")).collect();
        assert!(!keeps_the_contract(&history));
        assert!(keeps_the_contract(&history[..3]));
    }

    /// The oracle agrees with itself, whatever it is asked.
    #[test]
    fn the_oracle_is_deterministic() {
        for seed in 0..10 {
            let history: Vec<Command> = Generator::new(seed, Shape::default()).take(200).collect();
            let (mut a, mut b) = (Model::default(), Model::default());
            assert_eq!(compare(&mut a, &mut b, &history), None);
        }
    }
}
