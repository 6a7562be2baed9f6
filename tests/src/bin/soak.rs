//! Runs the soak tests by hand: `cargo xtask soak [--minutes N] [RUN…]`. Prints the figures of each
//! run, and fails if a bound does not hold.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers, which prints what it has measured"
)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use palisade_tests::soak::{RUNS, Run, Tried, plan};

/// The parsed command line: the time budget, if one is given, and the runs to make.
struct Options {
    time: Option<Duration>,
    runs: Vec<Run>,
}

fn main() -> ExitCode {
    let Some(options) = parse(std::env::args().skip(1)) else {
        eprintln!(
            "soak [--minutes N] [RUN…]: these runs or all, at full length or as long as there is time for:"
        );
        RUNS.iter().for_each(|run| eprintln!("  {:<14}{} {}", run.name, run.full, run.what));
        return ExitCode::from(2);
    };
    let counts = match options.time {
        Some(time) => planned(&options.runs, time),
        None => options.runs.iter().map(|run| run.full).collect(),
    };
    let start = Instant::now();
    // Run all of them: a broken bound does not end the program early.
    let broken: Vec<&str> = options
        .runs
        .iter()
        .zip(counts)
        .filter(|(run, count)| !holds(run, *count))
        .map(|(run, _)| run.name)
        .collect();
    println!("{} runs in {:.0?}; {}", options.runs.len(), start.elapsed(), verdict(&broken));
    if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn verdict(broken: &[&str]) -> String {
    if broken.is_empty() {
        "every bound holds".to_owned()
    } else {
        format!("a bound is broken: {}", broken.join(", "))
    }
}

/// Returns `None` if the arguments are invalid.
fn parse(words: impl Iterator<Item = String>) -> Option<Options> {
    let mut words = words.peekable();
    let mut time = None;
    if words.next_if(|word| word == "--minutes").is_some() {
        let minutes: u64 = words.next()?.parse().ok()?;
        time = Some(Duration::from_secs(minutes.checked_mul(60)?));
    }
    let named = |word: String| RUNS.into_iter().find(|run| run.name == word);
    let runs = words.map(named).collect::<Option<Vec<Run>>>()?;
    let runs = if runs.is_empty() { RUNS.to_vec() } else { runs };
    Some(Options { time, runs })
}

/// Makes each run once at its smallest count, and divides the remaining time among the runs.
fn planned(runs: &[Run], time: Duration) -> Vec<usize> {
    let start = Instant::now();
    let tried: Vec<Tried> = runs.iter().map(|run| tried(*run)).collect();
    plan(&tried, time.saturating_sub(start.elapsed()))
}

fn tried(run: Run) -> Tried {
    let start = Instant::now();
    // The trial only measures time: the bounds are checked in the run that counts.
    let _ = (run.go)(run.least);
    let took = start.elapsed();
    println!("{}: {} take {took:.1?}", run.name, run.least);
    Tried { run, took }
}

fn holds(run: &Run, count: usize) -> bool {
    let start = Instant::now();
    println!("{}: {count} of {} {}", run.name, run.full, run.what);
    let report = (run.go)(count);
    report.figures.iter().for_each(|figures| println!("  {figures}"));
    for (bound, holds) in &report.bounds {
        println!("  {bound}: {}", if *holds { "yes" } else { "NO" });
    }
    println!("  in {:.1?}", start.elapsed());
    report.broken().is_empty()
}
