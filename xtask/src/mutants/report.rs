//! The results of mutation testing, and the list of accepted survivors.

use anyhow::{Context as _, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};

/// The results of one run, with the mutant names of cargo-mutants: file, line, column and change.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Killed by a failing test.
    caught: Vec<String>,
    /// Killed by a timeout.
    endless: Vec<String>,
    missed: Vec<String>,
    /// Mutants that do not compile.
    unviable: usize,
    /// Mutants that cannot be switched at run time, and were not tried.
    unwoven: Vec<String>,
}

/// The results of all runs, by mutant name without the line, which moves with every edit.
#[derive(Debug, Default)]
pub(super) struct Report {
    seen: Vec<String>,
    missed: Vec<String>,
    unwoven: Vec<String>,
}

/// The reason why a mutant survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// The mutant is equivalent: no test could kill it.
    Same,
    /// A test could kill the mutant, and none does.
    Unseen,
}

impl Outcome {
    /// Adds the result of a fault: a word, and details.
    pub(super) fn add(&mut self, fault: &str, result: &str) -> anyhow::Result<()> {
        let fault = fault.to_owned();
        match result.split(' ').next().unwrap_or_default() {
            "seen" => self.caught.push(fault),
            "endless" => self.endless.push(fault),
            "missed" => self.missed.push(fault),
            "unwoven" => self.unwoven.push(fault),
            "unviable" => self.unviable += 1,
            _ => bail!("`{result}` is not the result of a fault"),
        }
        Ok(())
    }

    /// Returns the row of the area in the table of runs.
    pub(super) fn row(&self, area: &str, accepted: &BTreeMap<String, Why>) -> String {
        let (caught, endless, unviable) = (self.caught.len(), self.endless.len(), self.unviable);
        let (missed, unwoven) = (self.missed.len(), self.unwoven.len());
        let same =
            self.missed.iter().filter(|line| accepted.get(&name(line)) == Some(&Why::Same)).count();
        let (made, unseen) = (caught + endless + missed + unviable + unwoven, missed - same);
        let killed = caught + endless;
        let percent = (killed * 100).checked_div(killed + unseen).unwrap_or(100);
        format!(
            "| {area} | {made} | {unviable} | {unwoven} | {caught} | {endless} | {same} | {unseen} | {percent} % |"
        )
    }
}

impl Report {
    pub(super) fn add(&mut self, outcome: &Outcome) {
        let names = |lines: &[String]| lines.iter().map(|line| name(line)).collect::<Vec<_>>();
        self.seen.extend(names(&outcome.caught));
        self.seen.extend(names(&outcome.endless));
        self.missed.extend(names(&outcome.missed));
        self.unwoven.extend(names(&outcome.unwoven));
    }

    /// Returns the number of killable mutants: all except the equivalent ones.
    fn visible(&self, accepted: &BTreeMap<String, Why>) -> usize {
        let same =
            self.missed.iter().filter(|name| accepted.get(*name) == Some(&Why::Same)).count();
        self.seen.len() + self.missed.len() - same
    }

    /// Returns the summary line.
    pub(super) fn summary(&self, accepted: &BTreeMap<String, Why>) -> String {
        let (killed, visible) = (self.seen.len(), self.visible(accepted));
        let percent = (killed * 100).checked_div(visible).unwrap_or(100);
        let unwoven = self.unwoven.len();
        format!(
            "{killed} of {visible} faults that can be seen are seen: {percent} %; {unwoven} could not be tried"
        )
    }

    /// Returns the complaints: survivors that are not listed, listed mutants that were killed, and
    /// too few killed mutants in all.
    pub(super) fn complaints(&self, accepted: &BTreeMap<String, Why>, least: usize) -> Vec<String> {
        let missed: BTreeSet<&String> = self.missed.iter().collect();
        let caught: BTreeSet<&String> = self.seen.iter().collect();
        let unlisted = missed
            .iter()
            .filter(|name| !accepted.contains_key(**name))
            .map(|name| format!("not seen by any test: {name}"));
        // The same change may occur twice in a function: killed in one place, it can survive in the
        // other.
        let stale = accepted.keys().filter(|name| caught.contains(name) && !missed.contains(name));
        let stale = stale.map(|name| format!("on the list, but seen: {name}"));
        let (killed, visible) = (self.seen.len(), self.visible(accepted));
        let few = killed * 100 < visible * least;
        let few =
            few.then(|| format!("fewer than {least} % of the faults that can be seen are seen"));
        unlisted.chain(stale).chain(few).collect()
    }
}

/// Returns the name of a fault without its line and column.
pub(super) fn name(line: &str) -> String {
    let mut parts = line.splitn(4, ':');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(file), Some(_), Some(_), Some(change)) => format!("{file}:{change}"),
        _ => line.to_owned(),
    }
}

/// Parses the list of accepted survivors: a table with a row for each fault, with its name in
/// backticks, `same` or `unseen`, and a reason.
pub(super) fn accepted(text: &str) -> anyhow::Result<BTreeMap<String, Why>> {
    text.lines().filter(|line| line.starts_with("| `")).map(row).collect()
}

fn row(line: &str) -> anyhow::Result<(String, Why)> {
    // The name may contain the separator of table cells.
    let rest = line.strip_prefix("| `").context("no name")?;
    let (name, rest) =
        rest.split_once("` | ").with_context(|| format!("no end of the name: {line}"))?;
    let (why, reason) = rest.split_once(" | ").with_context(|| format!("no reason: {line}"))?;
    ensure!(reason.trim_end_matches('|').trim().len() > 10, "no reason: {line}");
    match why {
        "same" => Ok((name.to_owned(), Why::Same)),
        "unseen" => Ok((name.to_owned(), Why::Unseen)),
        other => bail!("`{other}` is neither `same` nor `unseen`: {line}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "
# Faults
| mutant | kind | reason |
|---|---|---|
| `a.rs: replace | with ^ in f` | same | the two flags are never set together |
| `a.rs: replace g -> bool with true` | unseen | it would take a second file system |
";

    fn outcome(caught: &[&str], missed: &[&str]) -> Outcome {
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        Outcome { caught: lines(caught), missed: lines(missed), ..Outcome::default() }
    }

    fn report(caught: &[&str], missed: &[&str]) -> Report {
        let mut report = Report::default();
        report.add(&outcome(caught, missed));
        report
    }

    #[test]
    fn run_is_reported_in_a_row() {
        let accepted = accepted(LIST).expect("a list");
        let mut outcome =
            outcome(&["a.rs:1:1: x"; 8], &["a.rs:3:1: replace | with ^ in f", "a.rs:4:1: z"]);
        for (fault, result) in
            [("a.rs:5:1: x", "endless"), ("a.rs:6:1: x", "unviable"), ("a.rs:7:1: x", "unwoven")]
        {
            outcome.add(fault, result).expect("a word");
        }
        assert_eq!(
            outcome.row("guard", &accepted),
            "| guard | 13 | 1 | 1 | 8 | 1 | 1 | 1 | 90 % |"
        );
        assert!(outcome.add("a.rs:8:1: x", "lost").is_err());
    }

    #[test]
    fn fault_is_identified_by_file_and_change() {
        assert_eq!(
            name("a.rs:12:5: replace x::y -> bool with true"),
            "a.rs: replace x::y -> bool with true"
        );
    }

    #[test]
    fn unlisted_survivor_and_killed_listed_fault_are_reported() {
        let accepted = accepted(LIST).expect("a list");
        assert_eq!(accepted.len(), 2);
        let fine = report(&["a.rs:1:1: x"; 9], &["a.rs:1:1: replace | with ^ in f"]);
        assert_eq!(fine.complaints(&accepted, 90), Vec::<String>::new());
        assert!(fine.summary(&accepted).contains("9 of 9"));
        let unlisted = report(&["a.rs:1:1: x"; 99], &["a.rs:1:1: y"]);
        assert_eq!(unlisted.complaints(&accepted, 90), ["not seen by any test: a.rs: y"]);
        let stale = report(&["a.rs:7:1: replace g -> bool with true"], &[]);
        assert_eq!(
            stale.complaints(&accepted, 90),
            ["on the list, but seen: a.rs: replace g -> bool with true"]
        );
    }

    #[test]
    fn fewer_than_nine_of_ten_kills_fail() {
        let accepted = accepted(LIST).expect("a list");
        let missed = ["a.rs:1:1: replace g -> bool with true"];
        assert!(report(&["a.rs:1:1: x"; 9], &missed).complaints(&accepted, 90).is_empty());
        assert_eq!(report(&["a.rs:1:1: x"; 8], &missed).complaints(&accepted, 90).len(), 1);
    }

    #[test]
    fn row_without_a_reason_is_invalid() {
        assert!(accepted("| `a.rs: x` | same | |").is_err());
        assert!(accepted("| `a.rs: x` | maybe | because of this and that |").is_err());
    }
}
