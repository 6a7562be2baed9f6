//! The grants of one plugin as they stand, which an operator may change during a run.

use crate::plugin_grants::PluginGrants;
use std::sync::{Arc, PoisonError, RwLock};

/// The grants of one plugin. Calls of the plugin share them, and ask for them at each request.
#[derive(Debug)]
pub(crate) struct CurrentGrants(RwLock<Arc<PluginGrants>>);

impl CurrentGrants {
    pub(crate) fn new(grants: PluginGrants) -> Self {
        Self(RwLock::new(Arc::new(grants)))
    }

    /// Returns the grants as they stand.
    pub(crate) fn now(&self) -> Arc<PluginGrants> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the grants. Secrets that the plugin's servers have seen stay redacted.
    pub(crate) fn replace(&self, grants: PluginGrants) {
        let grants = grants.succeeding(&self.now());
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(grants);
    }
}
