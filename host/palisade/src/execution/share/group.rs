//! Groups of owners that share one bound: the owners of one plugin, or of one caller.

use crate::tool::Digest;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The property that the owners of a group have in common. The wider a group is, the more it may
/// hold together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GroupKind {
    /// All sessions of one caller, for one plugin.
    CallerOfPlugin,
    /// One session of a caller, for all plugins.
    Session,
    /// One caller, for all plugins.
    Caller,
    /// One plugin, for all callers.
    Plugin,
}

impl GroupKind {
    /// Returns the most that a group of this kind may hold while this much is free.
    ///
    /// An owner alone gets as much as is free: half of a pool. A group that is alone gets 5/7, 3/4
    /// or 4/5 of it. Each kind gets more than those within it, so that it has room for another
    /// member when one of them is at its bound. And when a group is at its bound, every group that
    /// shares an owner with it still may hold half of the pool, which that owner may have taken
    /// before.
    pub(super) fn most(self, free: u64) -> u64 {
        let halves = match self {
            Self::CallerOfPlugin => 5,
            Self::Session => 6,
            Self::Caller | Self::Plugin => 8,
        };
        free.saturating_mul(halves) / 2
    }
}

/// A group of owners. There is one of each kind and name in the process.
#[derive(Debug)]
pub(crate) struct Group {
    kind: GroupKind,
    name: Digest,
    /// The place of the group in the books of each pool. It is reused after the group is dropped.
    number: usize,
    /// The memory that the group holds, in bytes.
    memory: AtomicU64,
}

impl Group {
    /// Returns the group of this kind and name, the same one while it is referenced.
    pub(crate) fn named(kind: GroupKind, name: Digest) -> Arc<Self> {
        static GROUPS: Mutex<Directory> = Mutex::new(Directory::new());
        GROUPS.lock().unwrap_or_else(PoisonError::into_inner).get_or_add(kind, name)
    }

    /// Returns the kind of the group.
    pub(crate) fn kind(&self) -> GroupKind {
        self.kind
    }

    /// Returns the name of the group.
    pub(crate) fn name(&self) -> Digest {
        self.name
    }

    /// Returns the memory that the group holds, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.memory.load(Ordering::Relaxed)
    }

    /// Counts memory that an owner of the group has taken, in bytes.
    pub(crate) fn add_memory(&self, bytes: u64) {
        self.memory.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Ends the count of memory that an owner of the group has released, in bytes.
    pub(crate) fn subtract_memory(&self, bytes: u64) {
        self.memory.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }
}

/// The groups that an owner belongs to, at most four. The caller comes first, if there is one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Groups(Option<Arc<[Arc<Group>]>>);

impl Groups {
    /// The groups of an owner that belongs to none.
    pub(crate) const NONE: Self = Self(None);

    /// Wraps the groups of an owner.
    pub(crate) fn new(groups: impl IntoIterator<Item = Arc<Group>>) -> Self {
        Self(Some(groups.into_iter().collect()))
    }

    /// Returns each group.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Group>> {
        self.0.iter().flat_map(|groups| groups.iter())
    }

    /// Returns true if this is one of the groups.
    pub(crate) fn contain(&self, group: &Arc<Group>) -> bool {
        self.iter().any(|other| Arc::ptr_eq(other, group))
    }

    /// Returns true if the owner belongs to a caller.
    pub(crate) fn have_caller(&self) -> bool {
        self.iter().next().is_some_and(|first| first.kind == GroupKind::Caller)
    }
}

/// The groups of the process, by kind and name.
#[derive(Debug)]
struct Directory {
    known: BTreeMap<(GroupKind, Digest), (usize, Weak<Group>)>,
    /// The numbers without a group.
    vacant: Vec<usize>,
}

impl Directory {
    const fn new() -> Self {
        Self { known: BTreeMap::new(), vacant: Vec::new() }
    }

    fn get_or_add(&mut self, kind: GroupKind, name: Digest) -> Arc<Group> {
        let key = (kind, name);
        if let Some(known) = self.known.get(&key).and_then(|(_, group)| group.upgrade()) {
            return known;
        }
        let vacant = &mut self.vacant;
        self.known.retain(|_, (number, group)| {
            let is_used = group.strong_count() > 0;
            if !is_used {
                vacant.push(*number);
            }
            is_used
        });
        let number = self.vacant.pop().unwrap_or(self.known.len());
        let group = Arc::new(Group { kind, name, number, memory: AtomicU64::new(0) });
        self.known.insert(key, (number, Arc::downgrade(&group)));
        group
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_has_one_number_while_it_is_referenced() {
        let mut all = Directory::new();
        let name = |text: &str| Digest::of(text.as_bytes());
        let one = all.get_or_add(GroupKind::Caller, name("one"));
        let plugin = all.get_or_add(GroupKind::Plugin, name("one"));
        assert!(Arc::ptr_eq(&one, &all.get_or_add(GroupKind::Caller, name("one"))));
        assert_eq!((one.number(), plugin.number()), (0, 1));
        drop(one);
        let other = all.get_or_add(GroupKind::Caller, name("other"));
        let third = all.get_or_add(GroupKind::Caller, name("third"));
        assert_eq!((other.number(), third.number(), all.known.len()), (0, 2, 3));
    }
}
