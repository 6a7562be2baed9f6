//! The builder of a host.

mod begin;
mod debug;
mod defaults;

use super::{BuildError, Host};
use crate::confirm::Confirmer;
use crate::dispatch::{CallMode, CallRecorder};
use crate::events::Subscriber;
use crate::execution::{Factory, ToolTime};
use crate::plugins::{AdaptedFile, Approvals, LoadObserver, Shipped, Sources};
use crate::policy::Policy;
use crate::registry::Registry;
use crate::sandbox::powers::Powers;
use crate::sandbox::{Adaptation, CompileStrategy, Compiler, Limits, PluginSettings};
use crate::session::{Advertised, Allowed, Presentation};
use crate::tool::Places;
use crate::workspace::{Commands, HardLinks, PathRules, Reading};
pub(super) use defaults::SessionDefaults;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The location of compiled code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CacheMode {
    /// The user's cache directory, if there is a private one.
    #[default]
    Default,
    /// This directory, which must be private and otherwise empty. Other runs hide it from their
    /// tools: it is recorded in the user's state directory.
    Directory(PathBuf),
    /// No cache: every start compiles.
    Off,
}

/// The builder of a [`Host`]. The defaults:
///
/// - the workspace is the current directory, and the shipped plugins are loaded, and no others;
/// - tools of class none and read run, all others are refused, because there is no confirmer;
/// - a call gets 60 s (600 s for class execute and network) and 128 MiB;
/// - plugins are compiled in this process, and their code is kept in the user's cache directory.
#[derive(Default)]
pub struct HostBuilder {
    workspace: Option<PathBuf>,
    sources: Sources,
    registry: Option<Registry>,
    native: Vec<Factory>,
    limits: Limits,
    plugin_settings: BTreeMap<String, Arc<PluginSettings>>,
    tool_timeouts: BTreeMap<String, ToolTime>,
    session: SessionDefaults,
    confirmer: Option<Arc<dyn Confirmer>>,
    subscribers: Vec<Arc<dyn Subscriber>>,
    recorder: Option<Arc<dyn CallRecorder>>,
    observer: Option<LoadObserver>,
    approvals: Option<Arc<dyn Approvals>>,
    cache: CacheMode,
    compiler: Compiler,
    compile_strategy: CompileStrategy,
    confirmation_timeout: Option<Duration>,
    call_mode: CallMode,
    hard_links: HardLinks,
    path_rules: PathRules,
    commands: Commands,
    places: Places,
    protected: Vec<(PathBuf, Reading)>,
    powers: Option<Arc<dyn Powers>>,
}

impl HostBuilder {
    /// Sets the directory that tools see. Default: the current directory.
    #[must_use]
    pub fn workspace(mut self, directory: impl Into<PathBuf>) -> Self {
        self.workspace = Some(directory.into());
        self
    }

    /// Loads all `.wasm` files of a directory. May be called several times.
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

    /// Serves the functions of a component of another world as tools, under the class of the
    /// adaptation. Their schemas come from the types of the functions. Functions with resources,
    /// and those that are asynchronous, are left out; see
    /// [`Plugin::left_out`](crate::plugins::Plugin::left_out). May be called several times.
    #[must_use]
    pub fn adapt(mut self, file: impl Into<PathBuf>, adaptation: Adaptation) -> Self {
        self.sources.adapted.push(AdaptedFile::new(file.into(), adaptation));
        self
    }

    /// Adds a native tool. May be called several times. A plugin file that claims its name is
    /// rejected.
    #[must_use]
    pub fn tool(mut self, factory: Factory) -> Self {
        self.native.push(factory);
        self
    }

    /// Runs the tools of this registry, such as a [`subset`](Registry::subset) of another host's,
    /// and loads no plugins, not even the shipped ones. The registry is shared: tools that are
    /// added to it later, also by [`tool`](Self::tool), are there for all who hold it. A tool of a
    /// plugin keeps the limits of the host that loaded it, and the files of that host's plugins are
    /// protected here as well.
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// Sets whether the shipped plugins are included. Default: included.
    #[must_use]
    pub fn shipped(mut self, shipped: Shipped) -> Self {
        self.sources.shipped = shipped;
        self
    }

    /// Sets the limits of each call.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the settings of the plugin with this name, its file's name without `.wasm`, in place of
    /// earlier ones. They are no permission: each file with this name gets them, but a
    /// configuration only if no other file has the name.
    #[must_use]
    pub fn plugin_settings(mut self, plugin: &str, settings: PluginSettings) -> Self {
        self.plugin_settings.insert(plugin.to_owned(), Arc::new(settings));
        self
    }

    /// Sets the policy. Default: only reading tools run without confirmation. A session of
    /// [`Host::new_session`] may have another one; any other session can only tighten this one.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.session.policy = policy;
        self
    }

    /// Sets the tools that sessions show, unless they set it themselves. Default: all.
    #[must_use]
    pub fn advertise(mut self, advertised: Advertised) -> Self {
        self.session.advertised = advertised;
        self
    }

    /// Sets how sessions present tools, unless they set it themselves.
    #[must_use]
    pub fn present(mut self, presentation: Presentation) -> Self {
        self.session.presentation = presentation;
        self
    }

    /// Sets the tools that sessions may call. Default: all. A session of [`Host::new_session`] may
    /// have another list; any other session can only tighten this one. See
    /// [`Host::unmatched_rules`] for names that match no tool.
    #[must_use]
    pub fn allow(mut self, allowed: Allowed) -> Self {
        self.session.allowed = allowed;
        self
    }

    /// Sets the number of concurrent calls of a session, 1 to 256. Default: 4.
    #[must_use]
    pub fn concurrency(mut self, calls: u32) -> Self {
        self.session.concurrency = calls;
        self
    }

    /// Sets the number of concurrent calls of one tool in a session. The tool is named
    /// `plugin/tool` (`native/tool` for native tools) or by its name alone; the first is the more
    /// precise and takes precedence.
    #[must_use]
    pub fn tool_concurrency(mut self, tool: impl Into<String>, calls: u32) -> Self {
        self.session.per_tool.insert(tool.into(), calls);
        self
    }

    /// Sets the timeout of one tool's calls, 1 ms to 600 s. A call may override it. The tool is
    /// named as for [`tool_concurrency`](Self::tool_concurrency).
    #[must_use]
    pub fn tool_timeout(mut self, tool: impl Into<String>, time: Duration) -> Self {
        self.tool_timeouts.insert(tool.into(), ToolTime::Set(time));
        self
    }

    #[doc(hidden)]
    pub fn tool_time(mut self, tool: &str, time: ToolTime) -> Self {
        self.tool_timeouts.insert(tool.to_owned(), time);
        self
    }

    /// Sets the confirmer. Default: none; calls that need confirmation are refused.
    #[must_use]
    pub fn confirmer(mut self, confirmer: Arc<dyn Confirmer>) -> Self {
        self.confirmer = Some(confirmer);
        self
    }

    /// Sets how long a confirmation request is open, 1 ms to 24 hours. Default: 5 minutes.
    #[must_use]
    pub fn confirmation_timeout(mut self, timeout: Duration) -> Self {
        self.confirmation_timeout = Some(timeout);
        self
    }

    /// Sends events to a subscriber. May be called several times.
    #[must_use]
    pub fn subscriber(mut self, subscriber: Arc<dyn Subscriber>) -> Self {
        self.subscribers.push(subscriber);
        self
    }

    /// Sets the recorder of calls. Default: none.
    #[must_use]
    pub fn recorder(mut self, recorder: Arc<dyn CallRecorder>) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Sets an observer for the steps of loading.
    #[must_use]
    pub fn observe_loading(mut self, observer: LoadObserver) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Sets the approvals of plugin files. A plugin that they do not approve describes itself, and
    /// nothing else of it runs: see [`Host::unapproved`]. Default: all files that this builder
    /// names are approved.
    #[must_use]
    pub fn approvals(mut self, approvals: Arc<dyn Approvals>) -> Self {
        self.approvals = Some(approvals);
        self
    }

    /// Sets the location of compiled code.
    #[must_use]
    pub fn cache(mut self, cache: CacheMode) -> Self {
        self.cache = cache;
        self
    }

    /// Sets the compiler for uncached plugin files. Default: in this process; see [`Compiler`].
    #[must_use]
    pub fn compiler(mut self, compiler: Compiler) -> Self {
        self.compiler = compiler;
        self
    }

    /// Sets whether plugins are ready after a quick compilation or after an optimised one. Default:
    /// after a quick one. See [`CompileStrategy`].
    #[must_use]
    pub fn compile_strategy(mut self, strategy: CompileStrategy) -> Self {
        self.compile_strategy = strategy;
        self
    }

    /// Sets where calls run. Default: in place. See [`CallMode`] for file systems that may hang.
    #[must_use]
    pub fn call_mode(mut self, mode: CallMode) -> Self {
        self.call_mode = mode;
        self
    }

    /// Sets whether tools may change files with several hard links. Default: not allowed.
    #[must_use]
    pub fn hard_links(mut self, hard_links: HardLinks) -> Self {
        self.hard_links = hard_links;
        self
    }

    /// Denies the paths that these rules deny to the tools, in every workspace. Several rules add
    /// up. Default: none. Commands are not bound: see [`commands`](Self::commands).
    #[must_use]
    pub fn path_rules(mut self, rules: &PathRules) -> Self {
        self.path_rules = self.path_rules.and(rules);
        self
    }

    /// Sets whether tools that path rules do not bind, such as `shell` and those of servers on this
    /// machine, run while there are path rules. Default: they are refused.
    #[must_use]
    pub fn commands(mut self, commands: Commands) -> Self {
        self.commands = commands;
        self
    }

    /// Write-protects a path in every workspace against all tools but `shell`, by every name that
    /// leads to it. It need not exist yet. May be called several times. Plugin locations, caches
    /// and every `.git` are always protected.
    #[must_use]
    pub fn protect(mut self, path: impl Into<PathBuf>) -> Self {
        self.protected.push((path.into(), Reading::Allowed));
        self
    }

    /// Sets the locations of the operator's settings. Default: none, so that the advice in refusals
    /// names functions of this library.
    #[must_use]
    pub fn places(mut self, places: Places) -> Self {
        self.places = places;
        self
    }

    /// Sets the source of powers beyond the classes of tools, such as the grants of
    /// `palisade-net`. Default: none; no code for powers is linked.
    #[must_use]
    pub fn powers(mut self, powers: Arc<dyn Powers>) -> Self {
        self.powers = Some(powers);
        self
    }

    /// Like [`protect`](Self::protect), and refuses reads of the path too: for the host's own
    /// files.
    #[must_use]
    pub fn deny_read(mut self, path: impl Into<PathBuf>) -> Self {
        self.protected.push((path.into(), Reading::Refused));
        self
    }

    /// Opens the workspace and loads the plugins. Blocks while plugins compile, on all cores. Warns
    /// in the log of rules for tools that do not exist; see [`Host::unmatched_rules`].
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the workspace or a plugin directory cannot be opened, a limit is out of
    /// range, or this machine cannot run WebAssembly. Not for bad plugins: see [`Host::rejected`].
    pub fn build(self) -> Result<Host, BuildError> {
        let host = self.begin()?;
        host.loading.finish();
        host.warn_of_unmatched_rules();
        Ok(host)
    }

    /// Like [`build`](Self::build), but compiles on background threads: cached plugins are
    /// available at once, the others one by one; see [`Host::wait_for_tool`],
    /// [`Host::wait_until_loaded`] and [`Host::compiling`]. If two files claim a name, the first
    /// takes it once compiled.
    ///
    /// # Errors
    ///
    /// The errors of [`build`](Self::build).
    pub fn build_in_background(self) -> Result<Host, BuildError> {
        let host = self.begin()?;
        host.loading.go_on();
        Ok(host)
    }

    /// Like [`build`](Self::build), but compiles nothing: only cached plugins are available. See
    /// [`Host::compiling`] for the others.
    ///
    /// # Errors
    ///
    /// The errors of [`build`](Self::build).
    pub fn build_from_cache(self) -> Result<Host, BuildError> {
        self.begin()
    }

    /// Like [`build`](Self::build), but loads only what a call of this tool needs: the shipped
    /// plugin or first file with the tool, and earlier files, which could claim its name. Some of
    /// those stay uncompiled: files without approval, files that an earlier run did not finish, and
    /// all if the tool is cached and of class none or read. See [`Host::compiling`].
    ///
    /// # Errors
    ///
    /// The errors of [`build`](Self::build). If no plugin has the tool, all files are loaded.
    pub fn build_for(self, tool: &str) -> Result<Host, BuildError> {
        self.build_for_all(&[tool])
    }

    /// Like [`build_for`](Self::build_for), for several tools.
    ///
    /// # Errors
    ///
    /// The errors of [`build`](Self::build).
    pub fn build_for_all(self, tools: &[&str]) -> Result<Host, BuildError> {
        let host = self.begin()?;
        host.loading.finish_for(tools);
        if tools.iter().any(|tool| !host.registry().has(tool)) {
            host.loading.finish();
        }
        Ok(host)
    }
}
