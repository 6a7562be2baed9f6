//! Takes as much time as it is told to.

use std::time::{Duration, Instant};

use palisade_guest::tool;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// How long, in milliseconds.
    ms: u64,
}

/// Computes for so long.
#[tool(side_effects = "none")]
fn compute(args: Args) -> String {
    let (start, mut steps) = (Instant::now(), 0_u64);
    while start.elapsed() < Duration::from_millis(args.ms) {
        // A long way between two looks at the clock, with no call of the host in it.
        for step in 0..100_000_u64 {
            steps = std::hint::black_box(steps ^ step);
        }
    }
    "computed".to_owned()
}

/// Sleeps for so long.
#[tool(side_effects = "none")]
fn sleep(args: Args) -> String {
    std::thread::sleep(Duration::from_millis(args.ms));
    "slept".to_owned()
}

/// Has a time of its own that is shorter than the host's.
#[tool(side_effects = "none", timeout = "100ms")]
fn impatient(args: Args) -> String {
    sleep(args)
}

/// Asks for more time than a tool of its class gets.
#[tool(side_effects = "none", timeout = "900s")]
fn patient(args: Args) -> String {
    sleep(args)
}

palisade_guest::export!(compute, sleep, impatient, patient);
