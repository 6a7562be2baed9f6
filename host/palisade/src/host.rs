//! The facade for programs that load plugins and call their tools.

mod announce;
mod builder;
pub(crate) mod cache;
mod callees;
mod error;
mod listing;
pub(crate) mod recorded;
pub(crate) mod reply;
mod sessions;
pub(crate) mod state;
mod times;
mod unmatched;

pub use builder::{CacheMode, HostBuilder};
pub use error::BuildError;
pub use listing::Exported;
pub(crate) use state::state_directories;
pub use unmatched::UnmatchedRule;

use crate::dispatch::{Conversation, Dispatcher, Explanation, Requester};
use crate::events::{EventStream, Events};
use crate::plugins::{
    Compiling, LoadProgress, Loading, Plugin, Rejected, Rescan, Watch, WatchError,
};
use crate::registry::{Registered, Registry};
use crate::sandbox::{Limits, Offered, Sandbox};
use crate::session::{Session, SessionsById};
use crate::tool::{Call, CallInput, ErrorKind, ToolResult};
use crate::workspace::Workspace;
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A host with its plugins loaded.
///
/// ```no_run
/// use palisade::{Host, json};
///
/// # async fn example() -> Result<(), palisade::BuildError> {
/// let host = Host::builder().workspace(".").plugins("plugins").build()?;
/// let result = host.call("read_file", json!({"path": "README.md"}), json!({})).await;
/// println!("{result}");
/// # Ok(())
/// # }
/// ```
pub struct Host {
    dispatcher: Dispatcher,
    session: Session,
    defaults: builder::SessionDefaults,
    sandbox: Sandbox,
    loading: Loading,
    exports: listing::Exports,
    callees: callees::DescribedTools,
    sessions: SessionsById,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("session", &self.session)
            .field("registry", &self.dispatcher.registry)
            .field("sandbox", &self.sandbox)
            .finish_non_exhaustive()
    }
}

impl Host {
    /// Creates a host builder.
    #[must_use]
    pub fn builder() -> HostBuilder {
        HostBuilder::default()
    }

    /// Runs a call in a session. It never fails: every error becomes a result.
    ///
    /// It needs a tokio runtime with timers. The call runs inside this future, on the thread that
    /// polls it, and ends when the future is dropped.
    pub async fn dispatch(&self, session: &Session, call: Call) -> ToolResult {
        self.dispatcher.dispatch(session, call).await
    }

    /// Like [`dispatch`](Self::dispatch), with a requester that can be asked about the call.
    pub async fn dispatch_as(
        &self,
        session: &Session,
        call: Call,
        requester: &Requester,
    ) -> ToolResult {
        self.dispatcher.dispatch_as(session, call, requester).await
    }

    /// Returns a document or prompt of a plugin as a tool outside the registry.
    #[doc(hidden)]
    pub fn offered(&self, plugin: &Plugin, offered: Offered) -> Option<Arc<Registered>> {
        let (definition, factory) = plugin.prepared().offering(
            plugin.name(),
            offered,
            self.dispatcher.limits,
            plugin.settings(),
        )?;
        let settings = plugin.settings().cloned();
        Some(Registered::offering(definition, factory, plugin.origin(), settings))
    }

    /// Runs a call of this tool, even if its name now refers to another tool.
    #[doc(hidden)]
    pub async fn dispatch_to(
        &self,
        session: &Session,
        call: Call,
        tool: Arc<Registered>,
        requester: &Requester,
    ) -> ToolResult {
        self.dispatcher.dispatch_to(session, call, tool, requester).await
    }

    /// Runs the calls of one message, each in a task of its own, concurrently up to the session's
    /// limit. Returns the results in the order of the calls.
    ///
    /// Dropping the future ends all of them.
    pub async fn dispatch_all(&self, session: &Session, calls: Vec<Call>) -> Vec<ToolResult> {
        self.dispatcher.dispatch_all(session, calls).await
    }

    /// Like [`dispatch_all`](Self::dispatch_all), and appends every result to a conversation,
    /// including unknown tools, refusals and calls cancelled before their start, because a
    /// conversation is valid only if every call has an answer. Results are appended in the order of
    /// the calls: each as soon as it and all before it have ended.
    ///
    /// Dropping the future appends the rest in that order. A call that has ended keeps its result,
    /// as its event says; any other is recorded as cancelled, with its output so far.
    pub async fn dispatch_into(
        &self,
        session: &Session,
        calls: Vec<Call>,
        conversation: &mut dyn Conversation,
    ) -> Vec<ToolResult> {
        self.dispatcher.dispatch_into(session, calls, conversation).await
    }

    /// Predicts the treatment of a call without running it or asking for confirmation.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] if there is no such tool, [`ErrorKind::PermissionDenied`] if the
    /// session may not call it.
    pub fn explain(&self, session: &Session, call: Call) -> Result<Explanation, ErrorKind> {
        self.dispatcher.explain(session, call)
    }

    /// Returns a stream of all events from now on. It ends when this host and all clones of its
    /// [`event_bus`](Self::event_bus) are gone.
    #[must_use]
    pub fn events(&self) -> EventStream {
        self.event_bus().stream()
    }

    /// Returns the event bus, for adding and removing subscribers while the host runs.
    #[must_use]
    pub fn event_bus(&self) -> &Events {
        &self.dispatcher.events
    }

    /// Runs a call outside any conversation, with the host's policy, its list of tools and its
    /// workspace. `context` is passed to the tool unchanged.
    ///
    /// These limits hold:
    ///
    /// - of each call: the time of [`HostBuilder::tool_timeout`] or [`Limits::timeout`], or else
    ///   60 s, and 600 s for class execute and network; the memory of [`Limits::memory`]; the
    ///   bounds of its input, its output and its file operations;
    /// - of one tool: [`HostBuilder::tool_concurrency`], for all such calls together;
    /// - of the process: 256 sandboxes, [`Limits::total_memory`], 1,024 calls in the queue, each of
    ///   them for at most 60 s, and for each plugin its share of these.
    ///
    /// [`HostBuilder::concurrency`] does not hold: such calls belong to no conversation, so they
    /// share no limit.
    pub async fn call(
        &self,
        tool: &str,
        input: impl Into<CallInput>,
        context: Value,
    ) -> ToolResult {
        self.dispatch(&self.session, Call::new(tool, input).with_context(context)).await
    }

    /// Returns the session that [`call`](Self::call) uses.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the registry. Native tools can be added at any time; while plugins load in the
    /// background, one of them may still claim a name that is free.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.dispatcher.registry
    }

    /// Returns the workspace of the host's own session.
    #[must_use]
    pub fn workspace(&self) -> &Arc<Workspace> {
        self.session.workspace()
    }

    /// Returns the limits of each call.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.dispatcher.limits
    }

    /// Returns the time for which a confirmation request is open.
    #[doc(hidden)]
    pub fn confirmation_timeout(&self) -> Duration {
        self.dispatcher.confirmation_timeout
    }

    /// Returns the time limit of a call of this tool whose caller asks for `asked`.
    #[must_use]
    pub fn time_limit(&self, tool: &Registered, asked: Option<Duration>) -> Duration {
        self.dispatcher.time_limit(tool, asked)
    }

    /// Returns the memory limit of the guest of one call of this tool, in bytes.
    #[must_use]
    pub fn memory_limit(&self, tool: &Registered) -> u64 {
        tool.memory().unwrap_or(self.dispatcher.limits.memory)
    }

    /// Returns the number of the host's own threads that hang in a system call and were abandoned.
    #[must_use]
    pub fn lost_threads(&self) -> usize {
        let threads = [&self.dispatcher.threads, &self.dispatcher.nested_threads];
        threads.into_iter().flatten().map(|threads| threads.lost()).sum()
    }

    /// Returns the sandbox that plugins run in.
    #[must_use]
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Returns the plugins loaded so far, in the order of discovery.
    #[must_use]
    pub fn plugins(&self) -> Vec<Plugin> {
        self.loading.loaded().plugins
    }

    /// Returns the plugin of a tool, or `None` for a native one. The plugin is found by name and
    /// digest, because another file may have either of them.
    #[must_use]
    pub fn plugin_of(&self, tool: &Registered) -> Option<Plugin> {
        let name = tool.origin().plugin();
        let digest = tool.origin().digest();
        let is_its =
            |plugin: &Plugin| (name, digest) == (Some(plugin.name()), Some(plugin.digest()));
        self.find_plugin(|plugin| is_its(plugin).then(|| plugin.clone()))
    }

    /// Returns the first match among the plugins loaded so far.
    #[doc(hidden)]
    pub fn find_plugin<T>(&self, what: impl FnMut(&Plugin) -> Option<T>) -> Option<T> {
        self.loading.find(what)
    }

    /// Returns the plugins that are being compiled or wait for it, of which nothing else is known.
    /// They include those that a host built for one tool or from the cache alone leaves uncompiled
    /// for good.
    #[must_use]
    pub fn compiling(&self) -> Vec<Compiling> {
        self.loading.compiling()
    }

    /// Returns the uncompiled files that precede the plugin of this tool and may claim the tool's
    /// name.
    #[doc(hidden)]
    pub fn undecided_before(&self, tool: &str) -> Vec<Compiling> {
        self.loading.undecided_before(tool)
    }

    /// Returns true if a plugin of this name was found, loaded or not.
    #[doc(hidden)]
    pub fn has_found(&self, plugin: &str) -> bool {
        self.loading.has_found(plugin)
    }

    /// Returns the files rejected so far, with the reason for each.
    #[must_use]
    pub fn rejected(&self) -> Vec<Rejected> {
        self.loading.loaded().rejected
    }

    /// Returns the plugins that are found and not approved, in the order of discovery. Each has
    /// described itself, so that a person can look at it. None of its tools, resources and prompts
    /// is listed, exported or offered, and a call of its tools is refused with
    /// [`PermissionReason::NotApproved`](crate::PermissionReason::NotApproved). Each is among the
    /// [`rejected`](Self::rejected) files as well.
    #[must_use]
    pub fn unapproved(&self) -> Vec<Plugin> {
        self.loading.unapproved()
    }

    /// Returns the plugin directories without a `.wasm` file at startup, which usually means that
    /// the path is one level off.
    #[must_use]
    pub fn empty_directories(&self) -> &[PathBuf] {
        self.loading.empty_directories()
    }

    /// Scans for plugin files again, and registers new, changed and removed plugins in one atomic
    /// step. It blocks until they are compiled and until compilation in the background is done.
    ///
    /// The result is that of a fresh start, with these exceptions. A file that is now rejected
    /// keeps its previous plugin. A directory that cannot be read, or was replaced since startup,
    /// keeps all its plugins. A file that has become a symlink, or under
    /// [`HardLinks::Allow`](crate::workspace::HardLinks) another hard link to a file, is rejected
    /// if a tool could have written its target. Running calls finish on their old code. Problems
    /// with files are listed among the rejected files and are not errors.
    pub fn rescan(&self) -> Rescan {
        self.loading.rescan()
    }

    /// Scans on a separate thread whenever a plugin location has changed. Changed files that have
    /// to be compiled are compiled on other threads, and registered when they are ready.
    /// The thread compares the metadata of the files every 500 ms. After a difference it waits
    /// until nothing has changed for 100 ms, for at most one second. `on_rescan` is called on that
    /// thread with each result that has changes. Another thread watches the
    /// [approvals](HostBuilder::approvals) in the same way, so that a revocation waits for no
    /// scan. Watching ends when the returned value or this host is dropped.
    ///
    /// # Errors
    ///
    /// [`WatchError`] if the system provides no thread.
    pub fn watch(&self, on_rescan: impl Fn(&Rescan) + Send + 'static) -> Result<Watch, WatchError> {
        Watch::begin(&self.loading, Box::new(on_rescan))
    }

    /// Watches the [approvals](HostBuilder::approvals) alone, in the same way as
    /// [`watch`](Self::watch): a revocation removes the tools of a plugin, and an approval adds
    /// those of a file that was found before. No file of a plugin is looked at.
    ///
    /// # Errors
    ///
    /// [`WatchError`] if the system provides no thread.
    pub fn watch_approvals(
        &self,
        on_rescan: impl Fn(&Rescan) + Send + 'static,
    ) -> Result<Watch, WatchError> {
        Watch::of_approvals(&self.loading, Box::new(on_rescan))
    }

    /// Returns a receiver that is notified when a plugin is added, changed or removed.
    #[doc(hidden)]
    pub fn changes(&self) -> tokio::sync::watch::Receiver<LoadProgress> {
        self.loading.progress()
    }

    /// Returns the progress of loading; complete after [`HostBuilder::build`].
    #[must_use]
    pub fn progress(&self) -> LoadProgress {
        *self.loading.progress().borrow()
    }

    /// Waits until this tool is registered, or until loading can no longer add it.
    pub async fn wait_for_tool(&self, tool: &str) {
        self.wait_until(|| self.registry().has(tool)).await;
    }

    /// Waits until loading has ended: everything is loaded then, unless the host was built for one
    /// tool.
    pub async fn wait_until_loaded(&self) {
        self.wait_until(|| false).await;
    }

    async fn wait_until(&self, enough: impl Fn() -> bool) {
        let mut progress = self.loading.progress();
        // An error means that no sender is left; this host's own loader keeps one.
        let _ = progress.wait_for(|progress| progress.has_ended() || enough()).await;
    }
}
