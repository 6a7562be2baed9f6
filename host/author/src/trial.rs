//! Calls of a plugin in a scratch workspace, under a host of its own.

use crate::case::{self, Files, OtherEntries};
use palisade::internal::{PRIVATE_PREFIX, Powers};
use palisade::plugins::{Plugin, Shipped};
use palisade::policy::{Mode, Policy};
use palisade::sandbox::{CompileStrategy, Compiler, World};
use palisade::tool::text::visible;
use palisade::{BuildError, CacheMode, Call, CancellationToken, Host, SideEffects, ToolResult};
use serde_json::Value;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Maximum size of all files of the scratch workspace, in bytes. They are compared after each call.
const LARGEST: u64 = 256 << 20;

/// How plugins are compiled. The settings of the user are left out, so that a report holds on other
/// machines as well.
#[derive(Clone, Default)]
pub struct Engine {
    /// Where plugins are compiled.
    pub compiler: Compiler,
    /// Where their code is kept.
    pub cache: CacheMode,
    /// The powers of plugins. A plugin that needs one is refused without it.
    pub powers: Option<Arc<dyn Powers>>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("compiler", &self.compiler)
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

/// A plugin that can be called.
#[derive(Debug)]
pub struct Trial {
    directory: TempDir,
    host: Host,
    plugin: Plugin,
    runtime: tokio::runtime::Runtime,
}

/// A plugin cannot be tried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrialError {
    /// The host refuses the plugin, with the reason.
    #[error("{reason}")]
    Refused {
        /// The reason.
        reason: String,
    },
    /// The host cannot be built.
    #[error(transparent)]
    Host(#[from] BuildError),
    /// The file does not exist.
    #[error("there is no file `{path}`")]
    NoFile {
        /// The file.
        path: String,
    },
    /// The file cannot be read.
    #[error("cannot read `{path}`: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// The reason.
        reason: String,
    },
    /// The scratch workspace cannot be used.
    #[error("the scratch workspace cannot be used: {0}")]
    Scratch(#[from] io::Error),
}

/// The end of a call that its caller sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The deadline of the call.
    pub timeout: Duration,
    /// The time after which the caller cancels, if it does.
    pub cancel_after: Option<Duration>,
}

impl Bounds {
    /// Returns a deadline only.
    #[must_use]
    pub fn within(timeout: Duration) -> Self {
        Self { timeout, cancel_after: None }
    }
}

impl Trial {
    /// Loads a plugin that is expected to have this world.
    ///
    /// # Errors
    ///
    /// [`TrialError::Refused`] if the host refuses it, and others if it cannot be tried.
    pub fn open(engine: &Engine, file: &Path, world: &World) -> Result<Self, TrialError> {
        if !file.is_file() {
            return Err(TrialError::NoFile { path: visible(&file.display().to_string()) });
        }
        let directory = scratch()?;
        let workspace = directory.path().join("workspace");
        fs::create_dir(&workspace)?;
        let auto = SideEffects::ALL.into_iter();
        let policy =
            auto.fold(Policy::default(), |policy, class| policy.with_class(class, Mode::Auto));
        let host = Host::builder()
            .workspace(&workspace)
            .shipped(Shipped::LeftOut)
            .compiler(engine.compiler.clone())
            // A cost is that of the code which serves the calls in the end.
            .compile_strategy(CompileStrategy::OptimizedOnly)
            .cache(engine.cache.clone())
            .policy(policy);
        let host = match world {
            World::Tool => host.plugin_file(file),
            World::Functions(adaptation) => host.adapt(file, (**adaptation).clone()),
        };
        let host = match &engine.powers {
            Some(powers) => host.powers(powers.clone()),
            None => host,
        };
        let host = host.build()?;
        let plugin = match (host.rejected().first(), host.plugins().into_iter().next()) {
            (None, Some(plugin)) => plugin,
            (rejected, _) => {
                let reason = rejected.map_or_else(String::new, |it| it.reason.clone());
                return Err(TrialError::Refused { reason });
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { directory, host, plugin, runtime })
    }

    /// Returns the plugin.
    #[must_use]
    pub fn plugin(&self) -> &Plugin {
        &self.plugin
    }

    /// Replaces all files of the workspace.
    ///
    /// # Errors
    ///
    /// If they cannot be replaced.
    pub fn reset(&self, files: &Files) -> io::Result<()> {
        let workspace = self.workspace();
        for entry in fs::read_dir(&workspace)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
        case::write_files(&workspace, files)
    }

    /// Returns all files of the workspace.
    ///
    /// # Errors
    ///
    /// If they cannot be read, or have more than 256 MiB together.
    pub fn files(&self) -> io::Result<Files> {
        case::read_files(&self.workspace(), LARGEST, OtherEntries::LeftOut)
    }

    /// Calls a tool.
    pub fn call(&self, tool: &str, input: &Value, bounds: Bounds) -> ToolResult {
        let cancel = CancellationToken::new();
        let call = Call::new(tool, input.clone())
            .with_timeout(bounds.timeout)
            .with_cancellation(cancel.clone());
        let ended = self.host.dispatch(self.host.session(), call);
        self.runtime.block_on(async {
            let Some(after) = bounds.cancel_after else { return ended.await };
            tokio::pin!(ended);
            tokio::select! {
                result = &mut ended => return result,
                () = tokio::time::sleep(after) => cancel.cancel(),
            }
            ended.await
        })
    }

    /// Returns the paths that a call declares to change, as far as its input tells.
    #[must_use]
    pub fn declared(&self, tool: &str, input: &Value) -> Vec<String> {
        let call = Call::new(tool, input.clone());
        let explained = self.host.explain(self.host.session(), call);
        explained.ok().and_then(|it| it.changes.ok()).unwrap_or_default()
    }

    fn workspace(&self) -> PathBuf {
        self.directory.path().join("workspace")
    }
}

/// Creates a directory that only its user can access, whatever the umask, and no tool of another
/// run.
pub(crate) fn scratch() -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PRIVATE_PREFIX).permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.tempdir()
}
