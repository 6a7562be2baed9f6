//! A session: who calls, in which workspace, under which policy, what it is shown, how much at once, and what can be cancelled together.

mod builder;
mod flights;
mod slots;

pub use builder::{Advertised, SessionBuilder};
pub(crate) use flights::InFlight;
use slots::Cap;
pub(crate) use slots::{Admission, Slots};

use crate::policy::Policy;
use crate::tool::{CallId, Definition, Digest, SideEffects};
use crate::workspace::Workspace;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Calls of a session that run at once, unless somebody says otherwise.
pub const CONCURRENCY: u32 = 4;

/// The surroundings that calls share. Cloning shares.
#[derive(Clone)]
pub struct Session(Arc<Inner>);

struct Inner {
    id: Option<Arc<str>>,
    workspace: Arc<Workspace>,
    policy: Policy,
    advertised: Advertised,
    slots: Slots,
    flights: flights::Flights,
    allowed: Mutex<HashSet<Allowance>>,
    allowed_more: tokio::sync::Notify,
}

/// What an *always* is remembered under: the same name with other code, or of another class, is another tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Allowance {
    pub(crate) digest: Digest,
    pub(crate) tool: Arc<str>,
    pub(crate) class: SideEffects,
}

impl Session {
    /// A session with an id of the caller's choosing, a cap of [`CONCURRENCY`] calls, and every tool in sight.
    #[must_use]
    pub fn new(id: &str, workspace: Arc<Workspace>, policy: Policy) -> Self {
        Self::builder(workspace).id(id).policy(policy).build()
    }

    /// Starts configuring a session.
    #[must_use]
    pub fn builder(workspace: Arc<Workspace>) -> SessionBuilder {
        SessionBuilder::new(workspace)
    }

    /// Its id, if it has one.
    #[must_use]
    pub fn id(&self) -> Option<&Arc<str>> {
        self.0.id.as_ref()
    }

    /// Its workspace.
    #[must_use]
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.0.workspace
    }

    /// Its policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.0.policy
    }

    /// Whether the session is shown this tool. One that is not shown can still be called, so that older conversations go on; to forbid it, deny it.
    #[must_use]
    pub fn advertises(&self, definition: &Definition) -> bool {
        self.0.advertised.includes(definition.name().as_str())
    }

    /// Cancels the call of this id: while it is queued, waits for an answer, starts or runs. Whether there was one; after its end there is not.
    pub fn cancel(&self, call: &CallId) -> bool {
        self.0.flights.cancel(call)
    }

    /// Cancels every call that the session has begun, and says how many there were. Later calls are not concerned.
    pub fn cancel_all(&self) -> usize {
        self.0.flights.cancel_all()
    }

    /// Cancels every call of the session, also those that come later.
    pub fn close(&self) {
        self.0.flights.close();
    }

    /// How many calls have begun and not ended, those that wait for something included.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.0.flights.len()
    }

    pub(crate) fn enter(&self, call: &CallId) -> InFlight<'_> {
        self.0.flights.enter(call)
    }

    pub(crate) fn slots(&self) -> &Slots {
        &self.0.slots
    }

    /// Whether the tool is always allowed here.
    pub(crate) fn allows(&self, allowance: &Allowance) -> bool {
        self.0.allowed.lock().unwrap_or_else(PoisonError::into_inner).contains(allowance)
    }

    pub(crate) fn always_allow(&self, allowance: Allowance) {
        self.0.allowed.lock().unwrap_or_else(PoisonError::into_inner).insert(allowance);
        self.0.allowed_more.notify_waiters();
    }

    /// Completes once the tool is always allowed: an answer to another question counts for this one, too.
    pub(crate) async fn allowed(&self, allowance: &Allowance) {
        loop {
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
        f.debug_struct("Session").field("id", &self.0.id).field("workspace", &self.0.workspace).finish_non_exhaustive()
    }
}
