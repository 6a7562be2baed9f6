//! Opens the configuration, workspace and plugins of a command line.

use super::args::{Common, Programs};
use super::exit::{Exit, Failure};
use super::progress::Loading;
use super::{
    adapt, deciding, grants, hint, journal, output, plugins, remember, servers, token, trust,
    unconnected,
};
use crate::config::{Origin, Settings, Value};
use palisade::CallMode;
use palisade::internal::within;
use palisade::plugins::{Cause, Rejected, Shipped};
use palisade::policy::Policy;
use palisade::sandbox::{ChildCompiler, Compiler, limits};
use palisade::tool::text::visible;
use palisade::{CacheMode, Host, HostBuilder};
use palisade::{Places, Presentation, SideEffects};
use palisade_shell::{Shell, ShellHelper, ShellOptions};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of the project's configuration file in a workspace.
const PROJECT_FILE: &str = "palisade.toml";

/// Returns the effective settings of this command line.
pub(super) fn settings(common: &Common) -> Result<Settings, Failure> {
    settings_within(common, limits::OPENING)
}

/// Returns the effective settings if the workspace answers within a timeout: reading the project's
/// configuration file is the first access to the workspace.
pub(super) fn settings_within(common: &Common, time: Duration) -> Result<Settings, Failure> {
    let [user, project] = files(common);
    let given = common.config.clone();
    let read = move || {
        given.map_or(Ok(()), |given| check_existing(&given))?;
        Settings::from_files(&user, &project).map_err(Failure::from)
    };
    let mut settings =
        within(time, read).map_err(|error| unanswered(&common.workspace, &error))??;
    environment(&mut settings)?;
    add_command_line(&mut settings, common);
    settings.directories.value.extend(trust::installed(common));
    adapt::read_docs(&mut settings.adapted)?;
    Ok(settings)
}

/// Refuses a missing file that was named explicitly: without it another policy would apply.
fn check_existing(given: &Path) -> Result<(), Failure> {
    if given.exists() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "the configuration `{}` does not exist; give an existing file with --config or PALISADE_CONFIG, or leave it out",
        given.display()
    )))
}

/// Applies the environment variables.
pub(super) fn environment(settings: &mut Settings) -> Result<(), Failure> {
    settings.apply_environment(|name| std::env::var(name).ok()).map_err(Failure::usage)
}

/// Returns settings without any file, so that `doctor` can continue if the files are invalid.
pub(super) fn of_command_line(common: &Common) -> Settings {
    let mut settings = Settings::default();
    add_command_line(&mut settings, common);
    settings
}

/// Returns the paths of the user's and the project's configuration files.
pub(super) fn files(common: &Common) -> [PathBuf; 2] {
    [user_file(common), common.workspace.join(PROJECT_FILE)]
}

fn add_command_line(settings: &mut Settings, common: &Common) {
    let named = std::env::var_os("PALISADE_PLUGINS").map(|list| {
        std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect()
    });
    add_directories(settings, named.unwrap_or_default(), Origin::Environment("PALISADE_PLUGINS"));
    add_directories(settings, common.plugins.clone(), Origin::Flag("--plugins"));
    let adapted = common.adapt.iter().cloned();
    settings.adapted.extend(adapted.map(|value| Value { value, origin: Origin::Flag("--adapt") }));
    settings
        .builtin
        .set(common.no_builtin.then_some(Shipped::LeftOut), || Origin::Flag("--no-builtin"));
}

/// Returns the error for a workspace that does not answer in time.
fn unanswered(workspace: &Path, error: &io::Error) -> Failure {
    let workspace = workspace.display();
    Failure::new(
        Exit::Limit,
        format!(
            "the workspace `{workspace}` cannot be looked into: {error}; see whether it is there"
        ),
    )
}

/// Adds directories before those of weaker sources: the plugin that a command line names is meant,
/// also if an installed one has its tools.
fn add_directories(settings: &mut Settings, more: Vec<PathBuf>, origin: Origin) {
    if !more.is_empty() {
        let all = [more, settings.directories.value.clone()].concat();
        settings.directories.set(Some(all), || origin);
    }
}

/// Returns the path of the user's configuration file, which is empty if there is no home directory.
pub(super) fn user_file(common: &Common) -> PathBuf {
    common.config.clone().or_else(default_user_file).unwrap_or_default()
}

/// Returns the configuration file of a run in this environment without `--config`.
fn default_user_file() -> Option<PathBuf> {
    use etcetera::BaseStrategy as _;
    let base = etcetera::choose_base_strategy().ok()?.config_dir();
    // Ignore a relative home directory: it would place the user's configuration inside the
    // untrusted workspace.
    Some(base.join("palisade").join(PROJECT_FILE)).filter(|path| path.is_absolute())
}

/// Returns the default configuration file of the home directory.
pub(super) fn usual_file() -> Option<PathBuf> {
    let home = etcetera::home_dir().ok().filter(|home| home.is_absolute());
    home.map(|home| home.join(".config/palisade").join(PROJECT_FILE))
}

/// Returns the user's configuration files of this run, and of runs with the default of the
/// environment or of the home directory: a tool that changed one of them would permit the calls of
/// a later run.
pub(super) fn user_files(common: &Common) -> BTreeSet<PathBuf> {
    let files = [Some(user_file(common)), default_user_file(), usual_file()];
    files.into_iter().flatten().filter(|file| !file.as_os_str().is_empty()).collect()
}

/// Formats a path for display, with `~` for the home directory.
pub(super) fn shown(path: &Path) -> String {
    let home =
        etcetera::home_dir().ok().filter(|home| home.is_absolute() && home.parent().is_some());
    match home.as_deref().and_then(|home| path.strip_prefix(home).ok()) {
        Some(below) => Path::new("~").join(below).display().to_string(),
        None => path.display().to_string(),
    }
}

/// Returns the builder of a host for one component alone, to look at it.
///
/// # Errors
///
/// A usage error if the grants of plugins cannot be read.
pub(super) fn alone(common: &Common, settings: &Settings) -> Result<HostBuilder, Failure> {
    let base = Host::builder()
        .workspace(&common.workspace)
        .shipped(Shipped::LeftOut)
        .limits(settings.limits())
        .cache(cache_mode())
        .compiler(compiler(settings));
    unconnected::add_to(base, common, settings)
}

/// Returns the builder of a host for one plugin that is about to be installed: with the names of
/// the shipped plugins taken, and with the interfaces that a grant would provide.
///
/// # Errors
///
/// A usage error if the grants of plugins cannot be read.
pub(super) fn to_look(common: &Common, settings: &Settings) -> Result<HostBuilder, Failure> {
    Ok(alone(common, settings)?.shipped(Shipped::Reserved))
}

/// Returns the builder of a host with the command line and the configuration applied.
///
/// # Errors
///
/// A usage error if the approvals or the grants of plugins cannot be read.
pub(super) fn builder(common: &Common, settings: &Settings) -> Result<HostBuilder, Failure> {
    remember::for_other_runs(common, settings);
    trust::show_distrusted(common);
    let base = Host::builder()
        .workspace(&common.workspace)
        .shipped(settings.builtin.value)
        .limits(settings.limits())
        .policy(settings.policy(&common.workspace))
        .advertise(settings.advertised())
        .allow(settings.allowed())
        .confirmation_timeout(settings.confirm_timeout.value)
        .concurrency(settings.concurrency.value)
        .compiler(compiler(settings))
        .call_mode(if settings.may_hang.value { CallMode::OWN_THREADS } else { CallMode::InPlace })
        .hard_links(settings.hard_links.value)
        .commands(settings.paths.commands.value)
        .places(places(common, settings))
        .protect(common.workspace.join(PROJECT_FILE))
        .protect(common.workspace.join(trust::LOCK))
        .protect(common.workspace.join(trust::WORDS))
        .cache(cache_mode())
        .present(match common.programs {
            Programs::AsGranted | Programs::Granted => Presentation::Tools,
            Programs::InPlaceOfTools => Presentation::Programs,
        });
    let base = match settings.builtin.value {
        Shipped::Included => base.tool(Shell::factory(shell(settings))),
        Shipped::LeftOut | Shipped::Reserved => base,
    };
    let named = journal::Place::of(None, &settings.journal).hidden();
    let calls = journal::Place::of_calls(&settings.journal).hidden();
    let files = user_files(common);
    let deciding: Vec<PathBuf> = files.iter().flat_map(|file| deciding::beside(file)).collect();
    let plugins: Vec<PathBuf> =
        files.iter().filter_map(|it| deciding::plugins_beside(it)).collect();
    let hidden = files.into_iter().chain(deciding).chain(token::folders());
    let hidden = hidden.chain(journal::folders()).chain(named).chain(calls);
    let base = hidden.fold(base, HostBuilder::deny_read);
    let base = plugins.into_iter().fold(base, HostBuilder::protect);
    let loading = Loading::observer();
    let base = settings
        .tool_concurrency
        .iter()
        .fold(base, |host, (tool, calls)| host.tool_concurrency(tool, calls.value));
    let base = settings.tool_timeout.iter().fold(base, |host, (tool, time)| {
        host.tool_time(tool, settings.tool_time(tool, time.value))
    });
    let base = servers::add_to(base, common, settings)?;
    let rules = settings.paths.lists.iter().map(|lists| lists.value.rules());
    let base = rules.fold(base, HostBuilder::path_rules);
    let base = plugins::add_to(base, settings)?;
    let base = adapt::add_to(base, &settings.adapted);
    let base = settings.directories.value.iter().fold(base, HostBuilder::plugins);
    let approvals = trust::of_run(common, settings)?;
    for name in approvals.missing() {
        let update = hint::named(&hint::command(common, "update"), &name);
        tracing::warn!("the file of `{name}` is missing; `{update}` fetches it again");
    }
    grants::add_to(base.observe_loading(loading), common, &settings.network, approvals)
}

/// Returns where the user's own settings are, for a sentence.
pub(super) fn own_place(common: &Common) -> String {
    match user_file(common) {
        nowhere if nowhere.as_os_str().is_empty() => {
            "in a file that you give with --config".to_owned()
        }
        file => format!("in {}", shown(&file)),
    }
}

/// Returns where each setting can be changed, for the advice in refusals.
pub(super) fn places(common: &Common, settings: &Settings) -> Places {
    settings.places(own_place(common), shown).with_tools(hint::command(common, "list"))
}

/// Returns the configured policy with the classes of `--allow` added.
pub(super) fn policy(common: &Common, settings: &Settings, allow: &[SideEffects]) -> Policy {
    allow.iter().fold(settings.policy(&common.workspace), |policy, class| policy.allowing(*class))
}

/// Returns the path of this program. On Linux the path through `/proc` survives replacement of the
/// file.
pub(super) fn this_program() -> io::Result<PathBuf> {
    let held = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
    if held.exists() { Ok(held) } else { std::env::current_exe() }
}

/// Returns the options of `shell`, with this program as its helper process.
fn shell(settings: &Settings) -> ShellOptions {
    match this_program() {
        Ok(program) => settings.shell().helper(ShellHelper::palisade(program)),
        Err(error) => {
            tracing::warn!(
                "commands of `shell` have no helper, since this program does not find itself: {error}"
            );
            settings.shell()
        }
    }
}

/// Returns the compiler, with this program as its child process.
pub(super) fn compiler(settings: &Settings) -> Compiler {
    match this_program() {
        Ok(program) => {
            Compiler::Child(ChildCompiler::palisade(program).limits(settings.compile_limits()))
        }
        Err(error) => {
            tracing::warn!(
                "plugins are compiled in this process, since the program does not find itself: {error}"
            );
            Compiler::InProcess(settings.compile_limits())
        }
    }
}

/// Returns the cache mode: `PALISADE_CACHE` names a directory for compiled code, or is `off`.
pub(super) fn cache_mode() -> CacheMode {
    match std::env::var_os("PALISADE_CACHE") {
        Some(value) if value == "off" => CacheMode::Off,
        Some(value) if !value.is_empty() => CacheMode::Directory(value.into()),
        _ => CacheMode::Default,
    }
}

/// Returns the advice for a run without any tool.
pub(super) fn without_tools(settings: &Settings) -> String {
    let plugins = "Give a directory of .wasm files with --plugins";
    match &settings.builtin.origin {
        Origin::Flag(flag) => format!("{plugins}, or leave out {flag}"),
        Origin::File(file) => {
            let file = visible(&file.display().to_string());
            format!("{plugins}, or take `plugins.builtin = false` out of {file}")
        }
        Origin::Default | Origin::Environment(_) => plugins.to_owned(),
    }
}

/// Reports rejected plugin files and empty plugin directories.
pub(super) fn show_missing(host: &Host) {
    show_rejected(&host.rejected());
    for directory in host.empty_directories() {
        let directory = visible(&directory.display().to_string());
        output::note(&format!(
            "there is no `.wasm` file in {directory}; directories below it are not looked into"
        ));
    }
}

/// Reports plugins that were rejected because another plugin has their name or tool name: a call
/// may reach another tool than intended.
pub(super) fn show_clashes(host: &Host) {
    let mut rejected = host.rejected();
    rejected.retain(|rejected| rejected.cause == Cause::NameTaken);
    show_rejected(&rejected);
}

/// Reports files that may claim these tool names once they are compiled: a call may reach another
/// tool than intended.
pub(super) fn show_undecided(common: &Common, host: &Host, tools: &[&str]) {
    for tool in tools {
        let undecided = host.undecided_before(tool);
        let Some(first) = undecided.first() else { continue };
        let others = match undecided.len() - 1 {
            0 => String::new(),
            others => format!(" (and {others} more)"),
        };
        let owner = host
            .registry()
            .get(tool)
            .ok()
            .and_then(|owner| owner.origin().file().map(str::to_owned));
        let file = &first.file;
        let owner = owner.unwrap_or_default();
        let list = hint::command(common, "list");
        output::note(&format!(
            "`{tool}` is the tool of {owner}, but {file}{others} stands before that, is not compiled, and may take the name; \
             `{list}` compiles it"
        ));
    }
}

/// Reports rejected plugins.
pub(super) fn show_rejected(rejected: &[Rejected]) {
    for Rejected { file, reason, .. } in rejected {
        output::quoting_note(&format!("rejected {file}: {reason}"));
    }
}
