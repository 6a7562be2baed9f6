//! Checks the configuration and its plugins. Reports every problem, where other subcommands stop at
//! the first.

use super::patience::Patience;
use super::report::{Check, State};
use crate::cli::args::Common;
use crate::cli::exit::{Exit, Failure};
use crate::cli::idle::{self, Told};
use crate::cli::open;
use crate::config::{FileConfig, Settings};
use crate::dispatch::CallMode;
use crate::host::{BuildError, CacheMode, Host};
use crate::plugins::Rejected;
use crate::workspace::LastLink;
use std::path::{Path, PathBuf};

/// The advice for a workspace whose file system does not answer.
const UNANSWERED: &str = "see whether the file system of the workspace is there, and run this again";

/// Returns the effective settings and the configuration problems. The settings are those of the
/// command line if the configuration is invalid.
pub(super) fn configuration(common: &Common, patience: &Patience) -> (Settings, Vec<Check>) {
    let [user, project] = open::files(common);
    let mut problems: Vec<Failure> = wrong_with(user, LastLink::Follow, patience).into_iter().collect();
    let mut unseen = None;
    if patience.has_run_out() {
        let found = format!("`{}` is not looked at, as its file system does not answer", project.display());
        unseen = Some(Check { name: "configuration", state: State::Fair, found, advice: UNANSWERED });
    } else {
        problems.extend(wrong_with(project, LastLink::Keep, patience));
    }
    problems.extend(open::environment(&mut Settings::default()).err());
    // Some problems only show when all sources are merged.
    let together = (!patience.has_run_out()).then(|| open::settings_within(common, patience.left()));
    let settings = match together {
        Some(Ok(settings)) => settings,
        Some(Err(problem)) => {
            if !problems.iter().any(|known| known.to_string() == problem.to_string()) {
                problems.push(problem);
            }
            open::of_command_line(common)
        }
        None => open::of_command_line(common),
    };
    let good = (problems.is_empty() && unseen.is_none()).then(|| good(common, patience));
    (settings, problems.iter().map(wrong).chain(unseen).chain(good).collect())
}

/// Returns the problem with one file, if any.
fn wrong_with(file: PathBuf, links: LastLink, patience: &Patience) -> Option<Failure> {
    let shown = file.display().to_string();
    match patience.within(move || FileConfig::read(&file, links)) {
        Ok(read) => read.err().map(Failure::from),
        Err(error) => Some(Failure::new(Exit::Limit, format!("`{shown}` cannot be looked into: {error}"))),
    }
}

fn wrong(problem: &Failure) -> Check {
    Check {
        name: "configuration",
        state: State::Bad(problem.exit()),
        found: problem.to_string(),
        advice: "every other verb refuses to run until this is right; docs/settings.md has every key and variable",
    }
}

fn good(common: &Common, patience: &Patience) -> Check {
    let files = open::files(common);
    let there = patience.within(move || files.into_iter().filter(|file| file.exists()).collect::<Vec<_>>());
    let shown: Vec<String> = there.unwrap_or_default().iter().map(|file| open::shown(file)).collect();
    let found = if shown.is_empty() { "no file: the defaults hold".to_owned() } else { shown.join(", ") };
    Check { name: "configuration", state: State::Good, found, advice: "" }
}

/// Loads every plugin as a call would.
pub(super) fn plugins(common: &Common, settings: &Settings, cache: CacheMode, patience: &Patience) -> Vec<Check> {
    if crate::sandbox::check_machine().is_err() {
        return vec![unseen("this process may use too little of the machine")];
    }
    if patience.has_run_out() {
        return vec![unseen("a file system does not answer")];
    }
    let mut settings = settings.clone();
    let mut checks: Vec<Check> = settings.directories.value.iter().filter_map(|dir| missing(dir)).collect();
    settings.directories.value.retain(|directory| std::fs::read_dir(directory).is_ok());
    // With own threads, opening the workspace has a deadline even if the configured call mode runs
    // calls in place.
    match open::builder(common, &settings).cache(cache).call_mode(CallMode::OWN_THREADS).build() {
        Ok(host) => {
            idle::show(&settings, &host, Told::All);
            checks.extend(loaded(&host));
        }
        Err(BuildError::Workspace(_)) => checks.push(unseen("the workspace cannot be opened")),
        Err(error) => {
            let failure = Failure::from(error);
            checks.push(bad(failure.exit(), &failure.to_string(), "no tool can be called until this is right"));
        }
    }
    checks
}

fn missing(directory: &Path) -> Option<Check> {
    let error = std::fs::read_dir(directory).err()?;
    let found = format!("cannot read the plugin directory `{}`: {error}", directory.display());
    Some(bad(
        Exit::Usage,
        &found,
        "give an existing directory with --plugins, PALISADE_PLUGINS or `plugins.directories`",
    ))
}

fn loaded(host: &Host) -> Vec<Check> {
    let rejected = host.rejected().into_iter().map(|Rejected { file, reason, .. }| {
        bad(
            Exit::Invalid,
            &format!("rejected {file}: {reason}"),
            "none of its tools can be called: build it anew, or take it out of its directory",
        )
    });
    let (tools, plugins) = (host.registry().tools().len(), host.plugins().len());
    let found = format!("{tools} tools, {plugins} plugins");
    let all = Check { name: "plugins", state: State::Good, found, advice: "" };
    rejected.chain(host.rejected().is_empty().then_some(all)).collect()
}

fn bad(exit: Exit, found: &str, advice: &'static str) -> Check {
    Check { name: "plugins", state: State::Bad(exit), found: found.to_owned(), advice }
}

fn unseen(why: &str) -> Check {
    let found = format!("not looked at: {why}");
    Check { name: "plugins", state: State::Fair, found, advice: "mend what is bad above, and run this again" }
}
