//! Checks the configuration and its plugins. Reports every problem, where other subcommands stop at
//! the first.

use super::patience::Patience;
use super::report::{Check, State};
use crate::cli::args::Common;
use crate::cli::exit::{Exit, Failure};
use crate::cli::unused_rules::{self, Told};
use crate::cli::{setup, trust};
use crate::config::{FileConfig, FileOf, Settings};
use palisade::CallMode;
use palisade::plugins::{Cause, Plugin, Rejected};
use palisade::tool::text::elided;
use palisade::{BuildError, CacheMode, Host};
use std::path::{Path, PathBuf};

/// The advice for a workspace whose file system does not answer.
const UNANSWERED: &str =
    "see whether the file system of the workspace is there, and run this again";

/// The advice for a problem that keeps all tools from being loaded.
const NO_TOOL: &str = "no tool can be called until this is right";

/// Returns the effective settings and the configuration problems. The settings are those of the
/// command line if the configuration is invalid.
pub(super) fn configuration(common: &Common, patience: &Patience) -> (Settings, Vec<Check>) {
    let [user, project] = setup::files(common);
    let mut problems: Vec<Failure> = wrong_with(user, FileOf::User, patience).into_iter().collect();
    let mut unseen = None;
    if patience.has_run_out() {
        let found =
            format!("`{}` is not looked at, as its file system does not answer", project.display());
        unseen =
            Some(Check { name: "configuration", state: State::Fair, found, advice: UNANSWERED });
    } else {
        problems.extend(wrong_with(project, FileOf::Project, patience));
    }
    problems.extend(setup::environment(&mut Settings::default()).err());
    // Some problems only show when all sources are merged.
    let together =
        (!patience.has_run_out()).then(|| setup::settings_within(common, patience.left()));
    let settings = match together {
        Some(Ok(settings)) => settings,
        Some(Err(problem)) => {
            if !problems.iter().any(|known| known.to_string() == problem.to_string()) {
                problems.push(problem);
            }
            setup::of_command_line(common)
        }
        None => setup::of_command_line(common),
    };
    let good = (problems.is_empty() && unseen.is_none()).then(|| good(common, patience));
    (settings, problems.iter().map(wrong).chain(unseen).chain(good).collect())
}

/// Returns the problem with one file, if any.
fn wrong_with(file: PathBuf, of: FileOf, patience: &Patience) -> Option<Failure> {
    let shown = file.display().to_string();
    match patience.within(move || FileConfig::read(&file, of)) {
        Ok(read) => read.err().map(Failure::from),
        Err(error) => {
            Some(Failure::new(Exit::Limit, format!("`{shown}` cannot be looked into: {error}")))
        }
    }
}

fn wrong(problem: &Failure) -> Check {
    Check {
        name: "configuration",
        state: State::Bad(problem.exit()),
        found: problem.to_string(),
        advice: "every other subcommand refuses to run until this is right; docs/settings.md has every key and variable",
    }
}

fn good(common: &Common, patience: &Patience) -> Check {
    let files = setup::files(common);
    let there =
        patience.within(move || files.into_iter().filter(|file| file.exists()).collect::<Vec<_>>());
    let shown: Vec<String> =
        there.unwrap_or_default().iter().map(|file| setup::shown(file)).collect();
    let found =
        if shown.is_empty() { "no file: the defaults hold".to_owned() } else { shown.join(", ") };
    Check { name: "configuration", state: State::Good, found, advice: "" }
}

/// Loads every plugin as a call would.
pub(super) fn plugins(
    common: &Common,
    settings: &Settings,
    cache: CacheMode,
    patience: &Patience,
) -> Vec<Check> {
    if palisade::internal::check_system().is_err() {
        return vec![unseen("this process may use too little of the machine")];
    }
    if patience.has_run_out() {
        return vec![unseen("a file system does not answer")];
    }
    let mut settings = settings.clone();
    let mut checks = Vec::new();
    settings.directories.value.retain(|directory| {
        let problem = unreadable(directory, patience);
        let is_readable = problem.is_none();
        checks.extend(problem);
        is_readable
    });
    // With own threads, opening the workspace has a deadline even if the configured call mode runs
    // calls in place.
    let builder = match setup::builder(common, &settings) {
        Ok(builder) => builder.cache(cache).call_mode(CallMode::OWN_THREADS),
        Err(failure) => {
            checks.push(bad(failure.exit(), &failure.to_string(), NO_TOOL));
            return checks;
        }
    };
    match builder.build() {
        Ok(host) => {
            unused_rules::show(common, &settings, &host, Told::All);
            checks.extend(loaded(&host, &settings));
            checks.extend(unsigned(common, &settings, &host));
        }
        Err(BuildError::Workspace(_)) => checks.push(unseen("the workspace cannot be opened")),
        Err(error) => {
            let failure = Failure::from(error);
            checks.push(bad(failure.exit(), &failure.to_string(), NO_TOOL));
        }
    }
    checks
}

/// Returns the problem with a plugin directory, if any. Its file system may hang.
fn unreadable(directory: &Path, patience: &Patience) -> Option<Check> {
    let own = directory.to_owned();
    // The entries are read as well, since a network file system may open a directory from its
    // cache.
    let (exit, error) = match patience.within(move || std::fs::read_dir(own).map(Iterator::count)) {
        Ok(read) => (Exit::Usage, read.err()?),
        Err(error) => (Exit::Limit, error),
    };
    let found = format!("cannot read the plugin directory `{}`: {error}", directory.display());
    Some(bad(
        exit,
        &found,
        "give an existing directory with --plugins, PALISADE_PLUGINS or `plugins.directories`; `palisade config show` says which file named it",
    ))
}

fn loaded(host: &Host, settings: &Settings) -> Vec<Check> {
    let rejected = host.rejected().into_iter().map(|Rejected { file, reason, cause }| {
        let found = format!("rejected {file}: {reason}");
        match cause {
            Cause::NotApproved => Check {
                name: "plugins",
                state: State::Fair,
                found,
                advice: "none of its tools can be called before it is approved",
            },
            _ => bad(
                Exit::Invalid,
                &found,
                "none of its tools can be called: remove the reason, or take it out of its directory",
            ),
        }
    });
    let tools = host.registry().tools().len();
    let plugins = host.plugins().len();
    let found = format!("{tools} tools, {plugins} plugins");
    let all = match tools {
        0 => {
            let found = format!("{found}. {}", setup::without_tools(settings));
            Check {
                name: "plugins",
                state: State::Fair,
                found,
                advice: "nothing can be called without a tool",
            }
        }
        _ => Check { name: "plugins", state: State::Good, found, advice: "" },
    };
    rejected.chain(host.rejected().is_empty().then_some(all)).collect()
}

/// Notes the approved plugins that have no signature although a key is configured for their source:
/// it was configured later.
fn unsigned(common: &Common, settings: &Settings, host: &Host) -> Option<Check> {
    let locked = trust::of_all(common).ok()?;
    let keys = trust::keys(settings);
    let plugins = host.plugins();
    let names: Vec<&str> = plugins
        .iter()
        .filter(|plugin| trust::lacks_signer(&locked, &keys, plugin))
        .map(Plugin::name)
        .collect();
    let of = match names.len() {
        0 => return None,
        1 => "1 approved plugin has".to_owned(),
        count => format!("{count} approved plugins have"),
    };
    let names = elided(&names.join(", "), 512);
    Some(Check {
        name: "plugins",
        state: State::Fair,
        found: format!("{of} no signature of a configured key: {names}"),
        advice: "`palisade approve NAME` verifies the signature and pins its key",
    })
}

fn bad(exit: Exit, found: &str, advice: &'static str) -> Check {
    Check { name: "plugins", state: State::Bad(exit), found: found.to_owned(), advice }
}

fn unseen(why: &str) -> Check {
    let found = format!("not looked at: {why}");
    Check {
        name: "plugins",
        state: State::Fair,
        found,
        advice: "mend what is bad above, and run this again",
    }
}
