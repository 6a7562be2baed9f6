//! The digests of the lists that a client knows, by which changes are detected.

use serde::Serialize;

/// A list of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListKind {
    /// Tools.
    Tools,
    /// Resources and resource templates.
    Resources,
    /// Prompts.
    Prompts,
}

impl ListKind {
    /// All lists.
    pub(crate) const ALL: [Self; 3] = [Self::Tools, Self::Resources, Self::Prompts];
}

/// The digest of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListDigest(blake3::Hash);

impl ListDigest {
    /// Computes the digest of a list.
    pub(crate) fn of(list: &impl Serialize) -> Self {
        // Serialization fails only for maps with keys that are not strings, and no list has such.
        Self(blake3::hash(&serde_json::to_vec(list).unwrap_or_default()))
    }
}

/// The known digests of all lists.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KnownLists([Option<ListDigest>; ListKind::ALL.len()]);

impl KnownLists {
    /// Returns the digest of a list, if it is known.
    pub(crate) fn get(&self, list: ListKind) -> Option<ListDigest> {
        self.0.get(list as usize).copied().flatten()
    }

    /// Records the digest of a list.
    pub(crate) fn set(&mut self, list: ListKind, digest: ListDigest) {
        if let Some(known) = self.0.get_mut(list as usize) {
            *known = Some(digest);
        }
    }

    /// Fills in unknown digests from `others`.
    pub(crate) fn or(self, others: Self) -> Self {
        let mut all = self;
        for (own, other) in all.0.iter_mut().zip(others.0) {
            *own = own.or(other);
        }
        all
    }
}
