//! The shares of one session, so that a session with many calls takes nothing that others need.

use super::owner::OwnerShares;
use super::share::{Group, GroupKind, Groups, Owner};
use crate::tool::Digest;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The number of sets of shares above which unused ones are dropped. A session calls few plugins,
/// but each new version of a plugin has a digest of its own.
const KEPT: usize = 64;

/// The shares of one session: a set for each plugin and native tool that it calls. To the pools of
/// the process, a plugin that runs for one session is an owner of its own, beside the same plugin
/// for another session. The owners of one plugin are a group, and so are those of one caller. So
/// one rule applies to all: plugins, callers and sessions.
#[derive(Debug)]
pub(crate) struct SessionShares {
    name: Digest,
    caller: Arc<Group>,
    /// The group of the session, if its caller may have other sessions.
    session: Option<Arc<Group>>,
    known: Mutex<HashMap<Digest, Arc<OwnerShares>>>,
}

impl SessionShares {
    /// Creates the shares of a new session, which is a caller of its own.
    pub(crate) fn new() -> Self {
        let name = new_name();
        let caller = Group::named(GroupKind::Caller, name);
        Self { name, caller, session: None, known: Mutex::default() }
    }

    /// Creates the shares of a new session of this caller.
    pub(crate) fn of_caller(caller: Digest) -> Self {
        let name = new_name();
        let session = Group::named(GroupKind::Session, name);
        let caller = Group::named(GroupKind::Caller, caller);
        Self { name, caller, session: Some(session), known: Mutex::default() }
    }

    /// Returns the shares of this plugin or native tool when it runs for the session.
    pub(crate) fn of(&self, plugin: Digest) -> Arc<OwnerShares> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shares) = known.get(&plugin) {
            return shares.clone();
        }
        if known.len() >= KEPT {
            known.retain(|_, shares| Arc::strong_count(shares) > 1);
        }
        let shares = Arc::new(OwnerShares::of(&self.owner(plugin)));
        known.insert(plugin, shares.clone());
        shares
    }

    fn owner(&self, plugin: Digest) -> Owner {
        let named = |whose: Digest| Digest::of(format!("{plugin} for {whose}").as_bytes());
        let of_plugin = Group::named(GroupKind::Plugin, plugin);
        let groups = [self.caller.clone(), of_plugin].into_iter();
        let groups = match &self.session {
            None => Groups::new(groups),
            Some(session) => {
                let caller = named(self.caller.name());
                let of_caller = Group::named(GroupKind::CallerOfPlugin, caller);
                Groups::new(groups.chain([session.clone(), of_caller]))
            }
        };
        Owner::new(named(self.name), groups)
    }
}

/// Returns a name that no other session of the process has.
fn new_name() -> Digest {
    static SESSIONS: AtomicU64 = AtomicU64::new(0);
    let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
    Digest::of(format!("session {number}").as_bytes())
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
