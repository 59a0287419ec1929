//! `lode pulse export`: the entries of a stream one by one, for programs that
//! want the same keys from a file. Memory is that of one round.

use std::io;

use crate::error::BenchError;
use crate::pulse::flags::{ExportFlags, Part};
use crate::pulse::plan::{Planner, Round};
use crate::pulse::stream::Stream;

/// Gives `write` the key and the value of each record, in their order.
/// # Errors: those of `write` as [`BenchError::Io`].
pub fn export(
    flags: &ExportFlags,
    mut write: impl FnMut(&[u8], &[u8]) -> io::Result<()>,
) -> Result<(), BenchError> {
    if let (Part::Load, Some(round)) = (flags.part, flags.round) {
        let what = format!("--part load comes before all rounds: leave --round {round} out");
        return Err(BenchError::Usage(what));
    }
    let stream = Stream::read_file(&flags.stream)?;
    let of_round = || round(&stream, flags.round.unwrap_or(1));
    let numbers: Box<dyn Iterator<Item = u64>> = match flags.part {
        Part::Load => Box::new(0..stream.entries),
        Part::Reads => Box::new(of_round()?.reads.into_iter()),
        Part::Adds => Box::new(of_round()?.adds),
        Part::Deletes => Box::new(of_round()?.deletes.into_iter()),
    };
    let (entries, mut value) = (stream.entries(), Vec::new());
    for number in numbers {
        if flags.part != Part::Deletes {
            entries.value(number, &mut value);
        }
        write(&entries.key(number), &value)?;
    }
    Ok(())
}

fn round(stream: &Stream, number: u64) -> Result<Round, BenchError> {
    let before = number.checked_sub(1);
    let before = before.ok_or_else(|| BenchError::Usage("rounds begin with 1".to_string()))?;
    let mut planner = Planner::new(stream);
    planner.skip_to(before)?;
    planner.next_round()
}
