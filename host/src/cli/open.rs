//! Opening what the command line names: configuration, workspace, plugins.

use super::args::Common;
use super::exit::Failure;
use super::live::Loading;
use super::output;
use crate::config::{Origin, Settings};
use crate::host::{CacheMode, Host, HostBuilder};
use crate::native::Confinement;
use crate::plugins::{Rejected, Shipped};
use std::path::PathBuf;

/// The name of the configuration in a workspace.
const PROJECT_FILE: &str = "palisade.toml";

/// The configuration that holds for this command line.
pub(super) fn settings(common: &Common) -> Result<Settings, Failure> {
    let user = user_file(common);
    if let Some(given) = &common.config
        && !given.exists()
    {
        return Err(Failure::usage(format!("the configuration `{}` does not exist", given.display())));
    }
    let mut settings = Settings::from_files(&user, &common.workspace.join(PROJECT_FILE))?;
    settings.apply_environment(|name| std::env::var(name).ok()).map_err(Failure::usage)?;
    let named = std::env::var_os("PALISADE_PLUGINS")
        .map(|list| std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect());
    add_directories(&mut settings, named.unwrap_or_default(), Origin::Environment("PALISADE_PLUGINS"));
    add_directories(&mut settings, common.plugins.clone(), Origin::Flag("--plugins"));
    settings.builtin.set(common.no_builtin.then_some(false), || Origin::Flag("--no-builtin"));
    Ok(settings)
}

/// Directories add up: those of a weaker source come first.
fn add_directories(settings: &mut Settings, more: Vec<PathBuf>, origin: Origin) {
    if !more.is_empty() {
        let all = [settings.directories.value.clone(), more].concat();
        settings.directories.set(Some(all), || origin);
    }
}

/// The user's own file.
pub(super) fn user_file(common: &Common) -> PathBuf {
    use etcetera::BaseStrategy as _;
    let default = || etcetera::choose_base_strategy().map(|base| base.config_dir().join("palisade").join(PROJECT_FILE));
    // A home that is relative would be the workspace's word for where the user's configuration lies.
    common.config.clone().or_else(|| default().ok().filter(|path| path.is_absolute())).unwrap_or_default()
}

/// A host as the command line and the configuration want it, not yet built.
pub(super) fn builder(common: &Common, settings: &Settings) -> HostBuilder {
    let shipped = if settings.builtin.value { Shipped::Included } else { Shipped::LeftOut };
    let base = Host::builder()
        .workspace(&common.workspace)
        .shipped(shipped)
        .limits(settings.limits())
        .policy(settings.policy(&common.workspace))
        .confirmation_timeout(settings.confirm_timeout.value)
        .concurrency(settings.concurrency.value)
        .shell(if settings.shell_unconfined.value { Confinement::Unconfined } else { Confinement::Landlock })
        .hard_links(settings.hard_links.value)
        .protect(common.workspace.join(PROJECT_FILE))
        .cache(cache_mode());
    // Without a home there is no file of the user's.
    let user = Some(user_file(common)).filter(|path| !path.as_os_str().is_empty());
    let base = user.into_iter().fold(base, HostBuilder::hide);
    let loading = Loading::observer();
    let base =
        settings.tool_concurrency.iter().fold(base, |host, (tool, calls)| host.tool_concurrency(tool, calls.value));
    let base = settings.tool_timeout.iter().fold(base, |host, (tool, time)| host.tool_timeout(tool, time.value));
    settings.directories.value.iter().fold(base, HostBuilder::plugins).observe_loading(loading)
}

/// `PALISADE_CACHE` names another directory for compiled code, or `off`.
pub(super) fn cache_mode() -> CacheMode {
    match std::env::var_os("PALISADE_CACHE") {
        Some(value) if value == "off" => CacheMode::Off,
        Some(value) if !value.is_empty() => CacheMode::Directory(value.into()),
        _ => CacheMode::Default,
    }
}

/// Says which plugins were refused.
pub(super) fn show_rejected(rejected: &[Rejected]) {
    for Rejected { file, reason } in rejected {
        output::note(&format!("rejected {file}: {reason}"));
    }
}
