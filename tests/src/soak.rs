//! The soak tests: each repeats one operation many times, and reports whether its bounds hold.
//! `cargo xtask soak` runs them at full length, the suites at a small count.

mod calls;
mod clock;
mod components;
mod deadline;
mod descriptors;
mod expanding;
mod floods;
mod kills;
mod loads;
mod pairs;
mod plan;
mod refusals;
mod sleepers;

use crate::oracle::Resources;

pub use calls::{BRIEF, Choice, Kind, Ran, Soak, expected, mixed};
pub use clock::clock;
pub use components::components;
pub use deadline::{Deadline, Ended};
pub use descriptors::descriptors;
pub use expanding::{inputs, renames, results};
pub use floods::floods;
pub use kills::kills;
pub use loads::loads;
pub use pairs::pairs;
pub use plan::{Tried, plan};
pub use refusals::refusals;
pub use sleepers::sleepers;

/// The tolerated growth of memory in a run, in bytes.
const MEMORY: usize = 8 << 20;
/// The tolerated difference in mappings. Memory that is decommitted page by page splits and merges
/// mappings.
const MAPS: usize = 16;

/// The number of mappings of a slot of the pooling allocator after its first use: the image of the
/// memory, the written pages, the accessible and inaccessible rest, and the stack. At most 5.75
/// were measured.
const MAPS_OF_A_PLACE: usize = 6;

/// A soak test.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// The name on the command line.
    pub name: &'static str,
    /// The description of the repeated operation.
    pub what: &'static str,
    /// The number of repetitions at full length.
    pub full: usize,
    /// The minimum number of repetitions for the bounds to be meaningful.
    pub least: usize,
    /// The function that runs the test, given the number of repetitions.
    pub go: fn(usize) -> Report,
}

/// All soak tests.
pub const RUNS: [Run; 19] = [
    run("echo", "calls that say something, 8 at once", 1_000_000, 10_000, calls::echo),
    run("latency", "calls that say something, one at a time", 100_000, 1_000, calls::latency),
    run("mixed", "calls of every kind, 8 at once", 100_000, 1_000, calls::all_kinds),
    run("timeouts", "calls that run out of time, 8 at once", 100_000, 1_000, calls::timeouts),
    run(
        "cancellations",
        "calls that are cancelled, 8 at once",
        100_000,
        1_000,
        calls::cancellations,
    ),
    run("deadlines", "calls that end at their very deadline", 10_000, 400, deadline::deadlines),
    run("loads", "plugins loaded, called and dropped, 20 different ones", 10_000, 1_000, loads),
    run(
        "refusals",
        "calls that want more than they may have, of each thing in turn",
        10_000,
        200,
        refusals,
    ),
    run("sleepers", "rounds of 128 guests that sleep at once", 1_000, 2, sleepers),
    run(
        "descriptors",
        "rounds of 128 guests that hold all the files that they may",
        20,
        1,
        descriptors,
    ),
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

const fn run(
    name: &'static str,
    what: &'static str,
    full: usize,
    least: usize,
    go: fn(usize) -> Report,
) -> Run {
    Run { name, what, full, least, go }
}

/// The result of a soak test.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Report {
    /// The measurements.
    pub figures: Vec<String>,
    /// Each bound with its outcome: true if it holds.
    pub bounds: Vec<(String, bool)>,
}

impl Report {
    /// Creates a report with these figures.
    pub fn new(figures: &str) -> Self {
        Self { figures: vec![figures.to_owned()], bounds: Vec::new() }
    }

    /// Adds figures.
    pub fn figure(mut self, figures: &str) -> Self {
        self.figures.push(figures.to_owned());
        self
    }

    /// Adds a bound and its outcome.
    pub fn bound(mut self, bound: &str, holds: bool) -> Self {
        self.bounds.push((bound.to_owned(), holds));
        self
    }

    /// Adds the bound that the resources of this process have not grown, apart from this much
    /// memory.
    fn kept(self, before: Resources, memory: usize) -> Self {
        let has_grown = before.have_grown(memory);
        self.figure(&format!("before {before:?}, after {:?}", Resources::now()))
            .bound("nothing grew", !has_grown)
    }

    /// Adds the bound of [`kept`](Self::kept), and the bound that the number of mappings is nearly
    /// the same.
    fn held(self, before: Resources, memory: usize) -> Self {
        let report = self.kept(before, memory);
        report.bound("as many mappings", Resources::now().maps.abs_diff(before.maps) <= MAPS)
    }

    /// Adds the bound that the mappings have not grown by more than those of `places` slots of the
    /// pooling allocator. `unused` was measured before most slots were used.
    fn mapped(self, unused: Resources, places: usize) -> Self {
        let (now, most) = (Resources::now().maps, unused.maps + MAPS + MAPS_OF_A_PLACE * places);
        self.figure(&format!(
            "{now} mappings, {} before most places of the pool were used",
            unused.maps
        ))
        .bound(&format!("at most {most} mappings, a full pool's"), now <= most)
    }

    /// Returns the violated bounds.
    #[must_use]
    pub fn broken(&self) -> Vec<&str> {
        self.bounds.iter().filter(|(_, holds)| !holds).map(|(bound, _)| bound.as_str()).collect()
    }
}
