//! Calls for counting instructions: `cargo xtask instructions` runs this program under callgrind
//! with few and with many calls and takes the difference.

use crate::floor::Floor;
use crate::road::Road;
use crate::world::World;
use palisade::json;

/// The argument that selects this mode; the host, the tool and the number of calls follow.
pub(crate) const INSIDE: &str = "counted";

/// Runs the calls of this mode.
pub(crate) fn inside(order: &[&str]) {
    let [host, tool, count] = order else {
        panic!("which host, which tool and how many calls is not said")
    };
    let count = count.parse().expect("a number");
    // `large` reads 1 MiB, for a profiler: nearly all of its time is spent on copies and page
    // faults.
    let (tool, input) = match *tool {
        "echo" => ("echo", json!({"text": "hello"})),
        "large" => ("read", json!({"path": "large.txt"})),
        "read" | "read_file" => (*tool, json!({"path": "small.txt"})),
        other => panic!("there is no input for `{other}`"),
    };
    let (world, input) = (World::new(), input.to_string());
    crate::on_one_thread().block_on(async {
        match *host {
            "floor" => {
                let bytes = std::fs::read(palisade_tests::guest::BENCH_CALLS.file())
                    .expect("the benchmark's guest");
                let floor = Floor::new(&world)
                    .with(&["echo", "read"], &bytes)
                    .with_shipped("files", &["read_file"]);
                for _ in 0..count {
                    floor.call(tool, &input).await;
                }
            }
            _ => {
                let road = Road::of_one_tool(&world, tool);
                for _ in 0..count {
                    road.call(tool, &input).await;
                }
            }
        }
    });
}
