//! `--benchmarks`: which benchmarks run, and how often. `name[X5-W1]` runs one
//! once to warm up and then five times, as in RocksDB.

use crate::catalogue::all;
use crate::error::BenchError;
use crate::foreign;
use crate::workload::Workload;

/// More repeats than this are a typing error.
const TIMES_MAX: u32 = 10_000;

/// A benchmark of the list.
#[derive(Clone, Copy)]
pub struct Selected {
    /// What runs.
    pub workload: &'static Workload,
    /// How often it is measured.
    pub repeats: u32,
    /// How often it runs before that, for nothing.
    pub warmups: u32,
}

/// The benchmarks that `list` names, separated by commas.
/// # Errors: `Usage` names what is unknown, with the nearest name there is.
pub fn parse_list(list: &str) -> Result<Vec<Selected>, BenchError> {
    let items = list.split(',').map(str::trim).filter(|item| !item.is_empty());
    let selected = items.map(parse).collect::<Result<Vec<_>, _>>()?;
    if selected.is_empty() {
        return Err(BenchError::Usage("--benchmarks names none".to_string()));
    }
    Ok(selected)
}

fn parse(item: &str) -> Result<Selected, BenchError> {
    let (name, arguments) = match item.split_once('[') {
        None => (item, ""),
        Some((name, rest)) => match rest.strip_suffix(']') {
            Some(arguments) => (name, arguments),
            None => return Err(wrong_times(item)),
        },
    };
    let mut selected = Selected { workload: find(name)?, repeats: 1, warmups: 0 };
    for argument in arguments.split('-').filter(|argument| !argument.is_empty()) {
        let times = argument.get(1..).and_then(|digits| digits.parse::<u32>().ok());
        match (&argument.as_bytes()[0], times) {
            (b'X', Some(times @ 1..=TIMES_MAX)) => selected.repeats = times,
            (b'W', Some(times @ 0..=TIMES_MAX)) => selected.warmups = times,
            _ => return Err(wrong_times(item)),
        }
    }
    Ok(selected)
}

fn wrong_times(item: &str) -> BenchError {
    BenchError::Usage(format!(
        "'{item}' is not understood; NAME[X5] runs a benchmark five times, NAME[X5-W1] once \
         before that to warm up (each at most {TIMES_MAX})"
    ))
}

fn find(name: &str) -> Result<&'static Workload, BenchError> {
    if let Some(workload) = all().find(|w| w.name == name) {
        return Ok(workload);
    }
    if let Some(reason) = foreign::benchmark(name) {
        return Err(BenchError::Usage(format!("benchmark '{name}' of db_bench: {reason}")));
    }
    let distance = |w: &&Workload| strsim::damerau_levenshtein(w.name, name);
    let nearest = all().min_by_key(distance).filter(|w| distance(w) <= name.len().div_ceil(2));
    let advice = match nearest {
        Some(workload) => format!("did you mean '{}'?", workload.name),
        None => "see --help for the list".to_string(),
    };
    Err(BenchError::Usage(format!("unknown benchmark '{name}'; {advice}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(list: &str) -> String {
        match parse_list(list) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{list} was accepted"),
        }
    }

    /// A mistyped name stops the run before it starts, with a suggestion.
    #[test]
    fn unknown_names_are_refused_with_a_suggestion() {
        assert!(message("fillseq,readrandon").contains("did you mean 'readrandom'?"));
        assert!(message("zzz").contains("see --help"));
        assert!(message(" , ").contains("names none"));
    }

    /// A benchmark that only db_bench has is refused with the reason.
    #[test]
    fn names_of_db_bench_are_refused_with_the_reason() {
        assert!(message("randomtransaction").contains("transactions"));
    }

    /// Repeats and warm-ups are read as RocksDB reads them.
    #[test]
    fn repeats_are_read() {
        let times = |item: &str| {
            let selected = parse_list(item).expect(item)[0];
            (selected.workload.name, selected.repeats, selected.warmups)
        };
        assert_eq!(times("readseq"), ("readseq", 1, 0));
        assert_eq!(times("readseq[]"), ("readseq", 1, 0));
        assert_eq!(times("readseq[X3]"), ("readseq", 3, 0));
        assert_eq!(times("fillseq[X5-W1]"), ("fillseq", 5, 1));
        assert_eq!(times("fillseq[W2-X4]"), ("fillseq", 4, 2));
        for wrong in ["readseq[X0]", "readseq[X", "readseq[Y3]", "readseq[X-W1]", "readseq[X3]]"] {
            assert!(message(wrong).contains("NAME[X5]"), "{wrong}");
        }
        assert!(message("readseq[X\u{e9}]").contains("NAME[X5]"));
    }
}
