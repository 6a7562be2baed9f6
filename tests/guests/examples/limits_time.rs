//! A guest that takes a given amount of time.

use std::time::{Duration, Instant};

use palisade_guest::tool;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The duration, in milliseconds.
    ms: u64,
}

/// Computes for the duration.
#[tool(side_effects = "none")]
fn compute(args: Args) -> String {
    let (start, mut steps) = (Instant::now(), 0_u64);
    while start.elapsed() < Duration::from_millis(args.ms) {
        // A long loop between two clock reads, without any host call.
        for step in 0..100_000_u64 {
            steps = std::hint::black_box(steps ^ step);
        }
    }
    "computed".to_owned()
}

/// Sleeps for the duration.
#[tool(side_effects = "none")]
fn sleep(args: Args) -> String {
    std::thread::sleep(Duration::from_millis(args.ms));
    "slept".to_owned()
}

/// Declares a timeout that is shorter than the host's.
#[tool(side_effects = "none", timeout = "100ms")]
fn impatient(args: Args) -> String {
    sleep(args)
}

/// Declares a timeout above that of its class.
#[tool(side_effects = "none", timeout = "900s")]
fn patient(args: Args) -> String {
    sleep(args)
}

palisade_guest::export!(compute, sleep, impatient, patient);
