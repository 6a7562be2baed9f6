//! On whose behalf a call is made.

use crate::confirm::Asker;
use std::sync::Arc;

/// Whoever made a call, as far as they can be asked about it. By default nobody, so that the host's own confirmer is.
#[derive(Clone, Default)]
pub(crate) struct Party {
    /// Is asked whether the call may run, in place of the host's confirmer.
    pub(crate) asker: Option<Arc<dyn Asker>>,
}
