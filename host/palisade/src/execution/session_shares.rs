//! The shares of one session, so that a session with many calls takes nothing that others need.

use super::owner::OwnerShares;
use crate::tool::Digest;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The number of sets of shares above which unused ones are dropped. A session calls few plugins,
/// but each new version of a plugin has a digest of its own.
const KEPT: usize = 64;

/// The shares of one session: a set for each plugin and native tool that it calls. To the pools of
/// the process, a plugin that runs for one session is an owner of its own, beside the same plugin
/// for another session. So one rule applies to both, plugins and sessions.
#[derive(Debug)]
pub(crate) struct SessionShares {
    session: u64,
    known: Mutex<HashMap<Digest, Arc<OwnerShares>>>,
}

impl SessionShares {
    /// Creates the shares of a new session.
    pub(crate) fn new() -> Self {
        static SESSIONS: AtomicU64 = AtomicU64::new(0);
        Self { session: SESSIONS.fetch_add(1, Ordering::Relaxed), known: Mutex::default() }
    }

    /// Returns the shares of this plugin or native tool when it runs for the session.
    pub(crate) fn of(&self, owner: Digest) -> Arc<OwnerShares> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shares) = known.get(&owner) {
            return shares.clone();
        }
        if known.len() >= KEPT {
            known.retain(|_, shares| Arc::strong_count(shares) > 1);
        }
        let name = format!("session {} of {owner}", self.session);
        let shares = Arc::new(OwnerShares::new(Digest::of(name.as_bytes())));
        known.insert(owner, shares.clone());
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_has_shares_of_its_own_of_each_plugin() {
        let plugin = |name: &str| Digest::of(name.as_bytes());
        let (one, other) = (SessionShares::new(), SessionShares::new());
        let shares = one.of(plugin("a"));
        assert!(Arc::ptr_eq(&shares, &one.of(plugin("a"))));
        for others in [one.of(plugin("b")), other.of(plugin("a"))] {
            assert!(!Arc::ptr_eq(&shares.sandboxes, &others.sandboxes));
            assert!(!Arc::ptr_eq(&shares.queue, &others.queue));
            assert!(!Arc::ptr_eq(&shares.memory, &others.memory));
        }
    }

    #[test]
    fn unused_shares_of_many_plugins_are_dropped() {
        let session = SessionShares::new();
        let used = session.of(Digest::of(b"used"));
        for number in 0..10 * KEPT {
            session.of(Digest::of(&number.to_ne_bytes()));
        }
        assert!(session.known.lock().is_ok_and(|known| known.len() <= KEPT));
        assert!(Arc::ptr_eq(&used, &session.of(Digest::of(b"used"))));
    }
}
