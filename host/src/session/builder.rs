//! Configuring a session.

use super::{CONCURRENCY, Cap, Inner, Session, Slots, flights::Flights};
use crate::policy::Policy;
use crate::sandbox::limits;
use crate::tool::text::elided;
use crate::workspace::Workspace;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Which tools a session is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Advertised {
    /// All that there are.
    #[default]
    All,
    /// Only these.
    Only(Vec<String>),
    /// All but these.
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

/// Configures a [`Session`].
#[derive(Debug)]
pub struct SessionBuilder {
    id: Option<Arc<str>>,
    workspace: Arc<Workspace>,
    policy: Policy,
    advertised: Advertised,
    cap: Cap,
    per_tool: BTreeMap<String, u32>,
}

impl SessionBuilder {
    pub(super) fn new(workspace: Arc<Workspace>) -> Self {
        Self {
            id: None,
            workspace,
            policy: Policy::default(),
            advertised: Advertised::All,
            cap: Cap::OfSession(CONCURRENCY),
            per_tool: BTreeMap::new(),
        }
    }

    /// An id of the caller's choosing; the first 256 characters count.
    #[must_use]
    pub fn id(mut self, id: &str) -> Self {
        self.id = Some(elided(id, 256).into());
        self
    }

    /// Another workspace.
    #[must_use]
    pub fn workspace(mut self, workspace: Arc<Workspace>) -> Self {
        self.workspace = workspace;
        self
    }

    /// Another policy. Default: reading runs, everything riskier asks.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// How many calls run at once: 1 to 256, the nearest of which is taken. Default: 4. Others wait, for at most 60 s.
    #[must_use]
    pub fn concurrency(mut self, calls: u32) -> Self {
        self.cap = Cap::OfSession(within_range(calls));
        self
    }

    /// How many calls of one tool run at once, such as one shell at a time.
    #[must_use]
    pub fn tool_concurrency(mut self, tool: impl Into<String>, calls: u32) -> Self {
        self.per_tool.insert(tool.into(), within_range(calls));
        self
    }

    /// Which tools the session is shown.
    #[must_use]
    pub fn advertise(mut self, advertised: Advertised) -> Self {
        self.advertised = advertised;
        self
    }

    /// For calls that belong to no conversation: the cap holds for the calls of one message, and the process's own bounds for all.
    pub(crate) fn independent_calls(mut self) -> Self {
        let (Cap::OfSession(calls) | Cap::OfMessage(calls)) = self.cap;
        self.cap = Cap::OfMessage(calls);
        self
    }

    /// The session.
    #[must_use]
    pub fn build(self) -> Session {
        Session(Arc::new(Inner {
            id: self.id,
            workspace: self.workspace,
            policy: self.policy,
            advertised: self.advertised,
            slots: Slots::new(self.cap, &self.per_tool),
            flights: Flights::default(),
            allowed: Mutex::default(),
            allowed_more: tokio::sync::Notify::new(),
        }))
    }
}

fn within_range(calls: u32) -> u32 {
    calls.clamp(1, limits::LIVE_SANDBOXES)
}
