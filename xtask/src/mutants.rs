//! Mutation testing of the most critical code with `cargo mutants`, area by area, compared with the
//! list of accepted survivors.
//!
//! The sources are copied first, so that no mutant is ever in the checkout, and are built in a
//! separate target directory, where the engine is compiled once. Each mutant is tested twice:
//! against the unit tests beside the code, which kill most mutants within a second, and then, if it
//! survives, against all tests of the area.

mod areas;
mod report;

use crate::place::Place;
use anyhow::{Context as _, bail, ensure};
use areas::{AREAS, Area};
use report::{Extent, Outcome, Report, pattern};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The list of accepted survivors, each with a reason.
const KEPT: &str = "tests/mutants.md";
/// The minimum share of killable mutants that must be killed, in percent.
const LEAST: usize = 90;
/// Slow tests of the harness itself, which kill no mutant of the host.
const BESIDE: [&str; 2] = ["--skip", "oracle::"];
/// The minimum timeout of the tests with a mutant, and its factor over their duration without one:
/// some tests wait for a deadline, and the machine may be busy.
const TIME: (Duration, u32) = (Duration::from_secs(60), 4);
/// Backtraces need function names only. Line tables would take a third of the build time.
const NO_LINES: (&str, &str) = ("CARGO_PROFILE_DEV_DEBUG", "0");

/// Tests the mutants of all areas, of the named ones or of one file, and compares with the list.
pub(crate) fn run(place: &Place) -> anyhow::Result<()> {
    let asked = asked(std::env::args().skip(2))?;
    let version = Command::new("cargo-mutants").args(["mutants", "--version"]).stdout(Stdio::null()).status();
    ensure!(
        version.is_ok_and(|status| status.success()),
        "there is no cargo-mutants; `cargo install cargo-mutants --locked` installs it"
    );
    let kept = report::kept(&fs::read_to_string(place.root.join(KEPT)).with_context(|| format!("reading {KEPT}"))?)?;
    let work = Work::prepare(place)?;
    let mut all = Report::default();
    for job in &asked.jobs {
        let outcome = work.mutate(job, asked.shard.as_deref())?;
        println!("{}", outcome.row(job.area.name, asked.shard.as_deref(), work.faults(job)?, &kept));
        all.add(&outcome);
    }
    let extent = if asked.shard.is_some() { Extent::Part } else { Extent::Whole };
    let complaints = all.complaints(&kept, LEAST, extent);
    println!("{}", all.told(&kept));
    complaints.iter().for_each(|complaint| println!("  {complaint}"));
    ensure!(complaints.is_empty(), "the tests let faults through that they should see, or {KEPT} is not true");
    Ok(())
}

/// One run of cargo-mutants.
struct Job {
    area: &'static Area,
    file: Option<String>,
}

/// The requested runs, and the shard of their mutants, such as `0/8` for the first of eight.
struct Asked {
    jobs: Vec<Job>,
    shard: Option<String>,
}

fn asked(mut words: impl Iterator<Item = String>) -> anyhow::Result<Asked> {
    let (mut jobs, mut shard) = (Vec::new(), None);
    while let Some(word) = words.next() {
        if word == "--shard" {
            shard = Some(words.next().context("`--shard` wants a part, such as 0/8")?);
        } else if word == "--file" {
            let file = words.next().context("`--file` wants a file of an area")?;
            let area = AREAS.iter().find(|area| area.has(&file));
            let area = area.with_context(|| format!("`{file}` is in no area; xtask/src/mutants/areas.rs has them"))?;
            jobs.push(Job { area, file: Some(file) });
        } else {
            let names = || AREAS.map(|area| area.name).join(", ");
            let area = AREAS.iter().find(|area| area.name == word);
            jobs.push(Job {
                area: area.with_context(|| format!("there is no area `{word}`; there are {}", names()))?,
                file: None,
            });
        }
    }
    if jobs.is_empty() {
        jobs.extend(AREAS.iter().map(|area| Job { area, file: None }));
    }
    Ok(Asked { jobs, shard })
}

/// The working directories: a copy of the sources, its target directory and the output.
struct Work {
    tree: PathBuf,
    target: PathBuf,
    told: PathBuf,
}

impl Work {
    fn prepare(place: &Place) -> anyhow::Result<Self> {
        let home = place.target.join("mutants");
        let work = Self { tree: home.join("tree"), target: home.join("target"), told: home.join("told") };
        place.copy_sources(&work.tree)?;
        fs::create_dir_all(&work.told).with_context(|| format!("creating {}", work.told.display()))?;
        Ok(work)
    }
}

impl Work {
    /// Tests the mutants of a job, or of a shard. Survivors of the nearby tests are tested again,
    /// against all tests of the area.
    fn mutate(&self, job: &Job, shard: Option<&str>) -> anyhow::Result<Outcome> {
        // Round-robin, so that a shard is a sample of the whole area.
        let part = shard.into_iter().flat_map(|part| ["--shard", part, "--sharding", "round-robin"]);
        let near = self.pass(job, Pass::Near, &part.map(str::to_owned).collect::<Vec<_>>())?;
        if near.missed().is_empty() {
            return Ok(near);
        }
        let again = near.missed().iter().map(|line| format!("--re={}", pattern(line))).collect::<Vec<_>>();
        Ok(near.seen_again(self.pass(job, Pass::Whole, &again)?))
    }

    fn pass(&self, job: &Job, pass: Pass, which: &[String]) -> anyhow::Result<Outcome> {
        let of_area = self.told.join(job.area.name);
        fs::create_dir_all(&of_area).with_context(|| format!("creating {}", of_area.display()))?;
        let told = of_area.join(pass.name());
        if told.exists() {
            fs::remove_dir_all(&told).with_context(|| format!("removing {}", told.display()))?;
        }
        let time = self.tested(job.area, pass)?;
        let mut command = self.mutants(job);
        command.args(["--in-place", "--no-shuffle", "--colors", "never", "--output"]).arg(&told).args(which);
        // The baseline run of cargo-mutants would build one package alone and compile another
        // engine.
        command.args(["--baseline", "skip", "--timeout", &time.as_secs().to_string()]);
        command.args(pass.targets(job.area).iter().map(|word| format!("--cargo-arg={word}")));
        let status =
            command.arg("--").arg("--").args(pass.filters(job.area)).status().context("running cargo-mutants")?;
        // Exit code 2: mutants survived; 3: tests timed out. All other codes are errors.
        match status.code() {
            Some(0 | 2 | 3) => Outcome::read(&told.join("mutants.out")),
            _ => bail!("cargo-mutants ended with {status}; {} has its words", told.display()),
        }
    }

    /// Returns the number of mutants of a job in all its shards, including those that do not
    /// compile.
    fn faults(&self, job: &Job) -> anyhow::Result<usize> {
        let listed = self.mutants(job).arg("--list").output().context("running cargo-mutants")?;
        ensure!(listed.status.success(), "cargo-mutants does not list the faults of `{}`", job.area.name);
        Ok(listed.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count())
    }

    /// Returns the cargo-mutants command for the files of a job.
    fn mutants(&self, job: &Job) -> Command {
        let mut command = Command::new("cargo-mutants");
        let files: Vec<&str> = job.file.as_deref().map_or_else(|| job.area.files.to_vec(), |file| vec![file]);
        command.args(["mutants", "--workspace"]).args(files.iter().flat_map(|file| ["--file", file]));
        command.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target).env(NO_LINES.0, NO_LINES.1);
        command
    }

    /// Builds and runs the tests of an area without a mutant. Returns the timeout for a run with
    /// one.
    fn tested(&self, area: &Area, pass: Pass) -> anyhow::Result<Duration> {
        let cargo = || {
            let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
            cargo.args(["test", "--verbose", "--workspace"]).args(pass.targets(area));
            cargo.stdout(Stdio::null()).stderr(Stdio::null()).current_dir(&self.tree);
            cargo.env("CARGO_TARGET_DIR", &self.target).env(NO_LINES.0, NO_LINES.1);
            cargo
        };
        ensure!(cargo().arg("--no-run").status()?.success(), "the tests of `{}` do not build", area.name);
        let start = Instant::now();
        let passed = cargo().arg("--").args(pass.filters(area)).status()?.success();
        ensure!(passed, "the tests of `{}` fail without a fault", area.name);
        Ok((start.elapsed() * TIME.1).max(TIME.0))
    }
}

/// The tests that a mutant is run against.
#[derive(Debug, Clone, Copy)]
enum Pass {
    /// The unit tests beside the code.
    Near,
    /// All unit tests, and the suites of the area.
    Whole,
}

impl Pass {
    fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Whole => "whole",
        }
    }

    fn targets(self, area: &Area) -> Vec<String> {
        match self {
            Self::Near => vec!["--lib".to_owned()],
            Self::Whole => area.tests(),
        }
    }

    fn filters(self, area: &Area) -> Vec<&str> {
        match self {
            Self::Near => area.near.to_vec(),
            Self::Whole => BESIDE.to_vec(),
        }
    }
}

/// Returns the lines of a file; empty if it is missing.
fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}
