//! Small faults put into the code that matters most, each of which a test has to see: area by area,
//! against the list of those that none can see.
//!
//! cargo-mutants finds the faults. All of them are woven into one copy of the sources, each behind
//! a switch, so that no fault ever stands in the checkout and one build does for all. Every test is
//! run once alone, which shows the faults that it reaches; each fault is then tried against the
//! tests that reach it.

mod areas;
mod build;
mod fault;
mod report;
mod trial;
mod weave;

use crate::place::Place;
use anyhow::{Context as _, ensure};
use areas::{AREAS, Area};
use build::{Built, Loom, Lost};
use fault::Fault;
use report::{Outcome, Report, Why};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;
use trial::{Ended, Stand, Test};

/// The list of accepted survivors, each with a reason.
const KEPT: &str = "tests/mutants.md";
/// The minimum share of killable mutants that must be killed, in percent.
const LEAST: usize = 90;

/// Tests the mutants of all areas, of the named ones or of one file, and compares with the list.
pub(crate) fn run(place: &Place) -> anyhow::Result<()> {
    let asked = asked(std::env::args().skip(2))?;
    let kept = report::kept(
        &fs::read_to_string(place.root.join(KEPT)).with_context(|| format!("reading {KEPT}"))?,
    )?;
    let faults = listed(place)?;
    let home = place.target.join("mutants");
    let (tree, target) = (home.join("tree"), home.join("target"));
    let built = Loom { place, tree, target, known: home.join("lost") }.build(&faults)?;
    let work =
        Work { stand: Stand::new(&home, &built)?, built, faults, told: home.join("told"), asked };
    fs::create_dir_all(&work.told).with_context(|| format!("creating {}", work.told.display()))?;
    let mut all = Report::default();
    for job in &work.asked.jobs {
        let start = Instant::now();
        let outcome = work.mutate(job, &kept)?;
        println!("{}\n({:.0?})", outcome.row(job.area.name, &kept), start.elapsed());
        all.add(&outcome);
    }
    let complaints = all.complaints(&kept, LEAST);
    println!("{}", all.told(&kept));
    complaints.iter().for_each(|complaint| println!("  {complaint}"));
    ensure!(
        complaints.is_empty(),
        "the tests let faults through that they should see, or {KEPT} is not true"
    );
    Ok(())
}

/// Some faults.
struct Job {
    area: &'static Area,
    file: Option<String>,
}

/// What was asked for.
struct Asked {
    jobs: Vec<Job>,
    /// Whether what was seen the last time counts as seen.
    again: bool,
}

fn asked(mut words: impl Iterator<Item = String>) -> anyhow::Result<Asked> {
    let (mut jobs, mut again) = (Vec::new(), false);
    while let Some(word) = words.next() {
        if word == "--again" {
            again = true;
        } else if word == "--file" {
            let file = words.next().context("`--file` wants a file of an area")?;
            let area = AREAS.iter().find(|area| area.has(&file));
            let area = area.with_context(|| {
                format!("`{file}` is in no area; xtask/src/mutants/areas.rs has them")
            })?;
            jobs.push(Job { area, file: Some(file) });
        } else {
            let names = || AREAS.map(|area| area.name).join(", ");
            let area = AREAS.iter().find(|area| area.name == word);
            let area =
                area.with_context(|| format!("there is no area `{word}`; there are {}", names()))?;
            jobs.push(Job { area, file: None });
        }
    }
    if jobs.is_empty() {
        jobs.extend(AREAS.iter().map(|area| Job { area, file: None }));
    }
    Ok(Asked { jobs, again })
}

/// All faults of all areas.
fn listed(place: &Place) -> anyhow::Result<Vec<Fault>> {
    let mut command = Command::new("cargo-mutants");
    command.args(["mutants", "--workspace", "--list", "--json"]).current_dir(&place.root);
    let listed = command
        .args(AREAS.iter().flat_map(|area| area.files).flat_map(|file| ["--file", file]))
        .output();
    let listed = listed
        .context("there is no cargo-mutants; `cargo install cargo-mutants --locked` installs it")?;
    ensure!(listed.status.success(), "cargo-mutants does not list the faults");
    fault::listed(&listed.stdout)
}

/// What is built, and where it is run.
struct Work {
    stand: Stand,
    built: Built,
    faults: Vec<Fault>,
    /// What came of each fault, a file for each area.
    told: PathBuf,
    asked: Asked,
}

impl Work {
    /// What comes of the faults of a job.
    fn mutate(&self, job: &Job, kept: &BTreeMap<String, Why>) -> anyhow::Result<Outcome> {
        let binaries =
            self.built.binaries.iter().filter(|binary| job.area.is_tested_by(&binary.name));
        let tests = self.stand.tests(&binaries.cloned().collect::<Vec<_>>())?;
        let path = self.told.join(job.area.name);
        let before = fs::read_to_string(&path).unwrap_or_default();
        let seen: BTreeMap<&str, &str> =
            before.lines().filter_map(|line| line.split_once('\t')).collect();
        let mut told = fs::OpenOptions::new();
        // What comes of a fault this time stands behind what came of it before.
        told.create(true).write(true).append(self.asked.again).truncate(!self.asked.again);
        let mut told = told.open(&path).with_context(|| format!("opening {}", path.display()))?;
        let mut outcome = Outcome::default();
        let is_asked = |fault: &Fault| {
            job.file.as_ref().map_or(job.area.has(&fault.file), |file| *file == fault.file)
        };
        let mut faults: Vec<&Fault> = self.faults.iter().filter(|fault| is_asked(fault)).collect();
        // What is on the list takes longest, since nothing is expected to see it, and nobody waits
        // for it.
        faults.sort_by_key(|fault| kept.contains_key(&report::name(&fault.name)));
        for fault in faults {
            let is_over = |came: &&&str| {
                self.asked.again && (came.starts_with("seen") || **came == "endless")
            };
            let known = seen.get(fault.name.as_str()).filter(|came| is_over(came));
            let came =
                known.map_or_else(|| self.tried(fault, &tests), |came| Ok((*came).to_owned()))?;
            outcome.add(&fault.name, &came)?;
            writeln!(told, "{}\t{came}", fault.name).context("noting what came of a fault")?;
        }
        Ok(outcome)
    }

    /// What comes of a fault, in words of which the first counts.
    fn tried(&self, fault: &Fault, tests: &[Test]) -> anyhow::Result<String> {
        match self.built.lost.get(&fault.number) {
            Some(Lost::Unviable) => return Ok("unviable".to_owned()),
            Some(Lost::Unwoven) => return Ok("unwoven".to_owned()),
            None => {}
        }
        let start = Instant::now();
        let tests: Vec<&Test> =
            tests.iter().filter(|test| test.reaches.contains(&fault.number)).collect();
        let came = match self.stand.judge(fault.number, &tests)? {
            Ended::Failed(test) => format!("seen by {test}"),
            Ended::Endless => "endless".to_owned(),
            Ended::Passed => format!("missed by {} tests", tests.len()),
        };
        println!("{}: {came}, {:.1?}", fault.name, start.elapsed());
        Ok(came)
    }
}
