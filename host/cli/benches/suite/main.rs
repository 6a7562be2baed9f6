//! Measures the overhead of Palisade on the same guests in one run: hand-written wasmtime at its
//! best settings, the library, the program, and a spawned process.
//!
//! `cargo bench` runs every group in some minutes, `cargo bench -- start memory` those two. Only
//! ratios within a run are comparable, since machines differ and are noisy. The contestants run in
//! alternating blocks, so that a change of the machine's load affects all of them.

mod authors;
mod callers;
mod calls;
mod clients;
mod counted;
mod fair;
mod floor;
mod guests;
mod hostile;
mod memory;
mod programs;
mod report;
mod road;
mod search;
mod server;
mod spawned;
mod start;
mod world;

use std::process::ExitCode;
use world::World;

/// A group: its name, its description and its function.
type Group = (&'static str, &'static str, fn(&World));

/// The groups with their descriptions.
const GROUPS: [Group; 12] = [
    ("calls", "echo, and reading 1 KiB and 1 MiB", calls::run),
    ("search", "a tree of 10,000 files, against ripgrep's own library", search::run),
    ("guests", "tools in Python and in JavaScript", guests::run),
    ("callers", "one caller and many", callers::run),
    ("hostile", "calls beside a plugin that computes for ever", hostile::run),
    ("programs", "programs that call tools, and their nested calls", programs::run),
    ("fair", "reads beside a hostile plugin at full load, and how late calls end", fair::run),
    ("server", "many sessions and subscribers of a running server", server::run),
    ("clients", "one client of a server beside another one at full load", clients::run),
    ("start", "1 to 1,000 plugins, compiled and from the cache", start::run),
    ("authors", "a new project in each language, to its first answer", authors::run),
    ("memory", "an idle plugin, a call in flight, a sleeping guest", memory::run),
];

#[allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints")]
fn main() -> ExitCode {
    // Skip options, such as the `--bench` that Cargo adds.
    let asked: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    match asked.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [memory::INSIDE, order @ ..] => return inside(memory::inside, order),
        [counted::INSIDE, order @ ..] => return inside(counted::inside, order),
        _ => {}
    }
    if let Some(unknown) = asked.iter().find(|word| !GROUPS.iter().any(|(name, ..)| name == word)) {
        let names = GROUPS.map(|(name, ..)| name).join(", ");
        eprintln!("there is no group `{unknown}`; there are {names}");
        return ExitCode::from(2);
    }
    let world = World::new();
    report::machine();
    for (name, what, run) in
        GROUPS.iter().filter(|(name, ..)| asked.is_empty() || asked.iter().any(|word| word == name))
    {
        println!("\n=== {name}: {what}");
        run(&world);
    }
    ExitCode::SUCCESS
}

/// Runs this program as one of its own child processes.
fn inside(part: fn(&[&str]), order: &[&str]) -> ExitCode {
    part(order);
    ExitCode::SUCCESS
}

/// Returns a current-thread runtime.
fn on_one_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Returns a runtime with a worker thread per core.
fn on_every_core() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime")
}
