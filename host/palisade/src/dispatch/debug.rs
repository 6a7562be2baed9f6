//! Debug output of the dispatcher's public types, without the inputs of calls.

use super::{Dispatcher, Explanation};
use std::fmt;

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher")
            .field("registry", &self.registry)
            .field("limits", &self.limits)
            .field("confirmation_timeout", &self.confirmation_timeout)
            .finish_non_exhaustive()
    }
}

/// Leaves out the paths, which come from the input.
impl fmt::Debug for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Explanation")
            .field("tool", &self.tool)
            .field("decision", &self.decision)
            .finish_non_exhaustive()
    }
}
