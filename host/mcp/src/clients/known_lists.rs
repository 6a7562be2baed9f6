//! The digests of the lists that a client knows, by which changes are detected.

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
    /// Computes the digest of a list from the hashes of its items.
    pub(crate) fn of_hashes<'a>(items: impl Iterator<Item = &'a blake3::Hash>) -> Self {
        let mut hasher = blake3::Hasher::new();
        items.for_each(|item| {
            hasher.update(item.as_bytes());
        });
        Self(hasher.finalize())
    }

    /// Returns a short form, for people and cursors.
    pub(crate) fn short(&self) -> String {
        self.0.to_hex().chars().take(16).collect()
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
