//! Runs the official MCP conformance suite against `palisade serve`, with a plugin that provides
//! the tools that the suite expects.
//!
//! The suite is installed from npm, in the exact versions of `tests/conformance/package-lock.json`,
//! into a directory below the target directory, without install scripts; nothing else on the
//! machine changes. Without npm the run is skipped with a message. Each revision is tested with a
//! new server and must pass without a warning. There is no list of expected failures, only one of
//! features that are not implemented yet.

mod changes;
mod judgement;
mod requirements;
mod results;
mod server;
mod stage;
mod suite;

use crate::documents::Profile;
use crate::guests::{self, Request, Selection};
use crate::place::Place;
use crate::providers;
use anyhow::{Context as _, bail, ensure};
use changes::Changes;
use judgement::{Judgement, Scenario, Verbosity};
use requirements::Requirements;
use stage::Stage;
use std::collections::BTreeSet;
use std::path::PathBuf;
use suite::{Fetched, Suite};

/// A protocol revision, with the number of scenarios that it requires of a server.
struct Revision {
    name: &'static str,
    required: usize,
}

const REVISIONS: [Revision; 2] =
    [Revision { name: "2026-07-28", required: 37 }, Revision { name: "2025-11-25", required: 30 }];

/// Scenarios of features that are not implemented yet. A scenario that passes wherever it is
/// required must be removed; the list must end up empty.
const NOT_YET: &[&str] = &[];

/// The package of the guests.
const PACKAGE: &str = "palisade-test-guests";
/// The plugin that the suite calls.
const FIXTURE: &str = "mcp_conformance";
/// A plugin that is added and removed while the server runs, with a tool, documents and a prompt.
const VISITOR: &str = "mcp_visitor";

/// The timeout of a scenario, in milliseconds, enforced by the suite.
const SCENARIO: &str = "30000";

/// Runs the suite, or the scenarios named by the remaining arguments, in every revision.
pub(crate) fn run(place: &Place, profile: Profile) -> anyhow::Result<()> {
    let wanted = wanted(std::env::args().skip(2))?;
    let suite = match suite::fetch(place)? {
        Fetched::Here(suite) => suite,
        Fetched::OutOfReach(reason) => {
            println!("skipped: {reason}");
            return Ok(());
        }
    };
    let equipment = Equipment::assemble(place, profile, suite)?;
    let verbosity = if wanted.is_empty() { Verbosity::Faults } else { Verbosity::Everything };
    let mut judgement = Judgement::new(NOT_YET, verbosity);
    for revision in &REVISIONS {
        let scenarios = equipment.test_revision(revision, &wanted)?;
        judgement.add_revision(revision.name, scenarios);
    }
    let known: BTreeSet<String> = if wanted.is_empty() {
        NOT_YET.iter().map(|name| (*name).to_owned()).collect()
    } else {
        wanted
    };
    ensure!(
        judgement.knows_all(&known),
        "not all of these are scenarios of some revision: {known:?}; a full run lists them"
    );
    judgement.conclude()
}

/// Returns the named scenarios; empty for all.
fn wanted(arguments: impl Iterator<Item = String>) -> anyhow::Result<BTreeSet<String>> {
    let mut wanted = BTreeSet::new();
    for argument in arguments.filter(|argument| argument != "--debug") {
        ensure!(
            !argument.starts_with('-'),
            "there is no option `{argument}`; it takes --debug and names of scenarios"
        );
        wanted.insert(argument);
    }
    Ok(wanted)
}

/// The parts that all revisions share.
struct Equipment {
    suite: Suite,
    program: PathBuf,
    fixture: PathBuf,
    visitor: PathBuf,
    home: PathBuf,
}

impl Equipment {
    fn assemble(place: &Place, profile: Profile, suite: Suite) -> anyhow::Result<Self> {
        let program = providers::build(place, profile)?;
        let selection = Selection::Examples {
            package: PACKAGE,
            names: &[FIXTURE, VISITOR],
            features: &["guests"],
        };
        let request = Request { workspace: &place.root, target: &place.target, guests: selection };
        let mut built = guests::build(&request)?.into_iter().map(|guest| guest.path);
        let (Some(fixture), Some(visitor)) = (built.next(), built.next()) else {
            bail!("the guests {FIXTURE} and {VISITOR} were not built")
        };
        Ok(Self { suite, program, fixture, visitor, home: place.target.join("conformance") })
    }

    /// Runs the wanted scenarios of a revision against a new server.
    fn test_revision(
        &self,
        revision: &Revision,
        wanted: &BTreeSet<String>,
    ) -> anyhow::Result<Vec<Scenario>> {
        let requirements = self.suite.requirements(revision.name)?;
        ensure!(
            requirements.required.len() == revision.required,
            "{} requires {} scenarios in this suite, and {} are expected",
            revision.name,
            requirements.required.len(),
            revision.required
        );
        if !wanted.is_empty() && !requirements.all().any(|name| wanted.contains(name)) {
            return Ok(Vec::new());
        }
        let stage = Stage::make(&self.home, revision.name, &self.fixture, &self.visitor)?;
        server::warm(&self.program, &stage)?;
        let server = server::start(&self.program, &stage)?;
        let changes = Changes::follow(&stage)?;
        let finished = self.run_scenarios(revision, &requirements, wanted, &stage, server.url());
        // An error of the server is more informative than the suite's result.
        server.stop()?;
        changes.stop()?;
        finished
    }

    fn run_scenarios(
        &self,
        revision: &Revision,
        requirements: &Requirements,
        wanted: &BTreeSet<String>,
        stage: &Stage,
        url: &str,
    ) -> anyhow::Result<Vec<Scenario>> {
        let results = stage.results();
        let output = results.to_str().context("the path of the build directory is not UTF-8")?;
        let common = ["server", "--url", url, "--timeout", SCENARIO, "--output-dir", output];
        let run =
            |more: &[&str]| self.suite.run(&[&common[..], more].concat(), &stage.log("suite"));
        if wanted.is_empty() {
            let ended = run(&["--requirements", revision.name])?;
            let scenarios = judgement::gather(requirements, results::read(&results)?, |_| true);
            let agree = ended.success() == judgement::no_failure_in_required(&scenarios);
            ensure!(
                agree,
                "the suite ended with {ended}, which its results do not explain; see {}",
                stage.place()
            );
            return Ok(scenarios);
        }
        for scenario in requirements.all().filter(|name| wanted.contains(*name)) {
            // `--force` as in a full run, because a scenario may not belong to the revision.
            run(&["--scenario", scenario, "--spec-version", revision.name, "--force"])?;
        }
        Ok(judgement::gather(requirements, results::read(&results)?, |name| wanted.contains(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> impl Iterator<Item = String> {
        words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn names_are_accepted_and_other_options_refused() {
        let named = wanted(words(&["--debug", "tools-list", "caching"])).unwrap_or_default();
        assert_eq!(named.into_iter().collect::<Vec<_>>(), ["caching", "tools-list"]);
        assert!(wanted(words(&["--debug"])).is_ok_and(|names| names.is_empty()));
        assert!(wanted(words(&["tools-list", "--verbose"])).is_err());
    }

    #[test]
    fn unbuilt_scenarios_are_unique_and_ordered() {
        assert!(NOT_YET.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
