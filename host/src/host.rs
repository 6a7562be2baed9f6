//! The facade: everything that a program needs to load plugins and call their tools.

mod announce;
mod builder;
mod cache;
mod error;
mod state;
mod times;

pub use builder::{CacheMode, HostBuilder};
pub(crate) use cache::{default_cache, is_unwritable, open_cache};
pub use error::BuildError;
pub(crate) use state::state_directories;

use crate::dispatch::{Dispatcher, Foreseen, Party, Transcript};
use crate::events::{EventStream, Events};
use crate::plugins::{Compiling, Loading, Plugin, Progress, Rejected, Rescan, Watch, WatchError};
use crate::registry::{Registered, Registry};
use crate::sandbox::{Limits, Offered, Sandbox};
use crate::session::{Session, SessionBuilder};
use crate::tool::formats::{Format, Strictness, Weakening, export_all};
use crate::tool::{Call, CallInput, Definition, ErrorKind, ToolResult};
use crate::workspace::Workspace;
use serde_json::Value;
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
}

impl Host {
    /// Starts configuring a host.
    #[must_use]
    pub fn builder() -> HostBuilder {
        HostBuilder::default()
    }

    /// Runs a call in a session. Never fails: whatever goes wrong is in the result.
    ///
    /// Needs a tokio runtime with its timers enabled. The call runs inside this future, on the thread that polls it, and ends when the future is dropped.
    pub async fn dispatch(&self, session: &Session, call: Call) -> ToolResult {
        self.dispatcher.dispatch(session, call).await
    }

    /// As [`dispatch`](Self::dispatch), on behalf of somebody who can be asked about this call.
    pub async fn dispatch_as(&self, session: &Session, call: Call, party: &Party) -> ToolResult {
        self.dispatcher.dispatch_as(session, call, party).await
    }

    /// What a plugin offers besides tools, as a tool that is in no registry.
    pub(crate) fn offered(&self, plugin: &Plugin, offered: Offered) -> Option<Arc<Registered>> {
        let (definition, factory) =
            self.sandbox.offering(plugin.name(), plugin.prepared(), (offered, self.dispatcher.limits))?;
        Some(Registered::apart(definition, factory, plugin.origin()))
    }

    /// Runs a call of this very tool, whatever has its name by now.
    pub(crate) async fn dispatch_to(
        &self,
        session: &Session,
        call: (Call, Arc<Registered>),
        party: &Party,
    ) -> ToolResult {
        self.dispatcher.dispatch_to(session, call, party).await
    }

    /// As [`dispatch`](Self::dispatch), with so much time for the run itself, at most 600 s.
    pub async fn dispatch_with_timeout(&self, session: &Session, call: Call, time: Duration) -> ToolResult {
        self.dispatch(session, call.with_timeout(time)).await
    }

    /// Runs the calls of one message: at once as far as the session's cap allows, each in a task of its own. Results come in the order of the calls.
    ///
    /// Dropping the future ends all of them.
    pub async fn dispatch_all(&self, session: &Session, calls: Vec<Call>) -> Vec<ToolResult> {
        self.dispatcher.dispatch_all(session, calls).await
    }

    /// As [`dispatch_all`](Self::dispatch_all), with every result put into a transcript, also those of unknown tools, refusals, and calls that were cancelled
    /// before their start: a conversation with an answer to every call stays valid. Dropping the future records what was left as cancelled.
    pub async fn dispatch_into(
        &self,
        session: &Session,
        calls: Vec<Call>,
        transcript: &mut dyn Transcript,
    ) -> Vec<ToolResult> {
        self.dispatcher.dispatch_into(session, calls, transcript).await
    }

    /// What would happen to a call, without running anything or asking anybody.
    ///
    /// # Errors
    ///
    /// Where there is no such tool.
    pub fn foresee(&self, session: &Session, call: Call) -> Result<Foreseen, ErrorKind> {
        self.dispatcher.foresee(session, call)
    }

    /// Starts a session with an id of the caller's choosing, in the host's workspace, under its policy and its caps.
    #[must_use]
    pub fn new_session(&self, id: &str) -> SessionBuilder {
        self.defaults.begin(self.workspace()).id(id)
    }

    /// The definitions that a session is shown, in the order of registration.
    #[must_use]
    pub fn definitions(&self, session: &Session) -> Vec<Definition> {
        let tools = self.registry().tools();
        tools.iter().map(|tool| tool.definition()).filter(|tool| session.advertises(tool)).cloned().collect()
    }

    /// The definitions that a session is shown, in a provider's format, and what of them that format cannot express.
    #[must_use]
    pub fn export(&self, session: &Session, format: Format, strictness: Strictness) -> (Value, Vec<Weakening>) {
        let definitions = self.definitions(session);
        export_all(&definitions.iter().map(Definition::view).collect::<Vec<_>>(), format, strictness)
    }

    /// All that happens from now on, to be read at leisure.
    #[must_use]
    pub fn events(&self) -> EventStream {
        self.hub().stream()
    }

    /// Where subscribers are added and taken away while the host runs.
    #[must_use]
    pub fn hub(&self) -> &Events {
        &self.dispatcher.events
    }

    /// Runs a call outside of any conversation, under the host's own policy and in its own workspace. `context` reaches the tool as it is.
    ///
    /// Such calls are independent of each other: no session's cap holds for them, only the process's bound of 256 sandboxes.
    pub async fn call(&self, tool: &str, input: impl Into<CallInput>, context: Value) -> ToolResult {
        self.dispatch(&self.session, Call::new(tool, input).with_context(context)).await
    }

    /// The session that [`call`](Self::call) uses.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The tools there are. Native tools can be added at any time; while plugins are loaded in the background, a name that is free may still be one of theirs.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.dispatcher.registry
    }

    /// The workspace of the host's own session.
    #[must_use]
    pub fn workspace(&self) -> &Arc<Workspace> {
        self.session.workspace()
    }

    /// The limits of each call.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.dispatcher.limits
    }

    /// How long a question stands.
    pub(crate) fn confirmation_timeout(&self) -> Duration {
        self.dispatcher.confirmation_timeout
    }

    /// How long a call of this tool may take, when its caller asks for `asked`.
    #[must_use]
    pub fn time_limit(&self, tool: &Registered, asked: Option<Duration>) -> Duration {
        self.dispatcher.time_limit(tool, asked)
    }

    /// How many of the host's own threads hang in the kernel at this moment and were given up.
    #[must_use]
    pub fn lost_threads(&self) -> usize {
        self.dispatcher.threads.as_ref().map_or(0, |threads| threads.lost())
    }

    /// The sandbox that plugins run in.
    #[must_use]
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// The plugins that are loaded by now, in the order in which they were looked for.
    #[must_use]
    pub fn plugins(&self) -> Vec<Plugin> {
        self.loading.loaded().plugins
    }

    /// The plugin that a tool is of; nothing for a native one. A file may bear the name of another plugin, and hold the bytes of a third.
    #[must_use]
    pub fn plugin_of(&self, tool: &Registered) -> Option<Plugin> {
        let (name, digest) = (tool.origin().plugin(), tool.origin().digest());
        let is_its = |plugin: &Plugin| (name, digest) == (Some(plugin.name()), Some(plugin.digest()));
        self.find_plugin(|plugin| is_its(plugin).then(|| plugin.clone()))
    }

    /// What is first found of the plugins that are loaded by now.
    pub(crate) fn find_plugin<T>(&self, what: impl FnMut(&Plugin) -> Option<T>) -> Option<T> {
        self.loading.find(what)
    }

    /// The plugins that are found and have to be compiled before anything is known of them: they are compiled, or wait for that. Those that a host which was built
    /// for one tool, or from the cache alone, has left out are among them for good.
    #[must_use]
    pub fn compiling(&self) -> Vec<Compiling> {
        self.loading.compiling()
    }

    /// The files that are not compiled, stand before the plugin that has this tool, and may take it.
    pub(crate) fn undecided_before(&self, tool: &str) -> Vec<Compiling> {
        self.loading.undecided_before(tool)
    }

    /// Whether a plugin of this name was found, whatever became of it.
    pub(crate) fn has_found(&self, plugin: &str) -> bool {
        self.loading.has_found(plugin)
    }

    /// The files that were refused by now, with the reason for each.
    #[must_use]
    pub fn rejected(&self) -> Vec<Rejected> {
        self.loading.loaded().rejected
    }

    /// The plugin directories that had no `.wasm` file in them when this host was made: a level too high or too low, most likely.
    #[must_use]
    pub fn empty_directories(&self) -> &[PathBuf] {
        self.loading.empty_directories()
    }

    /// Looks again for plugin files, and returns when what has come, changed or gone is compiled and registered, in one step. Blocks for that long; also until
    /// what still compiled in the background is done.
    ///
    /// Afterwards everything is as after a fresh start, with these exceptions. A file whose bytes are refused now leaves the plugin that it held before, and a
    /// directory that cannot be read, or is another one than at the start, leaves all of its plugins. A file that has become a link, or under
    /// [`HardLinks::Allow`](crate::HardLinks) one more name of another file, is refused where a tool could have written what it leads to. Calls that run end
    /// on the code that they began with. Everything that is wrong with a file is among the rejected, and nothing is an error.
    pub fn rescan(&self) -> Rescan {
        self.loading.rescan()
    }

    /// Looks again as [`rescan`](Self::rescan) does, on a thread of its own, whenever something happens where plugins come from: 100 ms after the last of it, and
    /// every second where it does not end. What the system tells nothing of, such as the target of a link, is seen within 2 s. `heard` is
    /// told there of what each look has found, if that is anything. Ends when what is returned is dropped, or this host is.
    ///
    /// # Errors
    ///
    /// [`WatchError`] where the system gives no thread or no descriptors for it.
    pub fn watch(&self, heard: impl Fn(&Rescan) + Send + 'static) -> Result<Watch, WatchError> {
        Watch::begin(&self.loading, Box::new(heard))
    }

    /// Changes whenever a plugin has come, changed or gone.
    pub(crate) fn changes(&self) -> tokio::sync::watch::Receiver<Progress> {
        self.loading.progress()
    }

    /// How far loading has come: after [`HostBuilder::build`] to its end.
    #[must_use]
    pub fn progress(&self) -> Progress {
        *self.loading.progress().borrow()
    }

    /// Waits until this tool is there, or nothing is being loaded any more that could bring it.
    pub async fn available(&self, tool: &str) {
        self.wait_until(|| self.registry().has(tool)).await;
    }

    /// Waits until nothing is being loaded any more: everything is there then, unless the host was built for one tool.
    pub async fn loaded(&self) {
        self.wait_until(|| false).await;
    }

    /// Waits until nothing is being loaded any more but what an earlier run has not got done.
    pub(crate) async fn loaded_but_the_last(&self) {
        let _ = self.loading.progress().wait_for(|progress| progress.has_come_to_the_last()).await;
    }

    async fn wait_until(&self, enough: impl Fn() -> bool) {
        let mut progress = self.loading.progress();
        // Fails where nobody can report any progress: the loading that this host holds can.
        let _ = progress.wait_for(|progress| progress.has_ended() || enough()).await;
    }
}
