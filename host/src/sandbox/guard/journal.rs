//! Which paths a call has changed.

use std::collections::HashSet;
use std::sync::Arc;

/// How many paths are listed at most: more than a person reads, and enough for a tool that renames across a project.
pub(crate) const MAX_PATHS: usize = 4_096;

/// How many bytes the listed paths have at most, in sum: paths may be 4 KiB each, and the list ends up in a result that is itself bounded.
const MAX_BYTES: usize = 512 << 10;

/// The changed paths in the order of their first change. Allocates nothing before the first of them.
#[derive(Default)]
pub(super) struct Journal {
    order: Vec<Arc<str>>,
    known: Option<HashSet<Arc<str>>>,
    bytes: usize,
    unlisted: u64,
}

impl Journal {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Adds a path, unless it is there already.
    pub(super) fn note(&mut self, path: String) {
        let known = self.known.get_or_insert_default();
        if known.contains(path.as_str()) {
            return;
        }
        let bytes = self.bytes.saturating_add(path.len());
        if self.order.len() >= MAX_PATHS || bytes > MAX_BYTES {
            self.unlisted = self.unlisted.saturating_add(1);
            return;
        }
        let path: Arc<str> = path.into();
        known.insert(Arc::clone(&path));
        self.order.push(path);
        self.bytes = bytes;
    }

    pub(super) fn paths(&self) -> Vec<String> {
        self.order.iter().map(ToString::to_string).collect()
    }

    /// How many changes found no place in the list. A path that is changed twice counts twice here, since it is not remembered.
    pub(super) fn unlisted(&self) -> u64 {
        self.unlisted
    }
}
