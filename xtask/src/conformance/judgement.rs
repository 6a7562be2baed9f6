//! Whether what the suite found is what has to be: each required scenario passes without a warning, or is known to be not built yet.

use super::requirements::Requirements;
use super::results::{Check, Status};
use anyhow::ensure;
use std::collections::{BTreeMap, BTreeSet};

/// A scenario in one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scenario {
    /// Its name.
    pub(super) name: String,
    /// Whether it counts.
    pub(super) weight: Weight,
    /// Its checks; none where it did not come to its end.
    pub(super) checks: Vec<Check>,
}

/// What a scenario counts for in a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// It is required.
    Required,
    /// It is run and reported.
    Unscored,
}

/// How much is told of what does not pass, and need not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Telling {
    /// What is wrong with whatever has to pass.
    Faults,
    /// What is wrong with anything: somebody has asked for these scenarios.
    Everything,
}

/// What becomes of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Passes,
    Fails,
    NotYet,
    PassesUnscored,
    FailsUnscored,
}

/// The scenarios of a revision that were asked for, each with what it left, in the order of the list.
pub(super) fn gather(
    requirements: &Requirements,
    mut results: BTreeMap<String, Vec<Check>>,
    is_wanted: impl Fn(&str) -> bool,
) -> Vec<Scenario> {
    let required = requirements.required.iter().map(|name| (name, Weight::Required));
    let unscored = requirements.unscored.iter().map(|name| (name, Weight::Unscored));
    let wanted = required.chain(unscored).filter(|(name, _)| is_wanted(name));
    wanted
        .map(|(name, weight)| Scenario { name: name.clone(), weight, checks: results.remove(name).unwrap_or_default() })
        .collect()
}

/// Whether the suite itself would call these a success: it lets warnings pass.
pub(super) fn no_failure_in_required(scenarios: &[Scenario]) -> bool {
    let mut required = scenarios.iter().filter(|scenario| scenario.weight == Weight::Required);
    required.all(|scenario| !scenario.checks.is_empty() && !scenario.has(Status::Failure))
}

impl Scenario {
    fn has(&self, status: Status) -> bool {
        self.checks.iter().any(|check| check.status == status)
    }

    /// Without a warning, and not because nothing was looked at.
    fn passes(&self) -> bool {
        self.has(Status::Success) && !self.checks.iter().any(Check::is_fault)
    }

    fn verdict(&self, not_yet: &[&str]) -> Verdict {
        match (self.weight, self.passes()) {
            (Weight::Required, true) => Verdict::Passes,
            (Weight::Required, false) if not_yet.contains(&self.name.as_str()) => Verdict::NotYet,
            (Weight::Required, false) => Verdict::Fails,
            (Weight::Unscored, true) => Verdict::PassesUnscored,
            (Weight::Unscored, false) => Verdict::FailsUnscored,
        }
    }

    fn faults(&self) -> Vec<String> {
        if self.checks.is_empty() {
            return vec!["it left no result: it did not come to its end".to_owned()];
        }
        let faults = self.checks.iter().filter(|check| check.is_fault());
        let mut lines: Vec<String> =
            faults.map(|check| format!("{:?}: {}: {}", check.status, check.id, check.message)).collect();
        if lines.is_empty() && !self.passes() {
            lines.push("nothing of it applies, so that nothing was looked at".to_owned());
        }
        lines
    }

    fn tell(&self, verdict: Verdict, telling: Telling) {
        let word = match verdict {
            Verdict::Passes => "passes",
            Verdict::Fails => "FAILS",
            Verdict::NotYet => "not yet",
            Verdict::PassesUnscored => "passes, unscored",
            Verdict::FailsUnscored => "fails, unscored",
        };
        println!("  {word:<17} {} ({} checks)", self.name, self.checks.len());
        if verdict == Verdict::Fails || telling == Telling::Everything {
            self.faults().iter().for_each(|fault| println!("      {fault}"));
        }
    }
}

/// Takes the scenarios of each revision, and says in the end whether all is well.
pub(super) struct Judgement<'a> {
    not_yet: &'a [&'a str],
    telling: Telling,
    failed: Vec<String>,
    /// Of each scenario whether it passes wherever it is required.
    passing: BTreeMap<String, bool>,
    heard: BTreeSet<String>,
}

impl<'a> Judgement<'a> {
    /// Knows of nothing yet but what is not built.
    pub(super) fn new(not_yet: &'a [&'a str], telling: Telling) -> Self {
        Self { not_yet, telling, failed: Vec::new(), passing: BTreeMap::new(), heard: BTreeSet::new() }
    }

    /// Prints what came of a revision, and keeps it.
    pub(super) fn hear(&mut self, revision: &str, scenarios: Vec<Scenario>) {
        println!("{revision}");
        let mut counts = [0; 3];
        for scenario in scenarios {
            let verdict = scenario.verdict(self.not_yet);
            scenario.tell(verdict, self.telling);
            match verdict {
                Verdict::Passes => counts[0] += 1,
                Verdict::Fails => counts[1] += 1,
                Verdict::NotYet => counts[2] += 1,
                Verdict::PassesUnscored | Verdict::FailsUnscored => {}
            }
            self.keep(revision, &scenario, verdict);
            self.heard.insert(scenario.name);
        }
        let [passing, failing, not_yet] = counts;
        println!("{revision}: of those required, {passing} pass, {failing} fail, {not_yet} are not due yet");
    }

    fn keep(&mut self, revision: &str, scenario: &Scenario, verdict: Verdict) {
        if verdict == Verdict::Fails {
            self.failed.push(format!("{revision} {}", scenario.name));
        }
        if scenario.weight == Weight::Required {
            let passing = self.passing.entry(scenario.name.clone()).or_insert(true);
            *passing &= verdict == Verdict::Passes;
        }
    }

    /// Whether each of these scenarios is one of some revision.
    pub(super) fn heard_all(&self, wanted: &BTreeSet<String>) -> bool {
        wanted.is_subset(&self.heard)
    }

    /// Fails where something does that has to pass, and where something passes that is said to be not built.
    pub(super) fn conclude(&self) -> anyhow::Result<()> {
        ensure!(self.failed.is_empty(), "{} scenarios fail: {}", self.failed.len(), self.failed.join(", "));
        let stale = self.stale();
        ensure!(
            stale.is_empty(),
            "these pass, and have to leave the list of what is not built yet: {}",
            stale.join(", ")
        );
        Ok(())
    }

    fn stale(&self) -> Vec<&str> {
        self.not_yet.iter().copied().filter(|name| self.passing.get(*name) == Some(&true)).collect()
    }
}

#[cfg(test)]
#[path = "judgement_tests.rs"]
mod tests;
