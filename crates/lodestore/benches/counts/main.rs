//! The gate that does not depend on the machine's mood: instructions and
//! allocations of single steps, beside those of the last baseline.
//!
//! `./scripts/count`, or `cargo bench -p lodestore --features internals --bench counts -- ARGS`:
//! `check` (fails at 2 % more than `baseline.txt`), `write` (a new `baseline.txt`),
//! `run CASE` (one step, as it is run under valgrind).
//!
//! Both are of what runs within [`counted`], on the thread that calls it.
//! Callgrind, which collects the instructions, shows programs no AVX-512, so that
//! all machines take the same path.

mod cases;

use cases::CASES;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Write as _;
use std::process::{Command, ExitCode};

/// More than the baseline by this is a failure.
const TOLERANCE: f64 = 0.02;
const BASELINE_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/counts/baseline.txt");

struct CountingAllocator;

thread_local! {
    /// Those of this thread: what the background does at the same time is chance.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn add_allocation() {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
}

// SAFETY: everything is the system allocator's; only a number is added to.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add_allocation();
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_bytes: usize) -> *mut u8 {
        add_allocation();
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, new_bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The only function in which callgrind collects.
#[inline(never)]
fn counted(steps: &mut dyn FnMut()) {
    steps();
}

/// What one operation takes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Count {
    instructions: f64,
    allocations: f64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["run", name] => run(name),
        ["write"] => write(),
        ["check"] | [] => check(),
        _ => {
            eprintln!("usage: counts [check | write | run CASE]");
            ExitCode::from(2)
        }
    }
}

/// Runs one case and tells the allocations and operations that were counted.
fn run(name: &str) -> ExitCode {
    let Some((_, case)) = CASES.iter().find(|(known, _)| *known == name) else {
        eprintln!("no case {name:?}; there are: {:?}", CASES.map(|(name, _)| name));
        return ExitCode::from(2);
    };
    let (mut allocations, mut operations) = (0, 0);
    case(&mut |step_count, steps| {
        let before = ALLOCATIONS.get();
        counted(steps);
        allocations += ALLOCATIONS.get() - before;
        operations += step_count;
    });
    println!("{operations} {allocations}");
    ExitCode::SUCCESS
}

/// What decides which instructions there are: only counts of the same one can
/// be compared.
fn circumstances() -> Result<String, String> {
    let output = Command::new("rustc").arg("--version").output();
    let output = output.map_err(|error| format!("rustc is needed: {error}"))?;
    let compiler = String::from_utf8_lossy(&output.stdout);
    Ok(format!("{}, {}", compiler.trim(), processor()))
}

#[cfg(target_arch = "x86_64")]
fn processor() -> String {
    let features = [
        ("sse4.2", is_x86_feature_detected!("sse4.2")),
        ("pclmulqdq", is_x86_feature_detected!("pclmulqdq")),
        ("avx2", is_x86_feature_detected!("avx2")),
    ];
    let known = features.iter().filter(|(_, has)| *has).map(|(name, _)| *name);
    ["x86_64"].into_iter().chain(known).collect::<Vec<_>>().join(" ")
}

#[cfg(not(target_arch = "x86_64"))]
fn processor() -> String {
    std::env::consts::ARCH.to_string()
}

fn count(name: &str) -> Result<Count, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--toggle-collect=*counts*counted*"])
        .args(["--callgrind-out-file=/dev/null", "--"])
        .arg(program)
        .args(["run", name])
        .output()
        .map_err(|error| format!("valgrind is needed: {error}"))?;
    let (told, noted) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let collected = noted.lines().find_map(|line| line.split_once("Collected : "));
    let numbers: Vec<f64> = told.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    match (collected.and_then(|(_, n)| n.trim().parse::<f64>().ok()), &numbers[..]) {
        (Some(instructions), [operations, allocations]) => Ok(Count {
            instructions: instructions / operations,
            allocations: allocations / operations,
        }),
        _ => Err(format!("{name} was not counted:\n{told}{noted}")),
    }
}

fn count_all() -> Result<Vec<(&'static str, Count)>, String> {
    CASES.iter().map(|(name, _)| Ok((*name, count(name)?))).collect()
}

fn write() -> ExitCode {
    let (made_by, counts) = match (circumstances(), count_all()) {
        (Ok(made_by), Ok(counts)) => (made_by, counts),
        (Err(what), _) | (_, Err(what)) => return fail(&what),
    };
    let mut text = format!("# {made_by}\n# case, instructions and allocations an operation\n");
    for (name, count) in counts {
        writeln!(text, "{name:<22} {:>10.2} {:>8.4}", count.instructions, count.allocations)
            .expect("a string takes all");
    }
    match std::fs::write(BASELINE_FILE, text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{BASELINE_FILE}: {error}")),
    }
}

/// The circumstances and the counts of the file.
fn baseline() -> Result<(String, Vec<(String, Count)>), String> {
    let text = std::fs::read_to_string(BASELINE_FILE)
        .map_err(|error| format!("{BASELINE_FILE}: {error}"))?;
    let made_by = text.lines().next().unwrap_or_default().trim_start_matches("# ").to_string();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let counts: Result<_, String> = lines
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |i: usize| words.get(i).and_then(|word| word.parse().ok());
            match (words.first(), number(1), number(2)) {
                (Some(name), Some(instructions), Some(allocations)) => {
                    Ok((name.to_string(), Count { instructions, allocations }))
                }
                _ => Err(format!("{BASELINE_FILE}: {line:?} is no count")),
            }
        })
        .collect();
    Ok((made_by, counts?))
}

fn check() -> ExitCode {
    let ((made_by, before), circumstances) = match (baseline(), circumstances()) {
        (Ok(before), Ok(now)) => (before, now),
        (Err(what), _) | (_, Err(what)) => return fail(&what),
    };
    let now = match count_all() {
        Ok(now) => now,
        Err(what) => return fail(&what),
    };
    println!("{:<22} {:>12} {:>12} {:>8} {:>18}", "", "baseline", "now", "", "allocations");
    let mut worse = Vec::new();
    for (name, count) in now {
        match before.iter().find(|(known, _)| known == name) {
            Some((_, old)) => {
                if is_worse_told(name, *old, count) {
                    worse.push(name.to_string());
                }
            }
            None => worse.push(format!("{name}, which has no baseline")),
        }
    }
    if worse.is_empty() {
        return ExitCode::SUCCESS;
    }
    let what = format!("more than the baseline: {}", worse.join(", "));
    if circumstances == made_by {
        return fail(&what);
    }
    println!("{what}; no failure, as it was made by {made_by}, and this is {circumstances}");
    ExitCode::SUCCESS
}

/// Prints the line of a case. True if it takes more than it did.
fn is_worse_told(name: &str, old: Count, now: Count) -> bool {
    let change = now.instructions / old.instructions - 1.0;
    println!(
        "{name:<22} {:>12.2} {:>12.2} {:>+7.2}% {:>8.4} {:>8.4}",
        old.instructions,
        now.instructions,
        change * 100.0,
        old.allocations,
        now.allocations,
    );
    // The file keeps four decimals.
    change > TOLERANCE || now.allocations > old.allocations * (1.0 + TOLERANCE) + 1e-4
}

fn fail(what: &str) -> ExitCode {
    eprintln!("counts: {what}");
    ExitCode::FAILURE
}
