//! What doctor says of the configuration, and of the plugins that it names: every problem, where other verbs stop at the first.

use super::{Check, State};
use crate::cli::args::Common;
use crate::cli::exit::{Exit, Failure};
use crate::cli::idle::{self, Told};
use crate::cli::open;
use crate::config::Settings;
use crate::host::{BuildError, CacheMode, Host};
use crate::plugins::Rejected;
use std::path::Path;

/// The settings that hold, or where there are none what the command line says, and what is wrong with them.
pub(super) fn configuration(common: &Common) -> (Settings, Vec<Check>) {
    let problems = open::problems(common);
    let settings = match open::settings(common) {
        Ok(settings) if problems.is_empty() => return (settings, vec![good(common)]),
        Ok(settings) => settings,
        Err(_) => open::of_command_line(common),
    };
    let bad = |problem: Failure| Check {
        name: "configuration",
        state: State::Bad(problem.exit()),
        found: problem.to_string(),
        advice: "every other verb refuses to run until this is right; docs/settings.md has every key and variable",
    };
    (settings, problems.into_iter().map(bad).collect())
}

fn good(common: &Common) -> Check {
    let files: Vec<String> =
        open::files(common).iter().filter(|file| file.exists()).map(|file| open::shown(file)).collect();
    let found = if files.is_empty() { "no file: the defaults hold".to_owned() } else { files.join(", ") };
    Check { name: "configuration", state: State::Good, found, advice: "" }
}

/// Loads every plugin as a call would.
pub(super) fn plugins(common: &Common, settings: &Settings, cache: CacheMode) -> Vec<Check> {
    if crate::sandbox::check_machine().is_err() {
        return vec![unseen("this process may use too little of the machine")];
    }
    let mut settings = settings.clone();
    let mut checks: Vec<Check> = settings.directories.value.iter().filter_map(|dir| missing(dir)).collect();
    settings.directories.value.retain(|directory| std::fs::read_dir(directory).is_ok());
    match open::builder(common, &settings).cache(cache).build() {
        Ok(host) => {
            idle::show(&settings, host.registry(), Told::All);
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
    let rejected = host.rejected().iter().map(|Rejected { file, reason }| {
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
