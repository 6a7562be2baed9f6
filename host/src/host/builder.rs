//! Configuring a host.

use super::Host;
use crate::confirm::{Confirmer, NoConfirmer};
use crate::dispatch::{CONFIRMATION_TIMEOUT, Dispatcher};
use crate::events::{Event, Events, PluginFacts, Subscriber};
use crate::execution::Factory;
use crate::native::{Confinement, Shell};
use crate::plugins::{self, LoadError, LoadObserver, Loaded, Plugin, Shipped, Sources};
use crate::policy::Policy;
use crate::registry::Registry;
use crate::sandbox::{Cache, CacheError, EngineError, Limits, Sandbox, limits};
use crate::session::{CONCURRENCY, Session, SessionBuilder};
use crate::workspace::{Workspace, WorkspaceError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Where compiled code is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CacheMode {
    /// In the user's cache directory, where there is one that is private.
    #[default]
    Default,
    /// In this directory, which must be private.
    Directory(PathBuf),
    /// Nowhere: every start compiles.
    Off,
}

/// Configures a [`Host`]. The defaults:
///
/// - the workspace is the current directory;
/// - the shipped plugins are loaded, and no others;
/// - tools of class none and read run, all others are refused, since nobody can be asked;
/// - a call gets 60 s (600 s for class execute and network) and 128 MiB;
/// - compiled code is kept in the user's cache directory.
#[derive(Default)]
pub struct HostBuilder {
    workspace: Option<PathBuf>,
    sources: Sources,
    native: Vec<Factory>,
    shell: Option<Confinement>,
    limits: Limits,
    tool_timeouts: BTreeMap<String, Duration>,
    session: SessionDefaults,
    confirmer: Option<Arc<dyn Confirmer>>,
    subscribers: Vec<Arc<dyn Subscriber>>,
    observer: Option<LoadObserver>,
    cache: CacheMode,
    confirmation_timeout: Option<Duration>,
}

/// What sessions get unless they say otherwise.
#[derive(Clone)]
pub(super) struct SessionDefaults {
    policy: Policy,
    concurrency: u32,
    per_tool: BTreeMap<String, u32>,
}

impl Default for SessionDefaults {
    fn default() -> Self {
        Self { policy: Policy::default(), concurrency: CONCURRENCY, per_tool: BTreeMap::new() }
    }
}

impl SessionDefaults {
    pub(super) fn begin(&self, workspace: &Arc<Workspace>) -> SessionBuilder {
        let base = Session::builder(workspace.clone()).policy(self.policy.clone()).concurrency(self.concurrency);
        self.per_tool.iter().fold(base, |session, (tool, calls)| session.tool_concurrency(tool, *calls))
    }
}

impl HostBuilder {
    /// The directory that tools see. Default: the current directory.
    #[must_use]
    pub fn workspace(mut self, directory: impl Into<PathBuf>) -> Self {
        self.workspace = Some(directory.into());
        self
    }

    /// Loads all `.wasm` files of a directory. Can be given several times.
    #[must_use]
    pub fn plugins(mut self, directory: impl Into<PathBuf>) -> Self {
        self.sources.directories.push(directory.into());
        self
    }

    /// Loads one plugin from its file.
    #[must_use]
    pub fn plugin_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.sources.files.push(file.into());
        self
    }

    /// Adds a native tool. Can be given several times. Its name comes before those of plugins from files, which are rejected where it is taken.
    #[must_use]
    pub fn tool(mut self, factory: Factory) -> Self {
        self.native.push(factory);
        self
    }

    /// How commands of the shipped tool `shell` are held back from the rest of the machine. Default: by the kernel, or not run at all.
    #[must_use]
    pub fn shell(mut self, confinement: Confinement) -> Self {
        self.shell = Some(confinement);
        self
    }

    /// Whether the shipped plugins, and `shell`, are there. Default: they are.
    #[must_use]
    pub fn shipped(mut self, shipped: Shipped) -> Self {
        self.sources.shipped = shipped;
        self
    }

    /// The limits of each call.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What may run at once, what is asked about, what never runs. Default: only reading runs without a question.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.session.policy = policy;
        self
    }

    /// How many calls of a session run at once, 1 to 256. Default: 4.
    #[must_use]
    pub fn concurrency(mut self, calls: u32) -> Self {
        self.session.concurrency = calls;
        self
    }

    /// How many calls of one tool a session runs at once, such as one shell at a time.
    #[must_use]
    pub fn tool_concurrency(mut self, tool: impl Into<String>, calls: u32) -> Self {
        self.session.per_tool.insert(tool.into(), calls);
        self
    }

    /// How long calls of one tool may take, unless the call says otherwise; at most 600 s.
    #[must_use]
    pub fn tool_timeout(mut self, tool: impl Into<String>, time: Duration) -> Self {
        self.tool_timeouts.insert(tool.into(), time);
        self
    }

    /// Who answers questions. Default: nobody, so that calls which need an answer are refused.
    #[must_use]
    pub fn confirmer(mut self, confirmer: Arc<dyn Confirmer>) -> Self {
        self.confirmer = Some(confirmer);
        self
    }

    /// How long a question stands before the call is refused. Default: 5 minutes.
    #[must_use]
    pub fn confirmation_timeout(mut self, timeout: Duration) -> Self {
        self.confirmation_timeout = Some(timeout);
        self
    }

    /// Sends events to a subscriber. Can be given several times.
    #[must_use]
    pub fn subscriber(mut self, subscriber: Arc<dyn Subscriber>) -> Self {
        self.subscribers.push(subscriber);
        self
    }

    /// Shows the steps of loading.
    #[must_use]
    pub fn observe_loading(mut self, observer: LoadObserver) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Where compiled code is kept.
    #[must_use]
    pub fn cache(mut self, cache: CacheMode) -> Self {
        self.cache = cache;
        self
    }

    /// Opens the workspace and loads the plugins. Blocks while plugins compile, on every core.
    ///
    /// # Errors
    ///
    /// [`BuildError`] where the workspace or a plugin directory cannot be opened, a limit is out of range, or this machine cannot run WebAssembly. A plugin
    /// that cannot be loaded is no error: see [`Host::rejected`].
    pub fn build(self) -> Result<Host, BuildError> {
        check(&self.limits)?;
        let workspace = Arc::new(Workspace::open(&self.workspace.unwrap_or_else(|| PathBuf::from(".")))?);
        let sandbox = Sandbox::new(open_cache(self.cache, &workspace)?)?;
        let registry = Registry::new();
        let observer = self.observer.unwrap_or_else(|| Arc::new(|_| {}));
        let native = native(self.sources.shipped, self.shell.unwrap_or(Confinement::Landlock), self.native);
        let loaded = plugins::load(&self.sources, &native, &sandbox, self.limits, &registry, &observer)?;
        let events = Events::new(self.subscribers);
        announce(&events, &loaded);
        let dispatcher = Dispatcher {
            registry,
            confirmer: self.confirmer.unwrap_or_else(|| Arc::new(NoConfirmer)),
            events,
            limits: self.limits,
            tool_timeouts: Arc::new(self.tool_timeouts),
            confirmation_timeout: self.confirmation_timeout.unwrap_or(CONFIRMATION_TIMEOUT),
        };
        let session = self.session.begin(&workspace).independent_calls().build();
        Ok(Host { dispatcher, session, defaults: self.session, sandbox, loaded })
    }
}

/// The shipped native tool comes before those of the program that embeds the host.
fn native(shipped: Shipped, shell: Confinement, own: Vec<Factory>) -> Vec<Factory> {
    let shell = (shipped == Shipped::Included).then(|| Shell::factory(shell));
    shell.into_iter().chain(own).collect()
}

fn announce(events: &Events, loaded: &Loaded) {
    for plugin in &loaded.plugins {
        events.emit(|| Event::PluginLoaded(facts(plugin)));
    }
    for rejected in &loaded.rejected {
        events.emit(|| Event::PluginRejected { file: rejected.file.clone(), reason: rejected.reason.clone() });
    }
}

fn facts(plugin: &Plugin) -> PluginFacts {
    let tools = plugin.definitions().iter().map(|definition| definition.name().to_string()).collect();
    PluginFacts { plugin: plugin.name().into(), digest: plugin.digest(), tools }
}

/// Why a host cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The workspace cannot be opened.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A plugin directory cannot be read, or two tools of the program itself have one name.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The cache directory cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The cache lies where tools could reach it.
    #[error("the cache of compiled code `{}` lies inside the workspace, where tools could read its key; set PALISADE_CACHE to a directory elsewhere, or to off", cache.display())]
    CacheInWorkspace {
        /// Where it lies.
        cache: PathBuf,
    },
    /// This machine cannot run WebAssembly.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A limit is out of range.
    #[error("the limit `{name}` is out of range: {accepted}")]
    Limit {
        /// Which limit.
        name: &'static str,
        /// What would be accepted.
        accepted: &'static str,
    },
}

fn check(given: &Limits) -> Result<(), BuildError> {
    if !(1 << 20..=limits::MAX_MEMORY).contains(&given.memory) {
        return Err(BuildError::Limit { name: "memory", accepted: "1MiB to 512MiB are accepted" });
    }
    if given.total_memory < given.memory {
        return Err(BuildError::Limit {
            name: "total_memory",
            accepted: "at least the memory of one call is accepted",
        });
    }
    match given.timeout {
        Some(timeout) if timeout < Duration::from_millis(1) || timeout > limits::MAX_TIMEOUT => {
            Err(BuildError::Limit { name: "timeout", accepted: "1ms to 600s are accepted" })
        }
        _ => Ok(()),
    }
}

/// The default directory is a convenience: where it cannot be had, every start compiles, and the log says so.
///
/// A cache inside the workspace is not used: a tool could read its key, and compiled code is run as it is.
fn open_cache(mode: CacheMode, workspace: &Workspace) -> Result<Cache, BuildError> {
    match mode {
        CacheMode::Off => Ok(Cache::off()),
        CacheMode::Directory(directory) => outside(Cache::open(&directory)?, workspace),
        CacheMode::Default => Ok(default_cache().map_or_else(Cache::off, |directory| {
            let cache = Cache::open(&directory).map_err(BuildError::from).and_then(|cache| outside(cache, workspace));
            cache.unwrap_or_else(|error| {
                tracing::warn!("every start compiles: {error}");
                Cache::off()
            })
        })),
    }
}

fn outside(cache: Cache, workspace: &Workspace) -> Result<Cache, BuildError> {
    match cache.dir().map(Path::canonicalize) {
        Some(Ok(real)) if real.starts_with(workspace.root()) => Err(BuildError::CacheInWorkspace { cache: real }),
        _ => Ok(cache),
    }
}

/// Where compiled code is kept unless somebody says otherwise.
pub(crate) fn default_cache() -> Option<PathBuf> {
    use etcetera::BaseStrategy as _;
    let base = etcetera::choose_base_strategy().ok()?.cache_dir();
    base.is_absolute().then(|| base.join("palisade").join("compiled"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]
    use super::*;

    #[test]
    fn a_cache_that_tools_could_reach_is_refused() {
        let outer = tempfile::tempdir().unwrap();
        let (inside, beside) = (outer.path().join("ws/cache"), outer.path().join("cache"));
        std::fs::create_dir(outer.path().join("ws")).unwrap();
        let build = |cache: &Path| {
            let mode = CacheMode::Directory(cache.to_owned());
            Host::builder().workspace(outer.path().join("ws")).shipped(Shipped::LeftOut).cache(mode).build().map(drop)
        };
        assert!(matches!(build(&inside), Err(BuildError::CacheInWorkspace { .. })));
        assert!(build(&beside).is_ok());
    }
}
