//! The progress of loading.

/// The progress of loading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadProgress {
    /// The number of plugins that are registered or rejected.
    pub decided: usize,
    /// The number of all plugins.
    pub of: usize,
    /// The number of undecided plugins that an earlier run did not finish compiling; they go last.
    pub(crate) last: usize,
    /// True if a thread works on the others.
    pub(crate) goes_on: bool,
}

impl LoadProgress {
    /// Returns true if all plugins are decided.
    #[must_use]
    pub fn is_complete(self) -> bool {
        self.decided >= self.of
    }

    /// Returns true if waiting would bring nothing more.
    pub fn has_ended(self) -> bool {
        self.is_complete() || !self.goes_on
    }

    /// Returns true if only plugins that go last remain, which may take longer than a client waits.
    #[doc(hidden)]
    #[must_use]
    pub fn has_come_to_the_last(self) -> bool {
        self.has_ended() || self.decided.saturating_add(self.last) >= self.of
    }
}
