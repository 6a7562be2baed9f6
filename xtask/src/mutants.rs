//! Mutation testing of the most critical code, area by area: each small fault has to make a test
//! fail, or be on the list of accepted survivors.
//!
//! cargo-mutants lists the faults. All of them are woven into one copy of the sources, each behind
//! a switch, so that no fault is ever in the checkout, and one build is enough. Every test first
//! runs alone, which shows the faults that it reaches. Each fault is then run against the tests
//! that reach it.

mod areas;
mod build;
mod fault;
mod report;
mod trial;
mod weave;

use crate::place::Place;
use anyhow::{Context as _, ensure};
use areas::{AREAS, Area};
use build::{Builder, Built, Excluded};
use fault::Fault;
use report::{Outcome, Report, Why};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;
use trial::{Test, TestRunner, Verdict};

/// The list of accepted survivors, each with a reason.
const ACCEPTED: &str = "tests/mutants.md";
/// The minimum share of killable mutants that must be killed, in percent.
const LEAST: usize = 90;

/// Tests the mutants of all areas, of the named ones or of one file, and compares with the list.
pub(crate) fn run(place: &Place) -> anyhow::Result<()> {
    let options = parse(std::env::args().skip(2))?;
    let accepted = report::accepted(
        &fs::read_to_string(place.root.join(ACCEPTED))
            .with_context(|| format!("reading {ACCEPTED}"))?,
    )?;
    let faults = list_faults(place)?;
    let home = place.target.join("mutants");
    let (tree, target) = (home.join("tree"), home.join("target"));
    let built = Builder { place, tree, target, known: home.join("excluded") }.build(&faults)?;
    let runner = TestRunner::new(&home, &built)?;
    let work = Work { runner, built, faults, results: home.join("results"), options };
    fs::create_dir_all(&work.results)
        .with_context(|| format!("creating {}", work.results.display()))?;
    let mut all = Report::default();
    for job in &work.options.jobs {
        let start = Instant::now();
        let outcome = work.mutate(job, &accepted)?;
        println!("{}\n({:.0?})", outcome.row(job.area.name, &accepted), start.elapsed());
        all.add(&outcome);
    }
    let complaints = all.complaints(&accepted, LEAST);
    println!("{}", all.summary(&accepted));
    complaints.iter().for_each(|complaint| println!("  {complaint}"));
    ensure!(
        complaints.is_empty(),
        "the tests miss faults that they should see, or {ACCEPTED} is outdated"
    );
    Ok(())
}

/// The faults of an area, or of one of its files.
struct Job {
    area: &'static Area,
    file: Option<String>,
}

/// The parsed command line.
struct Options {
    jobs: Vec<Job>,
    /// Whether faults that were seen in the last run count as seen.
    again: bool,
}

fn parse(mut words: impl Iterator<Item = String>) -> anyhow::Result<Options> {
    let (mut jobs, mut again) = (Vec::new(), false);
    while let Some(word) = words.next() {
        if word == "--again" {
            again = true;
        } else if word == "--file" {
            let file = words.next().context("`--file` requires a file of an area")?;
            let area = AREAS.iter().find(|area| area.has(&file));
            let area = area.with_context(|| {
                format!("`{file}` is in no area; xtask/src/mutants/areas.rs lists the areas")
            })?;
            jobs.push(Job { area, file: Some(file) });
        } else {
            let names = || AREAS.map(|area| area.name).join(", ");
            let area = AREAS.iter().find(|area| area.name == word);
            let area =
                area.with_context(|| format!("unknown area `{word}`; the areas are {}", names()))?;
            jobs.push(Job { area, file: None });
        }
    }
    if jobs.is_empty() {
        jobs.extend(AREAS.iter().map(|area| Job { area, file: None }));
    }
    Ok(Options { jobs, again })
}

/// Returns all faults of all areas.
fn list_faults(place: &Place) -> anyhow::Result<Vec<Fault>> {
    let mut command = Command::new("cargo-mutants");
    command.args(["mutants", "--workspace", "--list", "--json"]).current_dir(&place.root);
    let listed = command
        .args(AREAS.iter().flat_map(|area| area.files).flat_map(|file| ["--file", file]))
        .output();
    let listed = listed
        .context("there is no cargo-mutants; `cargo install cargo-mutants --locked` installs it")?;
    ensure!(listed.status.success(), "cargo-mutants does not list the faults");
    fault::parse(&listed.stdout)
}

/// A run over all jobs, with the built tests and their runner.
struct Work {
    runner: TestRunner,
    built: Built,
    faults: Vec<Fault>,
    /// The directory of the results of each fault, one file per area.
    results: PathBuf,
    options: Options,
}

impl Work {
    /// Runs the faults of a job, and returns their results.
    fn mutate(&self, job: &Job, accepted: &BTreeMap<String, Why>) -> anyhow::Result<Outcome> {
        let binaries =
            self.built.binaries.iter().filter(|binary| job.area.is_tested_by(&binary.name));
        let tests = self.runner.tests(&binaries.cloned().collect::<Vec<_>>())?;
        let path = self.results.join(job.area.name);
        let before = fs::read_to_string(&path).unwrap_or_default();
        let earlier: BTreeMap<&str, &str> =
            before.lines().filter_map(|line| line.split_once('\t')).collect();
        let again = self.options.again;
        let mut log = fs::OpenOptions::new();
        // A later line of a fault takes precedence over an earlier one.
        log.create(true).write(true).append(again).truncate(!again);
        let mut log = log.open(&path).with_context(|| format!("opening {}", path.display()))?;
        let mut outcome = Outcome::default();
        let is_selected = |fault: &Fault| {
            job.file.as_ref().map_or(job.area.has(&fault.file), |file| *file == fault.file)
        };
        let mut faults: Vec<&Fault> =
            self.faults.iter().filter(|fault| is_selected(fault)).collect();
        // Accepted survivors come last: all their tests have to run, and their result is expected.
        faults.sort_by_key(|fault| accepted.contains_key(&report::name(&fault.name)));
        for fault in faults {
            let is_final =
                |result: &&&str| again && (result.starts_with("seen") || **result == "endless");
            let known = earlier.get(fault.name.as_str()).filter(|result| is_final(result));
            let result = match known {
                Some(result) => (*result).to_owned(),
                None => self.run(fault, &tests)?,
            };
            outcome.add(&fault.name, &result)?;
            writeln!(log, "{}\t{result}", fault.name).context("recording the result of a fault")?;
        }
        Ok(outcome)
    }

    /// Runs the tests that reach a fault, and returns its result: a word, and details.
    fn run(&self, fault: &Fault, tests: &[Test]) -> anyhow::Result<String> {
        match self.built.excluded.get(&fault.number) {
            Some(Excluded::Unviable) => return Ok("unviable".to_owned()),
            Some(Excluded::Unwoven) => return Ok("unwoven".to_owned()),
            None => {}
        }
        let start = Instant::now();
        let tests: Vec<&Test> =
            tests.iter().filter(|test| test.reaches.contains(&fault.number)).collect();
        let result = match self.runner.judge(fault.number, &tests)? {
            Verdict::Failed(test) => format!("seen by {test}"),
            Verdict::Endless => "endless".to_owned(),
            Verdict::Passed => format!("missed by {} tests", tests.len()),
        };
        println!("{}: {result}, {:.1?}", fault.name, start.elapsed());
        Ok(result)
    }
}
