//! The least that a host demands of every session.

use super::{Allowed, Session};
use crate::policy::{Decision, Mode, Policy};
use crate::registry::{Registered, Role};
use std::sync::Arc;

/// The policy and the tools of a host. They are the defaults of the sessions that the host begins,
/// whose creator may set others, and bind any other session: for each tool the stricter of both
/// decides.
#[derive(Debug)]
pub(crate) struct Floor {
    policy: Policy,
    allowed: Allowed,
}

/// The decision on a call, and the policy that made it.
pub(crate) struct Ruling<'a> {
    pub(crate) decision: Decision,
    pub(crate) policy: &'a Policy,
}

/// Whose list of tools leaves a tool out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListOf {
    /// The host's, which its operator sets.
    Host,
    /// The session's own, which its creator set.
    Session,
}

impl Floor {
    pub(crate) fn new(policy: Policy, allowed: Allowed) -> Arc<Self> {
        Arc::new(Self { policy, allowed })
    }

    /// Returns true if calls of this tool in this session are not refused for its name.
    pub(crate) fn permits(&self, session: &Session, tool: &Registered) -> bool {
        session.permits(tool) && (self.has_begun(session) || self.allows(tool))
    }

    /// Returns whose list leaves a tool out that a session is not [permitted](Self::permits).
    pub(crate) fn list_without(&self, tool: &Registered) -> ListOf {
        if self.allows(tool) { ListOf::Session } else { ListOf::Host }
    }

    /// Returns the decision on a call of this tool in this session.
    pub(crate) fn rule<'a>(&'a self, session: &'a Session, tool: &Registered) -> Ruling<'a> {
        let by = |policy: &'a Policy| {
            let decision = policy.explain(tool.definition(), tool.origin());
            Ruling { decision, policy }
        };
        let own = by(session.policy());
        if self.has_begun(session) {
            return own;
        }
        let least = by(&self.policy);
        let is_enough = own.decision.mode.is_at_least_as_strict_as(least.decision.mode);
        if is_enough { own } else { least }
    }

    /// Returns true if the session lists this tool: it shows the tool, both permit it, and neither
    /// policy denies it.
    pub(crate) fn lists(&self, session: &Session, tool: &Registered) -> bool {
        session.advertises(tool) && self.lists_to_programs(session, tool)
    }

    /// Returns true if the session lists this tool to the programs that it runs: as
    /// [`lists`](Self::lists), however it presents its tools.
    pub(crate) fn lists_to_programs(&self, session: &Session, tool: &Registered) -> bool {
        session.shows_to_programs(tool)
            && self.permits(session, tool)
            && self.rule(session, tool).decision.mode != Mode::Deny
    }

    fn allows(&self, tool: &Registered) -> bool {
        match tool.role() {
            Role::Tool => self.allowed.includes(tool),
            Role::Offering => true,
        }
    }

    fn has_begun(&self, session: &Session) -> bool {
        session.0.host.as_ref().is_some_and(|host| std::ptr::eq(&**host, self))
    }
}
