//! Judges the results of the suite: each required scenario passes without a warning, or is listed
//! as not implemented yet.

use super::requirements::Requirements;
use super::results::{Check, Status};
use anyhow::ensure;
use std::collections::{BTreeMap, BTreeSet};

/// A scenario in one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scenario {
    /// The name.
    pub(super) name: String,
    /// Whether the scenario is required.
    pub(super) weight: Weight,
    /// The checks; empty if the scenario did not finish.
    pub(super) checks: Vec<Check>,
}

/// The weight of a scenario in a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// The scenario is required.
    Required,
    /// The scenario is run and reported only.
    Unscored,
}

/// The verbosity about scenarios that fail without counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verbosity {
    /// Prints the faults of required scenarios.
    Faults,
    /// Prints all faults, because these scenarios were named explicitly.
    Everything,
}

/// The verdict on a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Passes,
    Fails,
    NotYet,
    PassesUnscored,
    FailsUnscored,
}

/// Returns the wanted scenarios of a revision with their results, in the order of the list.
pub(super) fn gather(
    requirements: &Requirements,
    mut results: BTreeMap<String, Vec<Check>>,
    is_wanted: impl Fn(&str) -> bool,
) -> Vec<Scenario> {
    let required = requirements.required.iter().map(|name| (name, Weight::Required));
    let unscored = requirements.unscored.iter().map(|name| (name, Weight::Unscored));
    let wanted = required.chain(unscored).filter(|(name, _)| is_wanted(name));
    wanted
        .map(|(name, weight)| Scenario {
            name: name.clone(),
            weight,
            checks: results.remove(name).unwrap_or_default(),
        })
        .collect()
}

/// Returns true if the suite itself would report success: it tolerates warnings.
pub(super) fn no_failure_in_required(scenarios: &[Scenario]) -> bool {
    let mut required = scenarios.iter().filter(|scenario| scenario.weight == Weight::Required);
    required.all(|scenario| !scenario.checks.is_empty() && !scenario.has(Status::Failure))
}

impl Scenario {
    fn has(&self, status: Status) -> bool {
        self.checks.iter().any(|check| check.status == status)
    }

    /// Returns true if a check succeeded and none has a fault: a scenario without applicable checks
    /// fails.
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
            return vec!["it did not finish: there is no result".to_owned()];
        }
        let faults = self.checks.iter().filter(|check| check.is_fault());
        let mut lines: Vec<String> = faults
            .map(|check| format!("{:?}: {}: {}", check.status, check.id, check.message))
            .collect();
        if lines.is_empty() && !self.passes() {
            lines.push("none of its checks applies".to_owned());
        }
        lines
    }

    fn print(&self, verdict: Verdict, verbosity: Verbosity) {
        let word = match verdict {
            Verdict::Passes => "passes",
            Verdict::Fails => "FAILS",
            Verdict::NotYet => "not yet",
            Verdict::PassesUnscored => "passes, unscored",
            Verdict::FailsUnscored => "fails, unscored",
        };
        println!("  {word:<17} {} ({} checks)", self.name, self.checks.len());
        if verdict == Verdict::Fails || verbosity == Verbosity::Everything {
            self.faults().iter().for_each(|fault| println!("      {fault}"));
        }
    }
}

/// Collects the scenarios of each revision for a final verdict.
pub(super) struct Judgement<'a> {
    not_yet: &'a [&'a str],
    verbosity: Verbosity,
    failed: Vec<String>,
    /// Whether each scenario passes in every revision that requires it.
    passing: BTreeMap<String, bool>,
    heard: BTreeSet<String>,
}

impl<'a> Judgement<'a> {
    /// Returns an empty judgement with the list of missing features.
    pub(super) fn new(not_yet: &'a [&'a str], verbosity: Verbosity) -> Self {
        Self {
            not_yet,
            verbosity,
            failed: Vec::new(),
            passing: BTreeMap::new(),
            heard: BTreeSet::new(),
        }
    }

    /// Prints and records the results of a revision.
    pub(super) fn add_revision(&mut self, revision: &str, scenarios: Vec<Scenario>) {
        println!("{revision}");
        let mut counts = [0; 3];
        for scenario in scenarios {
            let verdict = scenario.verdict(self.not_yet);
            scenario.print(verdict, self.verbosity);
            match verdict {
                Verdict::Passes => counts[0] += 1,
                Verdict::Fails => counts[1] += 1,
                Verdict::NotYet => counts[2] += 1,
                Verdict::PassesUnscored | Verdict::FailsUnscored => {}
            }
            self.record(revision, &scenario, verdict);
            self.heard.insert(scenario.name);
        }
        let [passing, failing, not_yet] = counts;
        println!(
            "{revision}: required scenarios: {passing} pass, {failing} fail, {not_yet} are not built yet"
        );
    }

    fn record(&mut self, revision: &str, scenario: &Scenario, verdict: Verdict) {
        if verdict == Verdict::Fails {
            self.failed.push(format!("{revision} {}", scenario.name));
        }
        if scenario.weight == Weight::Required {
            let passing = self.passing.entry(scenario.name.clone()).or_insert(true);
            *passing &= verdict == Verdict::Passes;
        }
    }

    /// Returns true if each of these scenarios belongs to some revision.
    pub(super) fn knows_all(&self, wanted: &BTreeSet<String>) -> bool {
        wanted.is_subset(&self.heard)
    }

    /// Returns the final verdict.
    ///
    /// # Errors
    ///
    /// If a required scenario fails, or if a scenario of a missing feature passes.
    pub(super) fn conclude(&self) -> anyhow::Result<()> {
        ensure!(
            self.failed.is_empty(),
            "{} scenarios fail: {}",
            self.failed.len(),
            self.failed.join(", ")
        );
        let stale = self.stale();
        ensure!(
            stale.is_empty(),
            "these pass, and must be removed from the list of missing features: {}",
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
