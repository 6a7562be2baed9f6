//! The steps of loading, for progress displays.

use std::sync::Arc;

/// A step of loading, for progress displays.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadStep<'a> {
    /// Loading starts with this many plugins.
    Start(usize),
    /// This plugin is loaded or rejected.
    Done(&'a str),
    /// Loading ends for now.
    End,
}

/// A callback for the steps of loading; called from several threads.
pub type LoadObserver = Arc<dyn Fn(LoadStep<'_>) + Send + Sync>;
