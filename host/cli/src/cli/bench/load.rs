//! Measures how long it takes to load the plugin of a tool: once with its compilation, and then
//! from the cache, which is in a temporary directory.

use crate::cli::args::Common;
use crate::cli::exit::{Exit, Failure};
use crate::cli::progress::Loading;
use crate::cli::{scratch, setup};
use crate::config::Settings;
use palisade::plugins::{Plugin, Shipped};
use palisade::sandbox::Compiler;
use palisade::{CacheMode, Host};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Number of loads from the cache; the median is reported.
const LOADS: usize = 3;

/// The cost of loading one plugin.
pub(super) struct Load {
    pub(super) plugin: String,
    pub(super) bytes: u64,
    pub(super) compiled: Duration,
    pub(super) cached: Duration,
}

/// Loads the plugin of a tool again. Returns `None` for a native tool.
pub(super) fn of(
    common: &Common,
    settings: &Settings,
    host: &Host,
    tool: &str,
    interrupted: &CancellationToken,
) -> Result<Option<Load>, Failure> {
    let Ok(tool) = host.registry().get(tool) else { return Ok(None) };
    let Some(plugin) = host.plugin_of(&tool) else { return Ok(None) };
    let scratch = scratch::directory().map_err(|error| failure(&plugin, &error))?;
    let file = file(&plugin, scratch.path()).map_err(|error| failure(&plugin, &error))?;
    let bytes = std::fs::metadata(&file).map_err(|error| failure(&plugin, &error))?.len();
    let cache = scratch.path().join("cache");
    let load = || match once(common, settings, &file, &cache, interrupted) {
        _ if interrupted.is_cancelled() => {
            Err(Failure::new(Exit::Interrupted, "the benchmark was interrupted"))
        }
        taken => taken,
    };
    let compiled = load()?;
    let mut cached = (0..LOADS).map(|_| load()).collect::<Result<Vec<_>, _>>()?;
    cached.sort_unstable();
    let cached = cached.get(LOADS / 2).copied().unwrap_or_default();
    Ok(Some(Load { plugin: plugin.name().to_owned(), bytes, compiled, cached }))
}

/// Returns the path of the plugin's file; a shipped plugin is written to the scratch directory
/// first.
fn file(plugin: &Plugin, scratch: &Path) -> std::io::Result<PathBuf> {
    if let Some(path) = plugin.path() {
        return Ok(path.to_owned());
    }
    let shipped = palisade_plugins::all().iter().find(|shipped| shipped.name == plugin.name());
    let shipped = shipped.ok_or(std::io::ErrorKind::NotFound)?;
    let path = scratch.join(shipped.file);
    std::fs::write(&path, shipped.bytes()).map(|()| path)
}

fn once(
    common: &Common,
    settings: &Settings,
    file: &Path,
    cache: &Path,
    interrupted: &CancellationToken,
) -> Result<Duration, Failure> {
    let builder = Host::builder()
        .workspace(&common.workspace)
        .shipped(Shipped::LeftOut)
        .limits(settings.limits())
        .compiler(match setup::compiler(settings) {
            Compiler::Child(child) => Compiler::Child(child.cancelled_by(interrupted.clone())),
            in_process => in_process,
        })
        .cache(CacheMode::Directory(cache.to_owned()))
        .observe_loading(Loading::observer())
        .plugin_file(file);
    let start = Instant::now();
    let host = builder.build()?;
    let taken = start.elapsed();
    match host.rejected().first() {
        Some(rejected) => {
            Err(Failure::new(Exit::Invalid, format!("`{}`: {}", rejected.file, rejected.reason)))
        }
        None => Ok(taken),
    }
}

fn failure(plugin: &Plugin, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Internal, format!("cannot load `{}` again: {error}", plugin.name()))
}
