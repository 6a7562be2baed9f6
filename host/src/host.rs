//! The facade: everything that a program needs to load plugins and call their tools.

mod builder;

pub(crate) use builder::default_cache;
pub use builder::{BuildError, CacheMode, HostBuilder};

use crate::dispatch::Dispatcher;
use crate::plugins::{Loaded, Plugin, Rejected};
use crate::registry::{Registered, Registry};
use crate::sandbox::{Limits, Sandbox};
use crate::session::Session;
use crate::tool::{Call, CallInput, ToolResult};
use crate::workspace::Workspace;
use serde_json::Value;
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
    sandbox: Sandbox,
    loaded: Loaded,
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

    /// Runs a call outside of any conversation, under the host's own policy and in its own workspace. `context` reaches the tool as it is.
    pub async fn call(&self, tool: &str, input: impl Into<CallInput>, context: Value) -> ToolResult {
        self.dispatch(&self.session, Call::new(tool, input).with_context(context)).await
    }

    /// The session that [`call`](Self::call) uses.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The tools there are. Native tools can be added at any time.
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

    /// How long a call of this tool may take, when its caller asks for `asked`.
    #[must_use]
    pub fn time_limit(&self, tool: &Registered, asked: Option<Duration>) -> Duration {
        self.dispatcher.time_limit(tool, asked)
    }

    /// The sandbox that plugins run in.
    #[must_use]
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// The plugins that are loaded.
    #[must_use]
    pub fn plugins(&self) -> &[Plugin] {
        &self.loaded.plugins
    }

    /// The files that were refused, with the reason for each.
    #[must_use]
    pub fn rejected(&self) -> &[Rejected] {
        &self.loaded.rejected
    }
}
