//! A soak test for the epoch clock: its cost while a guest sleeps, and that its thread parks when
//! no call runs.

use std::fs;
use std::time::{Duration, Instant};

use palisade::{Call, plugins::Shipped};
use serde_json::json;

use super::Report;
use crate::Stage;
use crate::case::block_on;
use crate::guest::HOSTILE_ABUSE;

/// The name of the clock's thread.
const NAME: &str = "palisade-clock";
/// The maximum processor time of the clock, in thousandths of a core; four times as much without
/// optimization.
const SHARE: u32 = if cfg!(debug_assertions) { 20 } else { 5 };
/// The maximum time until the clock parks after the last call, with a margin for a busy machine.
const STOPPING: Duration = Duration::from_secs(10);
/// The maximum time of a call beyond its sleep.
const PATIENCE: Duration = Duration::from_secs(20);
/// The time without processor use after which the clock counts as parked: many of its ticks.
const STILL: Duration = Duration::from_millis(300);

/// Makes a call that sleeps for `seconds`, and measures the clock during and after the call.
///
/// # Panics
///
/// If the host cannot be built, or there is no clock thread.
pub fn clock(seconds: usize) -> Report {
    let stage = Stage::new(&[HOSTILE_ABUSE], |builder| builder.shipped(Shipped::LeftOut));
    let sleep = |time: Duration| {
        let amount = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let call = Call::new("abuse", json!({"how": "sleep", "amount": amount}))
            .with_timeout(time + PATIENCE);
        assert!(block_on(stage.host.dispatch(stage.host.session(), call)).is_success());
    };
    sleep(Duration::from_millis(1));
    let (start, before) = (Instant::now(), spent());
    sleep(Duration::from_secs(seconds as u64));
    let (took, used) = (start.elapsed(), spent().saturating_sub(before));
    let parked = stands_still();
    Report::new(&format!("{used:?} of {took:?}"))
        .bound(&format!("at most {SHARE} thousandths of a core"), used * 1000 <= took * SHARE)
        .bound("parked when no call runs", parked)
}

/// Returns the processor time of the clock's thread.
fn spent() -> Duration {
    let text = proc_file("schedstat");
    let nanos = text.split_whitespace().next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanos.expect("`/proc` can be read"))
}

/// Returns true if the clock parks in time.
fn stands_still() -> bool {
    let (deadline, switches) = (Instant::now() + STOPPING, || proc_file("schedstat"));
    while Instant::now() < deadline {
        let seen = switches();
        std::thread::park_timeout(STILL);
        if switches() == seen {
            return true;
        }
    }
    false
}

/// Reads a file of the clock's thread in `/proc`.
fn proc_file(name: &str) -> String {
    let threads = fs::read_dir("/proc/self/task")
        .expect("`/proc` can be read")
        .flatten()
        .map(|entry| entry.path());
    let is_clock = |path: &std::path::PathBuf| {
        fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim() == NAME)
    };
    let mut clocks = threads.filter(is_clock);
    let path = clocks.next().expect("the clock has a thread");
    fs::read_to_string(path.join(name)).expect("`/proc` can be read")
}
