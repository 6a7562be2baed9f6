//! A session: the caller's workspace, policy, visible tools, concurrency limits and calls in
//! flight.

mod builder;
mod by_id;
mod concurrency;
mod floor;
mod in_flight;
mod tool_lists;

pub use builder::SessionBuilder;
pub(crate) use builder::cut_id;
pub(crate) use by_id::SessionsById;
pub(crate) use concurrency::{ConcurrencyLimits, SessionPermits, Slots};
pub(crate) use floor::{Floor, ListOf};
pub(crate) use in_flight::{CallInFlight, CallSlot};
pub use tool_lists::{Advertised, Allowed, Presentation};

use crate::execution::share::Share;
use crate::execution::{OwnerShares, SessionShares};
use crate::policy::{Mode, Policy};
use crate::registry::{Registered, Role};
use crate::tool::{CallId, Digest, SideEffects};
use crate::workspace::Workspace;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The default limit on a session's concurrent calls.
pub const CONCURRENCY: u32 = 4;

/// The shared environment of a caller's calls. Clones share it.
#[derive(Clone)]
pub struct Session(Arc<Inner>);

struct Inner {
    id: Option<Arc<str>>,
    place: Option<by_id::Place>,
    workspace: Arc<Workspace>,
    policy: Policy,
    advertised: Advertised,
    presentation: Presentation,
    permitted: Allowed,
    /// The host that has begun the session.
    host: Option<Arc<Floor>>,
    concurrency: ConcurrencyLimits,
    shares: Option<SessionShares>,
    in_flight: in_flight::CallsInFlight,
    allowed: Mutex<HashSet<Allowance>>,
    allowed_more: tokio::sync::Notify,
}

/// The key of a remembered *always*. A tool with other code, of another class or of another plugin
/// is a different tool: two plugins with the same code may have different settings.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Allowance {
    pub(crate) plugin: Option<Arc<str>>,
    pub(crate) digest: Digest,
    pub(crate) tool: Arc<str>,
    pub(crate) class: SideEffects,
}

impl Session {
    /// Creates a session with the caller's id, a limit of [`CONCURRENCY`] calls and all tools
    /// visible.
    ///
    /// In a host that has not begun it, such a session may at most what the host's own policy and
    /// list of tools allow: the stricter of both decides. See
    /// [`Host::new_session`](crate::Host::new_session) for one with the host's settings.
    #[must_use]
    pub fn new(id: &str, workspace: Arc<Workspace>, policy: Policy) -> Self {
        Self::builder(workspace).id(id).policy(policy).build()
    }

    /// Creates a session builder. The host's own policy and list of tools bind the session as with
    /// [`new`](Self::new).
    #[must_use]
    pub fn builder(workspace: Arc<Workspace>) -> SessionBuilder {
        SessionBuilder::new(workspace)
    }

    /// Returns the session's id, if there is one.
    #[must_use]
    pub fn id(&self) -> Option<&Arc<str>> {
        self.0.id.as_ref()
    }

    /// Returns the session's workspace.
    #[must_use]
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.0.workspace
    }

    /// Returns the session's policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.0.policy
    }

    /// Returns true if the session shows this tool. A hidden tool can still be called, so that
    /// older conversations keep working; [`Allowed`] or a deny rule forbids it.
    #[must_use]
    pub fn advertises(&self, tool: &Registered) -> bool {
        let is_presented = match self.0.presentation {
            Presentation::Tools => true,
            Presentation::Programs => tool.callees().is_some(),
        };
        is_presented && self.shows_to_programs(tool)
    }

    /// Returns true if the caller of the session may call this tool itself, and not only by a
    /// program.
    pub(crate) fn presents(&self, tool: &Registered) -> bool {
        match (self.0.presentation, tool.role()) {
            (Presentation::Tools, _) | (_, Role::Offering) => true,
            (Presentation::Programs, Role::Tool) => self.advertises(tool),
        }
    }

    /// Returns true if the session shows this tool to the programs that it runs.
    pub(crate) fn shows_to_programs(&self, tool: &Registered) -> bool {
        self.0.advertised.includes(tool)
    }

    /// Returns true if calls of this tool are not refused for its name. The policy decides on them
    /// next.
    #[must_use]
    pub fn permits(&self, tool: &Registered) -> bool {
        match tool.role() {
            Role::Tool => self.0.permitted.includes(tool),
            Role::Offering => true,
        }
    }

    /// Returns true if the session lists this tool: it shows and permits the tool, and the policy
    /// does not deny it. [`Host::tools`](crate::Host::tools) also leaves out what the host refuses.
    #[must_use]
    pub fn lists(&self, tool: &Registered) -> bool {
        let mode = || self.0.policy.decide(tool.definition(), tool.origin());
        self.advertises(tool) && self.permits(tool) && mode() != Mode::Deny
    }

    /// Returns the names in the session's own rules, lists and limits.
    pub(crate) fn names_of_tools(&self) -> impl Iterator<Item = String> {
        let lists = self.0.advertised.names().iter().chain(self.0.permitted.names());
        let limits = self.0.concurrency.names();
        self.0.policy.tool_rules().chain(lists.chain(limits).cloned())
    }

    /// Cancels the call of this id, whether it is queued, waits for an answer or runs. Returns
    /// false if no such call is in flight.
    pub fn cancel(&self, call: &CallId) -> bool {
        self.0.in_flight.cancel(call)
    }

    /// Cancels the calls in flight of a turn and returns their number.
    pub fn cancel_turn(&self, turn_id: &str) -> usize {
        self.0.in_flight.cancel_turn(turn_id)
    }

    /// Cancels all calls in flight and returns their number. Later calls are not affected.
    pub fn cancel_all(&self) -> usize {
        self.0.in_flight.cancel_all()
    }

    /// Cancels all calls of the session, including later ones.
    pub fn close(&self) {
        self.0.in_flight.close();
    }

    /// Returns the number of calls in flight, including those that wait.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.0.in_flight.len()
    }

    /// Returns true if a call in flight is cancelled, or about to be.
    pub(crate) fn is_stopped(&self, call: CallSlot) -> bool {
        self.0.in_flight.is_stopped(call)
    }

    pub(crate) fn enter(&self, call: &CallId, turn: Option<&Arc<str>>) -> CallInFlight<'_> {
        self.0.in_flight.enter(call, turn)
    }

    /// Returns the shares of a tool's calls, if the session has shares of its own.
    pub(crate) fn shares(&self, tool: &Registered) -> Option<Arc<OwnerShares>> {
        self.0.shares.as_ref().map(|shares| shares.of(tool.owner()))
    }

    /// Returns the share of the turns to compute for this tool's calls.
    #[doc(hidden)]
    #[must_use]
    pub fn turns(&self, tool: &Registered) -> Arc<Share> {
        self.shares(tool).map_or_else(|| tool.turns().clone(), |shares| shares.turns.clone())
    }

    pub(crate) fn concurrency(&self) -> &ConcurrencyLimits {
        &self.0.concurrency
    }

    /// Returns true if the tool is always allowed in this session.
    pub(crate) fn allows(&self, allowance: &Allowance) -> bool {
        self.0.allowed.lock().unwrap_or_else(PoisonError::into_inner).contains(allowance)
    }

    pub(crate) fn always_allow(&self, allowance: Allowance) {
        self.0.allowed.lock().unwrap_or_else(PoisonError::into_inner).insert(allowance);
        self.0.allowed_more.notify_waiters();
    }

    /// Completes when the tool is always allowed: an answer to another request applies to this one,
    /// too.
    pub(crate) async fn allowed(&self, allowance: &Allowance) {
        loop {
            // Created before the check, so that no wake-up is lost between the check and the wait.
            let more = self.0.allowed_more.notified();
            if self.allows(allowance) {
                return;
            }
            more.await;
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.0.id)
            .field("workspace", &self.0.workspace)
            .finish_non_exhaustive()
    }
}
