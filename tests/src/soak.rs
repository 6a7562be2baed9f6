//! The long runs: each does one thing very often, counts, and says whether its bounds hold. `cargo xtask soak` makes them at full length, the suites small.

mod calls;
mod clock;
mod components;
mod deadline;
mod descriptors;
mod floods;
mod kills;
mod loads;
mod pairs;
mod plan;
mod refusals;
mod sleepers;
mod swells;

use std::time::Duration;

use crate::oracle::Books;

pub use calls::{BRIEF, Choice, Kind, Ran, Soak, expected, mixed};
pub use clock::clock;
pub use components::components;
pub use deadline::{Deadline, Ended};
pub use descriptors::descriptors;
pub use floods::floods;
pub use kills::kills;
pub use loads::loads;
pub use pairs::pairs;
pub use plan::{Tried, plan};
pub use refusals::refusals;
pub use sleepers::sleepers;
pub use swells::{inputs, renames, results};

/// How much memory may be held after a run that was not held after its beginning, in bytes.
const MEMORY: usize = 8 << 20;
/// How many mappings may differ. Memory that is cleared page by page comes and goes in mappings of its own.
const MAPS: usize = 16;

/// How many mappings a place of the pool comes to when it is first used: the image of its memory, what was written there, what may be, what may not, and its
/// stack. Up to 5.75 were counted.
const MAPS_OF_A_PLACE: usize = 6;

/// A long run.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What is done.
    pub what: &'static str,
    /// How often, at full length.
    pub full: usize,
    /// How often at least: below that, the bounds say nothing.
    pub least: usize,
    /// Does it so often.
    pub go: fn(usize) -> Report,
}

/// All of them.
pub const RUNS: [Run; 19] = [
    run("echo", "calls that say something, 8 at once", 1_000_000, 10_000, calls::echo),
    run("latency", "calls that say something, one at a time", 100_000, 1_000, calls::latency),
    run("mixed", "calls of every kind, 8 at once", 100_000, 1_000, calls::all_kinds),
    run("timeouts", "calls that run out of time, 8 at once", 100_000, 1_000, calls::timeouts),
    run("cancellations", "calls that are cancelled, 8 at once", 100_000, 1_000, calls::cancellations),
    run("deadlines", "calls that end at their very deadline", 10_000, 400, deadline::deadlines),
    run("loads", "plugins loaded, called and dropped, 20 different ones", 10_000, 1_000, loads),
    run("refusals", "calls that want more than they may have, of each thing in turn", 10_000, 200, refusals),
    run("sleepers", "rounds of 128 guests that sleep at once", 1_000, 2, sleepers),
    run("descriptors", "rounds of 128 guests that hold all the files that they may", 20, 1, descriptors),
    run("floods", "rounds of a gibibyte of output and a million words of each kind", 20, 2, floods),
    run("results", "results that expand when they are read", 2_000, 5, results),
    run("inputs", "inputs that expand when they are read", 10_000, 20, inputs),
    run("renames", "calls of 4,200 renames below 126 directories", 200, 2, renames),
    run("pairs", "hostile schemas, each with a hostile input", 1_000_000, 2_000, pairs),
    run("components", "components that were cut, turned and moved", 1_000_000, 1_000, components),
    run("turned", "a valid plugin with bits turned", 50_000, 1_000, components::turned),
    run("kills", "programs killed while they write", 1_000, 10, kills),
    run("clock", "seconds in which a call sleeps", 60, 3, clock),
];

const fn run(name: &'static str, what: &'static str, full: usize, least: usize, go: fn(usize) -> Report) -> Run {
    Run { name, what, full, least, go }
}

/// What came of a long run.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Report {
    /// What was measured.
    pub figures: Vec<String>,
    /// Each bound, and whether it holds.
    pub bounds: Vec<(String, bool)>,
}

impl Report {
    /// A report that begins with these figures.
    pub fn new(figures: &str) -> Self {
        Self { figures: vec![figures.to_owned()], bounds: Vec::new() }
    }

    /// With more figures.
    pub fn figure(mut self, figures: &str) -> Self {
        self.figures.push(figures.to_owned());
        self
    }

    /// With a bound, and whether it holds.
    pub fn bound(mut self, bound: &str, holds: bool) -> Self {
        self.bounds.push((bound.to_owned(), holds));
        self
    }

    /// With the bound that this process holds what it held, but for so much memory.
    fn kept(self, before: Books, memory: usize) -> Self {
        // Threads, descriptors and memory take a moment to come back.
        let allowed = Books { memory: before.memory + memory, ..before };
        let left = allowed.settled(Duration::from_secs(1));
        self.figure(&format!("before {before:?}, after {:?}", Books::now())).bound("nothing grew", left.is_empty())
    }

    /// The same, and with the bound that it has as many mappings.
    fn held(self, before: Books, memory: usize) -> Self {
        let report = self.kept(before, memory);
        report.bound("as many mappings", Books::now().maps.abs_diff(before.maps) <= MAPS)
    }

    /// With the bound that there are no more mappings than so many places of the pool come to, before most of them were used there were these.
    fn mapped(self, unused: Books, places: usize) -> Self {
        let (now, most) = (Books::now().maps, unused.maps + MAPS + MAPS_OF_A_PLACE * places);
        self.figure(&format!("{now} mappings, {} before most places of the pool were used", unused.maps))
            .bound(&format!("at most {most} mappings, a full pool's"), now <= most)
    }

    /// The bounds that do not hold.
    #[must_use]
    pub fn broken(&self) -> Vec<&str> {
        self.bounds.iter().filter(|(_, holds)| !holds).map(|(bound, _)| bound.as_str()).collect()
    }
}
