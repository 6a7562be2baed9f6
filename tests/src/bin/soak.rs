//! The long runs, by hand: `cargo xtask soak [N] [RUN…]`. Each prints its numbers, and the program ends with an error where a bound does not hold.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers, which prints what it has measured"
)]

use std::process::ExitCode;
use std::time::Instant;

use palisade_tests::soak::{RUNS, Run};

/// What was asked for: which part of the full length, and of which runs.
struct Asked {
    part: usize,
    runs: Vec<Run>,
}

fn main() -> ExitCode {
    let Some(asked) = asked(std::env::args().skip(1)) else {
        eprintln!("soak [N] [RUN…]: the N-th part of the full length, of these runs or of all:");
        RUNS.iter().for_each(|run| eprintln!("  {:<14}{} {}", run.name, run.full, run.what));
        return ExitCode::from(2);
    };
    // Each is made, whatever came of those before it.
    let broken = asked.runs.iter().filter(|run| !holds(run, asked.part)).count();
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// `None` where it makes no sense.
fn asked(words: impl Iterator<Item = String>) -> Option<Asked> {
    let mut words = words.peekable();
    let part = words.peek().and_then(|word| word.parse().ok());
    if part.is_some() {
        words.next();
    }
    let named = |word: String| RUNS.into_iter().find(|run| run.name == word);
    let runs = words.map(named).collect::<Option<Vec<Run>>>()?;
    let runs = if runs.is_empty() { RUNS.to_vec() } else { runs };
    Some(Asked { part: part.unwrap_or(1), runs }).filter(|asked| asked.part > 0)
}

fn holds(run: &Run, part: usize) -> bool {
    let (length, start) = ((run.full / part).max(run.least), Instant::now());
    println!("{}: {length} {}", run.name, run.what);
    let report = (run.go)(length);
    report.figures.iter().for_each(|figures| println!("  {figures}"));
    for (bound, holds) in &report.bounds {
        println!("  {bound}: {}", if *holds { "yes" } else { "NO" });
    }
    println!("  in {:.1?}", start.elapsed());
    report.broken().is_empty()
}
