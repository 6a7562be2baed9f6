//! What Palisade costs, in one run and on the same guests: hand-written wasmtime at its best settings, Palisade's library, its program, a spawned process.
//!
//! `cargo bench` runs every group in some minutes, `cargo bench -- start memory` those two. Ratios within a run are what can be compared, since machines
//! differ and are noisy; what is compared is taken in turns, a block of each after the other, so that a change of the machine's mood hits all alike.

mod callers;
mod calls;
mod counted;
mod fair;
mod floor;
mod guests;
mod hostile;
mod memory;
mod report;
mod road;
mod search;
mod spawned;
mod start;
mod world;

use std::process::ExitCode;
use world::World;

/// A group: its name, what it shows, and what runs it.
type Group = (&'static str, &'static str, fn(&World));

/// The groups, each with what it measures.
const GROUPS: [Group; 8] = [
    ("calls", "echo, and reading 1 KiB and 1 MiB", calls::run),
    ("search", "a tree of 10,000 files, against ripgrep's own library", search::run),
    ("guests", "tools in Python and in JavaScript", guests::run),
    ("callers", "one caller and many", callers::run),
    ("hostile", "calls beside a plugin that computes for ever", hostile::run),
    ("fair", "reads beside a hostile plugin at full load, and how late calls end", fair::run),
    ("start", "1 to 1,000 plugins, compiled and from the cache", start::run),
    ("memory", "an idle plugin, a call in flight, a sleeping guest", memory::run),
];

#[allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints")]
fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let asked: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
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

/// This program as one of its own processes.
fn inside(part: fn(&[&str]), order: &[&str]) -> ExitCode {
    part(order);
    ExitCode::SUCCESS
}

/// A runtime on this thread alone.
fn on_one_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// A runtime with a thread for each core.
fn on_every_core() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime")
}
