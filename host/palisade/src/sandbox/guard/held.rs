//! The budget of file descriptors that guests hold: each plugin has a share, and at least half of
//! the process's descriptors stay with the host.

use crate::execution::share::{Full, Grant, Share};
use std::sync::Arc;

use super::ledger::Exhausted;

/// The file descriptors available to all calls of one plugin together.
#[derive(Clone, Debug)]
pub(crate) struct PluginFiles(Arc<Share>);

/// One file descriptor held by a guest, returned to the budget on drop.
#[derive(Debug)]
pub(super) struct Held(#[allow(dead_code, reason = "held, and nothing else")] Grant);

impl PluginFiles {
    /// Creates the budget from a plugin's share.
    pub(crate) fn of(share: Arc<Share>) -> Self {
        Self(share)
    }
}

impl Held {
    /// Reserves one file descriptor. Must run before the open.
    pub(super) fn one(plugin: &PluginFiles) -> Result<Self, Exhausted> {
        plugin.0.try_take(1).map(Self).map_err(|Full { bound }| Exhausted::OpenFiles(bound))
    }
}

#[cfg(test)]
impl Default for PluginFiles {
    fn default() -> Self {
        use crate::execution::share::Pool;
        use crate::tool::Digest;
        Self(Pool::new(u64::from(u32::MAX)).share(Digest::of(b"a plugin by itself")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::share::Pool;
    use crate::tool::Digest;

    #[test]
    fn one_plugin_leaves_descriptors_to_another() {
        let pool = Pool::new(4);
        let plugin = |name: &[u8]| PluginFiles::of(pool.share(Digest::of(name)));
        let (one, other) = (plugin(b"one"), plugin(b"other"));
        let (first, second) = (Held::one(&one), Held::one(&one));
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(Held::one(&one).map(drop), Err(Exhausted::OpenFiles(2)));
        assert!(Held::one(&other).is_ok());
        drop(first);
        assert!(Held::one(&one).is_ok());
    }
}
