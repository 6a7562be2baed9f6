//! The long runs, by hand: `cargo xtask soak`. Each prints its numbers and ends with an error where a bound does not hold.
#![allow(clippy::print_stdout, reason = "a program for developers, which prints what it has measured")]

use std::process::ExitCode;
use std::time::Duration;

use palisade_tests::oracle::Books;
use palisade_tests::soak::{BRIEF, Choice, Kind, Ran, Soak, expected, mixed};

/// How many calls are made before anything is counted.
const WARM: usize = 5_000;
/// How much memory may be held after a run that was not held after its first tenth.
const MEMORY: usize = 8 << 20;
/// How many mappings may differ.
const MAPS: usize = 16;

/// A long run: its name, how many calls at full length, of which kinds, and the time within which all but one of a hundred are done.
const RUNS: [(&str, usize, Choice, Option<Duration>); 5] = [
    ("echo", 1_000_000, |_| Kind::Echo, None),
    ("mixed", 100_000, mixed, None),
    ("timeouts", 100_000, |_| Kind::Slow, Some(Duration::from_millis(20 + 150))),
    ("cancellations", 100_000, |_| Kind::Cancelled, Some(Duration::from_millis(50))),
    ("refusals", 10_000, |_| Kind::Greedy, None),
];

fn main() -> ExitCode {
    // A part of the full length can be asked for: `soak 100` makes a hundredth of the calls.
    let part = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1).max(1);
    let soak = Soak::new();
    // What is made once, and the pool's places that are used first, come before anything is counted.
    let _ = soak.run(WARM, mixed);
    let held = RUNS.iter().filter(|run| !holds(&soak, run, part)).count() == 0;
    if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn holds(soak: &Soak, (name, calls, choice, bound): &(&str, usize, Choice, Option<Duration>), part: usize) -> bool {
    let calls = (calls / part).max(100);
    let first = soak.run(calls / 10, *choice);
    let before = Books::now();
    let middle = soak.run(calls - calls / 5, *choice);
    let last = soak.run(calls / 10, *choice);
    let left = before.settled(Duration::from_secs(1));
    let after = Books::now();
    let counted = [(calls / 10, &first), (calls - calls / 5, &middle), (calls / 10, &last)];
    let exact = counted.iter().all(|(calls, ran)| ran.classes == expected(*calls, *choice));
    let flat = left.is_empty() && after.memory <= before.memory + MEMORY && after.maps.abs_diff(before.maps) <= MAPS;
    let quick = bound.is_none_or(|bound| last.within(990) <= bound) && steady(&first, &last);
    println!(
        "{name}: {calls} calls, p50 {:?}, p99 {:?}; before {before:?}, after {after:?}",
        last.within(500),
        last.within(990)
    );
    for (what, right) in
        [("every class as often as it must", exact), ("nothing grew", flat), ("no slower than it may be", quick)]
    {
        println!("  {what}: {}", if right { "yes" } else { "NO" });
    }
    exact && flat && quick
}

/// Whether the last calls are about as quick as the first; what waits for a clock is left out.
fn steady(first: &Ran, last: &Ran) -> bool {
    first.within(990) >= BRIEF || last.within(990) <= first.within(990).mul_f64(1.1) + Duration::from_millis(1)
}
