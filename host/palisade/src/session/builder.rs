//! The builder of a session.

use super::concurrency::ConcurrencyLimit;
use super::{CONCURRENCY, ConcurrencyLimits, Inner, Session, in_flight::CallsInFlight};
use crate::execution::SessionShares;
use crate::policy::Policy;
use crate::sandbox::limits;
use crate::tool::text::elided;
use crate::workspace::Workspace;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The tools that a session lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Advertised {
    /// All tools.
    #[default]
    All,
    /// Only the named tools.
    Only(Vec<String>),
    /// All but the named tools.
    Except(Vec<String>),
}

impl Advertised {
    pub(super) fn includes(&self, tool: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.iter().any(|name| name == tool),
            Self::Except(names) => !names.iter().any(|name| name == tool),
        }
    }
}

/// The builder of a [`Session`].
#[derive(Debug)]
pub struct SessionBuilder {
    id: Option<Arc<str>>,
    workspace: Arc<Workspace>,
    policy: Policy,
    advertised: Advertised,
    limit: ConcurrencyLimit,
    per_tool: BTreeMap<String, u32>,
    shares: Option<SessionShares>,
}

impl SessionBuilder {
    pub(super) fn new(workspace: Arc<Workspace>) -> Self {
        Self {
            id: None,
            workspace,
            policy: Policy::default(),
            advertised: Advertised::All,
            limit: ConcurrencyLimit::Session(CONCURRENCY),
            per_tool: BTreeMap::new(),
            shares: None,
        }
    }

    /// Sets the session's id, cut to 256 characters.
    #[must_use]
    pub fn id(mut self, id: &str) -> Self {
        self.id = Some(elided(id, 256).into());
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

    /// Sets the number of concurrent calls of one tool, such as one shell at a time.
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

    /// Sets the tools that the session lists.
    #[must_use]
    pub fn advertise(mut self, advertised: Advertised) -> Self {
        self.advertised = advertised;
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
        Session(Arc::new(Inner {
            id: self.id,
            workspace: self.workspace,
            policy: self.policy,
            advertised: self.advertised,
            concurrency: ConcurrencyLimits::new(self.limit, &self.per_tool),
            shares: self.shares,
            in_flight: CallsInFlight::default(),
            allowed: Mutex::default(),
            allowed_more: tokio::sync::Notify::new(),
        }))
    }
}

fn within_range(calls: u32) -> u32 {
    calls.clamp(1, limits::LIVE_SANDBOXES)
}
