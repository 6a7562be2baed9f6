//! The settings of a server.

use palisade::workspace::Workspace;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The settings of a [`Server`](crate::Server).
#[derive(Debug, Clone)]
pub struct Settings {
    pub(crate) workspaces: Vec<Arc<Workspace>>,
    pub(crate) sessions_per_caller: usize,
    pub(crate) version: String,
    pub(crate) heartbeat: Duration,
    pub(crate) call_time: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            workspaces: Vec::new(),
            sessions_per_caller: 256,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            heartbeat: Duration::from_secs(15),
            call_time: None,
        }
    }
}

impl Settings {
    /// Allows sessions in another workspace than the host's. May be called several times.
    #[must_use]
    pub fn workspace(mut self, workspace: Arc<Workspace>) -> Self {
        self.workspaces.push(workspace);
        self
    }

    /// Sets the number of sessions that one client, or all operators together, may have open.
    /// Default: 256.
    #[must_use]
    pub fn sessions_per_caller(mut self, sessions: usize) -> Self {
        self.sessions_per_caller = sessions;
        self
    }

    /// Sets the version that `/readyz` and the API's description name. Default: that of this crate.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Sets the time between the comments that keep a stream of events alive. Default: 15 s.
    #[must_use]
    pub fn heartbeat(mut self, time: Duration) -> Self {
        self.heartbeat = time;
        self
    }

    /// Sets the longest time of a call, also where its request asks for more. Default: that of its
    /// tool, or of its request.
    #[must_use]
    pub fn call_time(mut self, time: Option<Duration>) -> Self {
        self.call_time = time;
        self
    }

    /// Returns the time of a call whose request asks for this one. `None`: that of its tool.
    pub(crate) fn time_of_call(&self, asked: Option<Duration>) -> Option<Duration> {
        match (asked, self.call_time) {
            (Some(asked), Some(most)) => Some(asked.min(most)),
            (asked, most) => asked.or(most),
        }
    }

    /// Returns the allowed workspace with this path.
    pub(crate) fn find_workspace(&self, path: &Path) -> Option<&Arc<Workspace>> {
        self.workspaces.iter().find(|workspace| workspace.root() == path)
    }
}
