//! A session: who calls, in which workspace, under which policy.

use crate::policy::Policy;
use crate::workspace::Workspace;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// The surroundings that calls share.
pub struct Session {
    id: Option<Arc<str>>,
    workspace: Arc<Workspace>,
    policy: Policy,
    cancel: CancellationToken,
    allowed_once: Mutex<HashSet<String>>,
}

impl Session {
    /// A session with an id of the caller's choosing.
    #[must_use]
    pub fn new(id: &str, workspace: Arc<Workspace>, policy: Policy) -> Self {
        Self { id: Some(crate::tool::text::elided(id, 256).into()), ..Self::anonymous(workspace, policy) }
    }

    /// The session of calls that belong to no conversation.
    pub(crate) fn anonymous(workspace: Arc<Workspace>, policy: Policy) -> Self {
        Self { id: None, workspace, policy, cancel: CancellationToken::new(), allowed_once: Mutex::default() }
    }

    /// Its id, if it has one.
    #[must_use]
    pub fn id(&self) -> Option<&Arc<str>> {
        self.id.as_ref()
    }

    /// Its workspace.
    #[must_use]
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// Its policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Cancels every call of the session, also those that come later.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    pub(crate) fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Whether a `prompt_once` tool has been allowed before.
    pub(crate) fn was_allowed(&self, key: &str) -> bool {
        self.allowed_once.lock().unwrap_or_else(PoisonError::into_inner).contains(key)
    }

    pub(crate) fn remember_allowed(&self, key: String) {
        self.allowed_once.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
    }
}
