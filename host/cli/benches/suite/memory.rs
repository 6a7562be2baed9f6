//! Measures the memory of an idle plugin, of a call in flight and of a sleeping guest, each in a
//! fresh child process.

use crate::report::{self, size};
use crate::road::Road;
use crate::start;
use crate::world::World;
use palisade::HostBuilder;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The argument that selects the mode of the child process.
pub(crate) const INSIDE: &str = "memory-inside";
/// The timeout for the start of the guests on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A measurement, with the parameters of its child process.
struct Order<'a> {
    name: &'a str,
    /// `idle`, or the tool that is called concurrently.
    what: &'a str,
    count: usize,
    /// A plugin, or a directory of plugins.
    plugins: PathBuf,
}

pub(crate) fn run(world: &World) {
    if !Path::new("/proc/self/smaps_rollup").exists() {
        return report::skipped(
            "memory",
            "this system does not say what a process holds (`/proc/self/smaps_rollup`)",
        );
    }
    let idle = start::directory(100);
    let [computing, sleeping] =
        [palisade_tests::guest::CANCEL_COMPUTE, palisade_tests::guest::CANCEL_SLEEP];
    report::row("\n", &["each", "private of it", "how many"].map(str::to_owned));
    measure(
        world,
        &Order {
            name: "an idle plugin",
            what: "idle",
            count: 100,
            plugins: idle.path().to_owned(),
        },
    );
    measure(
        world,
        &Order { name: "a call in flight", what: "compute", count: 64, plugins: computing.file() },
    );
    measure(
        world,
        &Order { name: "a sleeping guest", what: "sleep", count: 128, plugins: sleeping.file() },
    );
    for language in ["python", "javascript"] {
        match world.interpreted(language) {
            Ok(plugins) => {
                let name = &format!("an idle plugin in {language}");
                measure(world, &Order { name, what: "idle", count: 1, plugins });
            }
            Err(why) => report::skipped(&format!("an idle plugin in {language}"), &why),
        }
    }
    if let Ok(plugins) = world.interpreted("python") {
        measure(
            world,
            &Order { name: "a sleeping guest in python", what: "python_echo", count: 32, plugins },
        );
    }
}

fn measure(world: &World, order: &Order<'_>) {
    // Fills the cache first, so that the memory for compilation is not attributed to a plugin.
    drop(loading(world, &order.plugins).build().expect("a host"));
    let own = std::env::current_exe().expect("a program knows where it lies");
    let mut inside = Command::new(own);
    let output =
        inside.args([INSIDE, order.what, &order.count.to_string()]).arg(&order.plugins).output();
    let output = output.expect("this program starts");
    let told = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> =
        told.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    let [all, private] = numbers[..] else { panic!("{}", String::from_utf8_lossy(&output.stderr)) };
    let each = |sum: f64| size(sum / order.count as f64);
    report::row(&format!("  {}", order.name), &[each(all), each(private), order.count.to_string()]);
}

fn loading(world: &World, plugins: &Path) -> HostBuilder {
    let host = world.host();
    if plugins.is_dir() { host.plugins(plugins) } else { host.plugin_file(plugins) }
}

/// Runs the child process: prints its growth in resident and in private memory, in bytes.
#[allow(clippy::print_stdout, reason = "this is how it answers")]
pub(crate) fn inside(order: &[&str]) {
    let [what, count, plugins] = order else { panic!("what to measure is not said") };
    let (world, count) = (World::new(), count.parse().expect("a number"));
    let runtime = crate::on_every_core();
    // Create the engine with its pool and make a first call, so that both are in the base figure.
    let first = Road::new(&world);
    runtime.block_on(first.call("echo", r#"{"text": "hello"}"#));
    let before = held();
    let after = if *what == "idle" {
        let road = Road::with(loading(&world, Path::new(plugins)));
        let after = held();
        drop(road);
        after
    } else {
        in_flight(&world, &runtime, what, count, Path::new(plugins))
    };
    println!("{} {}", after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
    // Exit without waiting for the guests, which sleep for an hour.
    std::process::exit(0);
}

/// Starts concurrent calls and measures while they run.
fn in_flight(
    world: &World,
    runtime: &tokio::runtime::Runtime,
    tool: &str,
    count: u64,
    plugins: &Path,
) -> (u64, u64) {
    let road = Arc::new(Road::with(loading(world, plugins)));
    for _ in 0..count {
        let (road, tool) = (road.clone(), tool.to_owned());
        runtime.spawn(async move { road.call(&tool, r#"{"text": "hello", "sleep": true}"#).await });
    }
    let begun = Instant::now();
    while road.started() < count {
        assert!(begun.elapsed() < PATIENCE, "{} of {count} guests have started", road.started());
        std::thread::sleep(Duration::from_millis(10));
    }
    held()
}

/// Returns the resident and the private dirty memory of this process, in bytes.
fn held() -> (u64, u64) {
    let told = std::fs::read_to_string("/proc/self/smaps_rollup").expect("the kernel tells");
    let field = |name: &str| -> u64 {
        let line = told.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10
    };
    (field("Rss:"), field("Private_Dirty:"))
}
