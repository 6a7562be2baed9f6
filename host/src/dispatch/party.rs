//! On whose behalf a call is made.

use crate::confirm::Asker;
use crate::execution::{Client, NoClient};
use std::fmt;
use std::sync::Arc;

/// Whoever made a call, as far as they can be asked about it. By default nobody: then the host's own confirmer is asked whether a call may run, and tools can ask
/// nothing.
#[derive(Clone)]
pub struct Party {
    /// Is asked whether the call may run, in place of the host's confirmer.
    pub(crate) asker: Option<Arc<dyn Asker>>,
    /// Is asked by the tool, while it runs.
    pub(crate) client: Arc<dyn Client>,
}

impl Party {
    /// With a client that answers what tools ask.
    #[must_use]
    pub fn with_client(self, client: Arc<dyn Client>) -> Self {
        Self { client, ..self }
    }

    /// With somebody else to ask whether the call may run than the host's confirmer.
    #[must_use]
    pub(crate) fn with_asker(self, asker: Arc<dyn Asker>) -> Self {
        Self { asker: Some(asker), ..self }
    }
}

impl Default for Party {
    fn default() -> Self {
        Self { asker: None, client: Arc::new(NoClient) }
    }
}

impl fmt::Debug for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Party").field("kinds", &self.client.kinds()).finish_non_exhaustive()
    }
}
