//! What a call costs: hand-written wasmtime, the same call through Palisade, and a spawned process, in one run.
//!
//! `cargo bench` prints medians and ratios; ratios of one run are what can be compared, since machines differ and are noisy. All figures of a group are
//! taken in turns, a block of each after the other, so that a change of the machine's mood hits all alike.

mod floor;
mod report;
mod road;
mod spawned;

use palisade::json;
use report::Series;
use std::path::Path;

/// Calls of each kind.
const CALLS: usize = 6_000;
/// Calls of each kind in one turn.
const BLOCK: usize = 250;
/// Processes spawned: they are a thousand times slower.
const SPAWNS: usize = 200;

fn main() {
    let workspace = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(workspace.path().join("floor.txt"), "seven hundred bytes of text\n".repeat(25))
        .expect("a file of 700 bytes");
    std::fs::write(workspace.path().join("large.txt"), "x".repeat(1 << 20)).expect("a file of 1 MiB");
    report::machine();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(single(workspace.path()));
    spawn(workspace.path());
    throughput(workspace.path());
}

/// One caller: the floor and the road, in turns.
async fn single(workspace: &Path) {
    let floor = floor::Floor::new(workspace);
    alone(&floor).await;
    let road = road::Road::new(workspace);
    for (name, tool, input) in [
        ("echo", "echo", json!({"text": "hello"})),
        ("read 700 B", "read", json!({"path": "floor.txt"})),
        ("shipped read_file 700 B", "read_file", json!({"path": "floor.txt"})),
        ("shipped read_file 1 MiB", "read_file", json!({"path": "large.txt", "limit": 1 << 20})),
    ] {
        let text = input.to_string();
        let (mut by_hand, mut through) = (Series::new("hand-written wasmtime"), Series::new("palisade"));
        let rounds = if name.contains("MiB") { CALLS / BLOCK / 10 } else { CALLS / BLOCK };
        for round in 0..=rounds {
            for _ in 0..BLOCK {
                by_hand.time(round > 0, floor.call(tool, &text)).await;
            }
            for _ in 0..BLOCK {
                through.time(round > 0, road.call(tool, &text)).await;
            }
        }
        report::group(name, &[by_hand, through]);
    }
}

/// The floor with nothing beside it in the process: what to hold against another hand-written program.
async fn alone(floor: &floor::Floor) {
    let (mut echo, mut read) = (Series::new("echo"), Series::new("read 700 B"));
    let (text, path) = (json!({"text": "hello"}).to_string(), json!({"path": "floor.txt"}).to_string());
    for call in 0..2 * CALLS {
        echo.time(call >= CALLS, floor.call("echo", &text)).await;
    }
    for call in 0..2 * CALLS {
        read.time(call >= CALLS, floor.call("read", &path)).await;
    }
    report::group("hand-written wasmtime, alone", &[echo, read]);
}

/// A process for each call: what one does without a sandbox, and the program itself.
fn spawn(workspace: &Path) {
    let mut cat = Series::new("spawned cat");
    let mut program = Series::new("spawned palisade call");
    for _ in 0..SPAWNS {
        cat.run(|| spawned::cat(workspace));
        program.run(|| spawned::palisade(workspace));
    }
    report::group("read_file 700 B, a process each", &[cat, program]);
}

/// One caller and two, on two threads: what the second one adds.
fn throughput(workspace: &Path) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let floor = std::sync::Arc::new(floor::Floor::new(workspace));
    let road = std::sync::Arc::new(road::Road::new(workspace));
    let text = json!({"path": "floor.txt"}).to_string();
    for callers in [1, 2] {
        let hand = {
            let (floor, text) = (floor.clone(), text.clone());
            let call = move || {
                let (floor, text) = (floor.clone(), text.clone());
                async move { _ = floor.call("read", &text).await }
            };
            runtime.block_on(report::rate(callers, CALLS, call))
        };
        let through = {
            let (road, text) = (road.clone(), text.clone());
            let call = move || {
                let (road, text) = (road.clone(), text.clone());
                async move { _ = road.call("read", &text).await }
            };
            runtime.block_on(report::rate(callers, CALLS, call))
        };
        report::rates(callers, hand, through);
    }
}
