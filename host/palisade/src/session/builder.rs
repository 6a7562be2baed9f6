//! The builder of a session.

use super::concurrency::ConcurrencyLimit;
use super::in_flight::CallsInFlight;
use super::{
    Advertised, Allowed, CONCURRENCY, ConcurrencyLimits, Floor, Inner, Presentation, Session,
    SessionsById,
};
use crate::execution::SessionShares;
use crate::policy::Policy;
use crate::sandbox::limits;
use crate::tool::Digest;
use crate::tool::text::elided;
use crate::workspace::Workspace;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The builder of a [`Session`]. The defaults below are those of [`Session::builder`]; a builder of
/// [`Host::new_session`](crate::Host::new_session) begins with the settings of its host.
#[derive(Debug)]
pub struct SessionBuilder {
    id: Option<Arc<str>>,
    found_in: Option<SessionsById>,
    workspace: Arc<Workspace>,
    policy: Policy,
    advertised: Advertised,
    presentation: Presentation,
    permitted: Allowed,
    host: Option<Arc<Floor>>,
    limit: ConcurrencyLimit,
    per_tool: BTreeMap<String, u32>,
    shares: Option<SessionShares>,
}

impl SessionBuilder {
    pub(super) fn new(workspace: Arc<Workspace>) -> Self {
        Self {
            id: None,
            found_in: None,
            workspace,
            policy: Policy::default(),
            advertised: Advertised::All,
            presentation: Presentation::Tools,
            permitted: Allowed::All,
            host: None,
            limit: ConcurrencyLimit::Session(CONCURRENCY),
            per_tool: BTreeMap::new(),
            shares: None,
        }
    }

    /// Sets the session's id, cut to 256 characters.
    #[must_use]
    pub fn id(mut self, id: &str) -> Self {
        self.id = Some(cut_id(id).into());
        self
    }

    /// Begins the session for this host, whose settings are its defaults.
    pub(crate) fn begun_by(mut self, host: Arc<Floor>) -> Self {
        self.host = Some(host);
        self
    }

    /// Lets the session be found in this table by its id.
    pub(crate) fn found_in(mut self, sessions: SessionsById) -> Self {
        self.found_in = Some(sessions);
        self
    }

    /// Sets the workspace.
    #[must_use]
    pub fn workspace(mut self, workspace: Arc<Workspace>) -> Self {
        self.workspace = workspace;
        self
    }

    /// Sets the policy. Default: reading tools run and riskier tools ask.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the number of concurrent calls, clamped to 1 to 256. Default: 4. Further calls wait,
    /// for at most 60 s.
    #[must_use]
    pub fn concurrency(mut self, calls: u32) -> Self {
        self.limit = ConcurrencyLimit::Session(within_range(calls));
        self
    }

    /// Sets the number of concurrent calls of one tool, such as one shell at a time. The tool is
    /// named `plugin/tool` or by its name alone.
    #[must_use]
    pub fn tool_concurrency(mut self, tool: impl Into<String>, calls: u32) -> Self {
        self.per_tool.insert(tool.into(), within_range(calls));
        self
    }

    /// Gives the session shares of its own of the process's sandboxes, queue slots, threads,
    /// descriptors, memory and turns to compute, so that other sessions cannot take all of them,
    /// also not with calls of the same plugin. For sessions that stay for more than a few calls,
    /// such as those of a server's clients. Default: all sessions use the shares of each plugin.
    #[must_use]
    pub fn own_shares(mut self) -> Self {
        self.shares = Some(SessionShares::new());
        self
    }

    /// Gives the session [shares of its own](Self::own_shares) within those of its caller: however
    /// many sessions a caller has, together they take nothing that other callers need. The program
    /// that embeds the host decides by which digest it tells callers apart.
    #[must_use]
    pub fn own_shares_of(mut self, caller: Digest) -> Self {
        self.shares = Some(SessionShares::of_caller(caller));
        self
    }

    /// Sets the tools that the session shows. Default: all.
    #[must_use]
    pub fn advertise(mut self, advertised: Advertised) -> Self {
        self.advertised = advertised;
        self
    }

    /// Sets how the session presents its tools. Default: each by itself.
    #[must_use]
    pub fn present(mut self, presentation: Presentation) -> Self {
        self.presentation = presentation;
        self
    }

    /// Sets the tools that the session may call. Default: all.
    #[must_use]
    pub fn allow(mut self, allowed: Allowed) -> Self {
        self.permitted = allowed;
        self
    }

    /// Limits the calls of each message instead of the session, for calls that belong to no
    /// conversation. The process's limits apply as well.
    pub(crate) fn independent_calls(mut self) -> Self {
        let (ConcurrencyLimit::Session(calls) | ConcurrencyLimit::Message(calls)) = self.limit;
        self.limit = ConcurrencyLimit::Message(calls);
        self
    }

    /// Builds the session.
    #[must_use]
    pub fn build(self) -> Session {
        let place = self.found_in.zip(self.id.clone()).map(|(table, id)| table.place(id));
        let session = Arc::new(Inner {
            id: self.id,
            place,
            workspace: self.workspace,
            policy: self.policy,
            advertised: self.advertised,
            presentation: self.presentation,
            permitted: self.permitted,
            host: self.host,
            concurrency: ConcurrencyLimits::new(self.limit, &self.per_tool),
            shares: self.shares,
            in_flight: CallsInFlight::default(),
            allowed: Mutex::default(),
            allowed_more: tokio::sync::Notify::new(),
        });
        if let Some(place) = &session.place {
            place.enter(&session);
        }
        Session(session)
    }
}

/// Returns an id as a session has it.
pub(crate) fn cut_id(id: &str) -> String {
    elided(id, 256)
}

fn within_range(calls: u32) -> u32 {
    calls.clamp(1, limits::LIVE_SANDBOXES)
}
