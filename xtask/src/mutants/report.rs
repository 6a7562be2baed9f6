//! The results of mutation testing, and the list of accepted survivors.

use super::lines;
use anyhow::{Context as _, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

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
}

/// The results of all runs, by mutant name without the line, which moves with every edit.
#[derive(Debug, Default)]
pub(super) struct Report {
    seen: Vec<String>,
    missed: Vec<String>,
}

/// The extent of the tested mutants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// All mutants of each area or file.
    Whole,
    /// One shard.
    Part,
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
    /// Reads the output of cargo-mutants.
    pub(super) fn read(told: &Path) -> anyhow::Result<Self> {
        ensure!(told.is_dir(), "cargo-mutants left nothing in {}", told.display());
        let of = |file: &str| lines(&told.join(file));
        let unviable = of("unviable.txt").len();
        Ok(Self { caught: of("caught.txt"), endless: of("timeout.txt"), missed: of("missed.txt"), unviable })
    }

    pub(super) fn missed(&self) -> &[String] {
        &self.missed
    }

    /// Replaces the survivors with the results of their second run.
    pub(super) fn seen_again(self, again: Self) -> Self {
        let (caught, endless) = ([self.caught, again.caught].concat(), [self.endless, again.endless].concat());
        Self { caught, endless, missed: again.missed, unviable: self.unviable + again.unviable }
    }

    /// Returns a row of the results table.
    pub(super) fn row(&self, area: &str, shard: Option<&str>, all: usize, kept: &BTreeMap<String, Why>) -> String {
        let (caught, endless, unviable) = (self.caught.len(), self.endless.len(), self.unviable);
        let same = self.missed.iter().filter(|line| kept.get(&name(line)) == Some(&Why::Same)).count();
        let (made, unseen) = (caught + endless + self.missed.len() + unviable, self.missed.len() - same);
        let shard = shard.unwrap_or("0/1");
        format!("| {area} | {shard} | {made} of {all} | {unviable} | {caught} | {endless} | {same} | {unseen} |")
    }
}

impl Report {
    pub(super) fn add(&mut self, outcome: &Outcome) {
        let names = |lines: &[String]| lines.iter().map(|line| name(line)).collect::<Vec<_>>();
        self.seen.extend(names(&outcome.caught));
        self.seen.extend(names(&outcome.endless));
        self.missed.extend(names(&outcome.missed));
    }

    /// Returns the number of killable mutants: all except the equivalent ones.
    fn visible(&self, kept: &BTreeMap<String, Why>) -> usize {
        let same = self.missed.iter().filter(|name| kept.get(*name) == Some(&Why::Same)).count();
        self.seen.len() + self.missed.len() - same
    }

    /// Returns the summary line.
    pub(super) fn told(&self, kept: &BTreeMap<String, Why>) -> String {
        let (killed, visible) = (self.seen.len(), self.visible(kept));
        let percent = (killed * 100).checked_div(visible).unwrap_or(100);
        format!("{killed} of {visible} faults that can be seen are seen: {percent} %")
    }

    /// Returns the errors: survivors that are not listed, listed mutants that were killed, and too
    /// low a kill rate. For a shard only the first: a listed mutant may be in another shard, and a
    /// sample has no reliable rate.
    pub(super) fn complaints(&self, kept: &BTreeMap<String, Why>, least: usize, extent: Extent) -> Vec<String> {
        let missed: BTreeSet<&String> = self.missed.iter().collect();
        let caught: BTreeSet<&String> = self.seen.iter().collect();
        let unlisted = missed.iter().filter(|name| !kept.contains_key(**name)).map(|name| format!("not seen: {name}"));
        // The same change may occur twice in a function: killed in one place, it can survive in the
        // other.
        let stale = kept.keys().filter(|name| caught.contains(name) && !missed.contains(name));
        let stale = stale.map(|name| format!("on the list, and seen: {name}"));
        let (killed, visible) = (self.seen.len(), self.visible(kept));
        let few = killed * 100 < visible * least;
        let few = few.then(|| format!("fewer than {least} % of what can be seen are seen"));
        let of_the_whole = stale.chain(few).filter(|_| extent == Extent::Whole);
        unlisted.chain(of_the_whole).collect()
    }
}

/// Returns the name of a mutant without its line and column.
fn name(line: &str) -> String {
    let mut parts = line.splitn(4, ':');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(file), Some(_), Some(_), Some(change)) => format!("{file}:{change}"),
        _ => line.to_owned(),
    }
}

/// Returns a regular expression that matches this mutant only.
pub(super) fn pattern(line: &str) -> String {
    let is_special = |c: char| r"\.+*?()|[]{}^$#&-~".contains(c);
    let escaped = line.chars().flat_map(|c| is_special(c).then_some('\\').into_iter().chain([c]));
    format!("^{}$", escaped.collect::<String>())
}

/// Parses the list: a table with a row per mutant: its name in backticks, `same` or `unseen`, and a
/// reason.
pub(super) fn kept(text: &str) -> anyhow::Result<BTreeMap<String, Why>> {
    text.lines().filter(|line| line.starts_with("| `")).map(row).collect()
}

fn row(line: &str) -> anyhow::Result<(String, Why)> {
    // The name may contain the separator of table cells.
    let rest = line.strip_prefix("| `").context("no name")?;
    let (name, rest) = rest.split_once("` | ").with_context(|| format!("no end of the name: {line}"))?;
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
    fn what_is_seen_when_it_is_tried_again_counts_once() {
        let kept = kept(LIST).expect("a list");
        let near = outcome(&["a.rs:1:1: x"], &["a.rs:2:1: y", "a.rs:3:1: replace | with ^ in f", "a.rs:4:1: z"]);
        let again = outcome(&["a.rs:2:1: y"], &["a.rs:3:1: replace | with ^ in f", "a.rs:4:1: z"]);
        let row = near.seen_again(again).row("guard", Some("0/8"), 30, &kept);
        assert_eq!(row, "| guard | 0/8 | 4 of 30 | 0 | 2 | 0 | 1 | 1 |");
    }

    #[test]
    fn a_pattern_takes_every_character_of_a_fault_for_itself() {
        assert_eq!(
            pattern("a.rs:1:2: replace <A as B>::f -> Option<()> with None"),
            r"^a\.rs:1:2: replace <A as B>::f \-> Option<\(\)> with None$"
        );
    }

    #[test]
    fn a_fault_is_known_by_its_file_and_change_wherever_it_moves() {
        assert_eq!(name("a.rs:12:5: replace x::y -> bool with true"), "a.rs: replace x::y -> bool with true");
    }

    #[test]
    fn a_survivor_that_is_not_listed_is_told_and_so_is_a_listed_one_that_was_killed() {
        let kept = kept(LIST).expect("a list");
        assert_eq!(kept.len(), 2);
        let fine = report(&["a.rs:1:1: x"; 9], &["a.rs:1:1: replace | with ^ in f"]);
        assert_eq!(fine.complaints(&kept, 90, Extent::Whole), Vec::<String>::new());
        assert!(fine.told(&kept).contains("9 of 9"));
        let unlisted = report(&["a.rs:1:1: x"; 99], &["a.rs:1:1: y"]);
        assert_eq!(unlisted.complaints(&kept, 90, Extent::Whole), ["not seen: a.rs: y"]);
        let stale = report(&["a.rs:7:1: replace g -> bool with true"], &[]);
        assert_eq!(
            stale.complaints(&kept, 90, Extent::Whole),
            ["on the list, and seen: a.rs: replace g -> bool with true"]
        );
        assert_eq!(stale.complaints(&kept, 90, Extent::Part), Vec::<String>::new());
        assert_eq!(unlisted.complaints(&kept, 90, Extent::Part), ["not seen: a.rs: y"]);
    }

    #[test]
    fn fewer_than_nine_of_ten_are_too_few_though_each_is_listed() {
        let kept = kept(LIST).expect("a list");
        let missed = ["a.rs:1:1: replace g -> bool with true"];
        assert!(report(&["a.rs:1:1: x"; 9], &missed).complaints(&kept, 90, Extent::Whole).is_empty());
        assert_eq!(report(&["a.rs:1:1: x"; 8], &missed).complaints(&kept, 90, Extent::Whole).len(), 1);
    }

    #[test]
    fn a_row_without_a_reason_is_no_row() {
        assert!(kept("| `a.rs: x` | same | |").is_err());
        assert!(kept("| `a.rs: x` | maybe | because of this and that |").is_err());
    }
}
