//! The state of the background optimisation: whether its thread runs, and what it has tried.

use crate::tool::Digest;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The time after which a plugin is tried again whose optimisation failed for a reason that may
/// have passed, such as a lack of descriptors.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// The state of the background optimisation.
#[derive(Debug, Default)]
pub(super) struct Optimizer {
    runs: bool,
    /// The plugins whose optimisation was tried.
    tried: HashMap<Digest, NextTry>,
}

#[derive(Debug, Clone, Copy)]
enum NextTry {
    /// The plugin goes on with the code that it has.
    Never,
    From(Instant),
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
        self.tried.insert(plugin, NextTry::Never);
    }

    /// Records that the optimisation of a plugin failed for a reason that may have passed later.
    pub(super) fn postpone(&mut self, plugin: Digest, now: Instant) {
        self.tried.insert(plugin, NextTry::From(now + RETRY_AFTER));
    }

    /// Returns true if the optimisation of a plugin is to be tried.
    pub(super) fn is_due(&self, plugin: Digest, now: Instant) -> bool {
        match self.tried.get(&plugin) {
            None => true,
            Some(NextTry::Never) => false,
            Some(NextTry::From(time)) => *time <= now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugin_is_tried_once_or_after_a_postponement() {
        let (mut optimizer, plugin, now) =
            (Optimizer::default(), Digest::of(b"plugin"), Instant::now());
        assert!(optimizer.is_due(plugin, now));
        optimizer.note(plugin);
        assert!(!optimizer.is_due(plugin, now + 100 * RETRY_AFTER));
        optimizer.postpone(plugin, now);
        assert!(!optimizer.is_due(plugin, now + RETRY_AFTER - Duration::from_millis(1)));
        assert!(optimizer.is_due(plugin, now + RETRY_AFTER));
    }
}
