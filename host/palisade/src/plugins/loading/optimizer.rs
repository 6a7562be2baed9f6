//! The state of the background optimisation: whether its thread runs, and what it has tried.

use crate::tool::Digest;
use std::collections::HashSet;

/// The state of the background optimisation.
#[derive(Debug, Default)]
pub(super) struct Optimizer {
    runs: bool,
    /// The plugins whose optimisation was tried. A failed one is not tried again: the plugin goes
    /// on with the code that it has.
    tried: HashSet<Digest>,
}

impl Optimizer {
    /// Marks the thread as running. Returns false if it runs already.
    pub(super) fn begin(&mut self) -> bool {
        !std::mem::replace(&mut self.runs, true)
    }

    /// Marks the thread as ended.
    pub(super) fn end(&mut self) {
        self.runs = false;
    }

    /// Records that the optimisation of a plugin is tried.
    pub(super) fn note(&mut self, plugin: Digest) {
        self.tried.insert(plugin);
    }

    /// Returns true if the optimisation of a plugin was tried.
    pub(super) fn has_tried(&self, plugin: Digest) -> bool {
        self.tried.contains(&plugin)
    }
}
