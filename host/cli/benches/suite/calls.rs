//! Measures single calls: hand-written wasmtime and the library in turns, then one process per
//! call.

use crate::floor::Floor;
use crate::report::{self, Series};
use crate::road::Road;
use crate::spawned;
use crate::world::World;
use palisade::plugins::Shipped;
use palisade::sandbox::Adaptation;
use palisade::{SideEffects, json};

/// Calls of each kind.
const CALLS: usize = 6_000;
/// Calls of each kind in one turn.
const BLOCK: usize = 250;
/// Processes of each kind: they are a thousand times slower.
const SPAWNS: usize = 30;

pub(crate) fn run(world: &World) {
    let guest = palisade_tests::guest::BENCH_CALLS;
    let bytes = std::fs::read(guest.file()).expect("the benchmark's guest");
    let floor =
        Floor::new(world).with(&["echo", "read"], &bytes).with_shipped("files", &["read_file"]);
    crate::on_one_thread().block_on(alone(&floor));
    let road = Road::new(world);
    for (name, tool, input, calls) in [
        ("echo", "echo", json!({"text": "hello"}), CALLS),
        ("read 1 KiB", "read", json!({"path": "small.txt"}), CALLS),
        ("read 1 MiB", "read", json!({"path": "large.txt"}), CALLS / 10),
        ("shipped read_file, 1 KiB", "read_file", json!({"path": "small.txt"}), CALLS),
        (
            "shipped read_file, 1 MiB",
            "read_file",
            json!({"path": "large.txt", "limit": 1 << 20}),
            CALLS / 10,
        ),
    ] {
        let text = input.to_string();
        let [by_hand, through] =
            crate::on_one_thread().block_on(both(&floor, &road, tool, &text, calls));
        let mut program = Series::new("palisade, its program");
        let mut process = Series::new("a spawned process, `cat`");
        let mut natively = Series::new("a native read, one UTF-8 check");
        let file = world.workspace().join(input["path"].as_str().unwrap_or("small.txt"));
        for _ in 0..SPAWNS {
            let plugins = guest.directory();
            program.run(|| {
                spawned::palisade(
                    world,
                    [
                        "call".as_ref(),
                        tool.as_ref(),
                        text.as_ref(),
                        "--plugins".as_ref(),
                        plugins.as_os_str(),
                    ],
                )
            });
            process.run(|| spawned::run("cat", [&file]));
        }
        let reads = if tool == "echo" { 0 } else { calls / 10 };
        for _ in 0..reads {
            natively.run(|| std::fs::read_to_string(&file).expect("a text").len());
        }
        let all = [by_hand, through, program, process, natively];
        report::group(name, if reads == 0 { &all[..4] } else { &all });
    }
    crate::on_one_thread().block_on(of_another_world(world));
}

/// Compares the echo of a plugin with that of a component of another world.
async fn of_another_world(world: &World) {
    let class = Adaptation::new(SideEffects::None);
    let host = world.host().shipped(Shipped::LeftOut);
    let host = host.plugin_file(palisade_tests::guest::BENCH_CALLS.file());
    let road = Road::with(host.adapt(palisade_tests::guest::ADAPT_DEPOT.file(), class));
    let (mut plugin, mut adapted) = (Series::new("a plugin"), Series::new("an adapted component"));
    let text = json!({"text": "hello"}).to_string();
    for round in 0..=CALLS / BLOCK {
        for _ in 0..BLOCK {
            plugin.time(round > 0, road.call("echo", &text)).await;
        }
        for _ in 0..BLOCK {
            adapted.time(round > 0, road.call("echo_same_text", &text)).await;
        }
    }
    report::group("echo of another world", &[plugin, adapted]);
}

/// Runs the floor and the library in turns.
pub(crate) async fn both(
    floor: &Floor,
    road: &Road,
    tool: &str,
    input: &str,
    calls: usize,
) -> [Series; 2] {
    let (mut by_hand, mut through) =
        (Series::new("hand-written wasmtime"), Series::new("palisade, the library"));
    let block = BLOCK.min(calls.div_ceil(10));
    for round in 0..=calls.div_ceil(block) {
        for _ in 0..block {
            by_hand.time(round > 0, floor.call(tool, input)).await;
        }
        for _ in 0..block {
            through.time(round > 0, road.call(tool, input)).await;
        }
    }
    [by_hand, through]
}

/// Measures the floor with nothing else in the process, for comparison with other hand-written
/// programs.
async fn alone(floor: &Floor) {
    let (mut echo, mut read) = (Series::new("echo"), Series::new("read 1 KiB"));
    let (text, path) =
        (json!({"text": "hello"}).to_string(), json!({"path": "small.txt"}).to_string());
    for call in 0..2 * CALLS {
        echo.time(call >= CALLS, floor.call("echo", &text)).await;
    }
    for call in 0..2 * CALLS {
        read.time(call >= CALLS, floor.call("read", &path)).await;
    }
    report::group("hand-written wasmtime, alone", &[echo, read]);
}
