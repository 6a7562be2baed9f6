//! On whose behalf a call is made.

use crate::confirm::Asker;
use crate::execution::Client;
use crate::execution::account::Account;
use std::fmt;
use std::sync::Arc;

/// Whoever made a call, as far as they can be asked about it. By default nobody: then the host's own confirmer is asked whether a call may run, and tools can ask
/// nothing.
#[derive(Clone)]
pub struct Party {
    /// Is asked whether the call may run, in place of the host's confirmer.
    pub(crate) asker: Option<Arc<dyn Asker>>,
    /// Is asked by the tool, while it runs.
    pub(crate) client: Option<Arc<dyn Client>>,
    /// Whether answers for later calls count.
    pub(crate) memory: Memory,
    /// Where the call's memory counts, if its input was read under an account, which counts it already.
    pub(crate) account: Option<Account>,
}

/// For what an answer counts, where it is about more than this call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    /// For the session, which is one caller's.
    OfSession,
    /// For nothing: who calls next in this session is only that caller's word.
    Nobodys,
}

impl Party {
    /// With a client that answers what tools ask.
    #[must_use]
    pub fn with_client(self, client: Arc<dyn Client>) -> Self {
        Self { client: Some(client), ..self }
    }

    /// With somebody else to ask whether the call may run than the host's confirmer.
    #[must_use]
    pub(crate) fn with_asker(self, asker: Arc<dyn Asker>) -> Self {
        Self { asker: Some(asker), ..self }
    }

    /// With the account under which the input was read.
    #[must_use]
    pub(crate) fn with_account(self, account: Option<Account>) -> Self {
        Self { account, ..self }
    }

    /// With a caller that cannot be told from others: no answer counts for another call, and none that was given before counts for this one.
    #[must_use]
    pub(crate) fn without_memory(self) -> Self {
        Self { memory: Memory::Nobodys, ..self }
    }
}

impl Default for Party {
    fn default() -> Self {
        Self { asker: None, client: None, memory: Memory::OfSession, account: None }
    }
}

impl fmt::Debug for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Party")
            .field("kinds", &self.client.as_ref().map(|client| client.kinds()))
            .finish_non_exhaustive()
    }
}
