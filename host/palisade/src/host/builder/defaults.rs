//! The defaults of new sessions.

use crate::host::BuildError;
use crate::policy::Policy;
use crate::sandbox::limits;
use crate::session::{
    Advertised, Allowed, CONCURRENCY, Floor, Presentation, Session, SessionBuilder,
};
use crate::workspace::Workspace;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The defaults of new sessions.
#[derive(Clone)]
pub(in crate::host) struct SessionDefaults {
    pub(in crate::host) policy: Policy,
    pub(in crate::host) advertised: Advertised,
    pub(in crate::host) presentation: Presentation,
    pub(in crate::host) allowed: Allowed,
    pub(super) concurrency: u32,
    pub(in crate::host) per_tool: BTreeMap<String, u32>,
}

impl Default for SessionDefaults {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            advertised: Advertised::All,
            presentation: Presentation::Tools,
            allowed: Allowed::All,
            concurrency: CONCURRENCY,
            per_tool: BTreeMap::new(),
        }
    }
}

impl SessionDefaults {
    /// Refuses numbers of concurrent calls that are out of range.
    pub(super) fn check(&self) -> Result<(), BuildError> {
        let is_within = |calls: &u32| (1..=limits::LIVE_SANDBOXES).contains(calls);
        let accepted = "1 to 256 are accepted";
        match (is_within(&self.concurrency), self.per_tool.values().all(is_within)) {
            (true, true) => Ok(()),
            (false, _) => Err(BuildError::Limit { name: "concurrency", accepted }),
            (true, false) => Err(BuildError::Limit { name: "tool_concurrency", accepted }),
        }
    }

    /// Returns what binds the sessions that the host does not begin.
    pub(super) fn floor(&self) -> Arc<Floor> {
        Floor::new(self.policy.clone(), self.allowed.clone())
    }

    /// Begins a session of this host with these defaults.
    pub(in crate::host) fn begin(
        &self,
        workspace: &Arc<Workspace>,
        host: &Arc<Floor>,
    ) -> SessionBuilder {
        let base = Session::builder(workspace.clone())
            .begun_by(host.clone())
            .policy(self.policy.clone())
            .advertise(self.advertised.clone())
            .present(self.presentation)
            .allow(self.allowed.clone())
            .concurrency(self.concurrency);
        self.per_tool
            .iter()
            .fold(base, |session, (tool, calls)| session.tool_concurrency(tool, *calls))
    }
}
