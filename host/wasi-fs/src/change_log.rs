//! The change log of a call: the paths that it has changed.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::budget::ResourceBudget;
use super::file::wide;

/// The maximum number of listed paths: more than a person reads, and enough for a tool that renames
/// across a project.
pub(crate) const MAX_PATHS: usize = 4_096;

/// The maximum memory of the change log, in bytes. A path may be 32 KiB long (128 nested
/// directories with names of 255 bytes), and the list ends up in a result that is itself bounded.
const MAX_BYTES: usize = 1 << 20;

/// The memory overhead of a name, in bytes: its slot in a hash table that is more than half empty
/// at worst, and the header of its allocation.
const PER_NAME: usize = 112;

/// The changed paths, with their existence before the call: creating and removing an entry again is
/// no change. Allocates nothing before the first change.
#[derive(Debug, Default)]
pub(super) struct ChangeLog {
    changes: HashMap<Arc<str>, Change>,
    /// The paths from which an entry was moved away.
    left: HashSet<Arc<str>>,
    /// Whether `left` is incomplete because it was full.
    left_more: bool,
    /// The memory of both tables, in bytes.
    bytes: usize,
    /// The part of it that is counted in the budget of the host.
    counted: usize,
    count: u64,
    unlisted: u64,
}

/// One changed path.
#[derive(Clone, Copy, Debug)]
struct Change {
    order: u64,
    origin: Origin,
}

/// Whether a path existed before its first change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It existed, as far as is known.
    Before,
    /// The call created it.
    Call,
}

impl ChangeLog {
    /// Records that the entry at a path was created or changed. The first recorded origin of a path
    /// stays.
    pub(super) fn note(&mut self, path: &str, origin: Origin) {
        if self.changes.contains_key(path) {
            return;
        }
        let origin = if self.lies_in_left(path) { Origin::Before } else { origin };
        if self.changes.len() >= MAX_PATHS {
            self.unlisted = self.unlisted.saturating_add(1);
            return;
        }
        // A path in `left` shares its allocation, so only the overhead is charged.
        let known = self.left.get(path).cloned();
        let letters = if known.is_some() { 0 } else { path.len() };
        if !self.take(letters) {
            self.unlisted = self.unlisted.saturating_add(1);
            return;
        }
        self.count = self.count.saturating_add(1);
        self.changes
            .insert(known.unwrap_or_else(|| path.into()), Change { order: self.count, origin });
    }

    /// Records that the entry at a path was removed.
    pub(super) fn note_gone(&mut self, path: &str) {
        match self.changes.get(path) {
            Some(change) if change.origin == Origin::Call => self.forget(path),
            _ => self.note(path, Origin::Before),
        }
    }

    /// Records that an entry and everything below it moved to a new path. `origin` is the origin of
    /// the new path.
    pub(super) fn note_moved(&mut self, old: &str, new: &str, origin: Origin) {
        self.note_left(old);
        let below = |path: &str| path.strip_prefix(old).is_some_and(|rest| rest.starts_with('/'));
        let made = self
            .changes
            .iter()
            .filter(|(path, change)| change.origin == Origin::Call && below(path));
        let moved: Vec<Arc<str>> = made.map(|(path, _)| Arc::clone(path)).collect();
        self.note_gone(old);
        for path in moved {
            let renamed = [new, path.strip_prefix(old).unwrap_or(&path)].concat();
            self.forget(&path);
            self.note(&renamed, Origin::Call);
        }
        self.note(new, origin);
    }

    fn note_left(&mut self, path: &str) {
        if self.left_more || self.left.contains(path) {
            return;
        }
        let known = self.changes.get_key_value(path).map(|(path, _)| Arc::clone(path));
        let letters = if known.is_some() { 0 } else { path.len() };
        if self.left.len() < MAX_PATHS && self.take(letters) {
            self.left.insert(known.unwrap_or_else(|| path.into()));
        } else {
            self.left_more = true;
        }
    }

    /// Charges a name of `letters` bytes. Returns false if there is no room for it.
    fn take(&mut self, letters: usize) -> bool {
        let bytes = self.bytes.saturating_add(letters).saturating_add(PER_NAME);
        let fits = bytes <= MAX_BYTES;
        if fits {
            self.bytes = bytes;
        }
        fits
    }

    /// Counts the current memory of both tables in a budget, in place of the memory counted before.
    pub(super) fn count_memory(&mut self, budget: &dyn ResourceBudget) {
        let before = std::mem::replace(&mut self.counted, self.bytes);
        count(budget, before, self.bytes);
    }

    /// Ends the count in a budget.
    pub(super) fn release_memory(&mut self, budget: &dyn ResourceBudget) {
        count(budget, std::mem::take(&mut self.counted), 0);
    }

    /// Returns the paths in the order of their first change.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths: Vec<(&Arc<str>, &Change)> = self.changes.iter().collect();
        paths.sort_unstable_by_key(|(_, change)| change.order);
        paths
            .into_iter()
            .map(|(path, _)| if path.is_empty() { ".".to_owned() } else { path.to_string() })
            .collect()
    }

    /// Returns the entries that the call created, that still exist, and whose name is `meant`.
    /// The newest come first.
    pub(super) fn created(&self, meant: impl Fn(&str) -> bool) -> Vec<String> {
        let made = self.changes.iter().filter(|(path, change)| {
            change.origin == Origin::Call && meant(path.rsplit('/').next().unwrap_or(path))
        });
        let mut made: Vec<_> = made.collect();
        made.sort_unstable_by_key(|(_, change)| Reverse(change.order));
        made.into_iter().map(|(path, _)| path.to_string()).collect()
    }

    /// Returns the number of changes that did not fit into the list. Repeated changes of one
    /// unlisted path count each time, since the path is not remembered.
    pub(super) fn unlisted(&self) -> u64 {
        self.unlisted
    }

    /// Returns whether an ancestor of the path was moved away. A handle opened before the move
    /// still reports its old names, so such a path may refer to two entries. Its origin counts as
    /// `Before`, so that removing one entry does not drop the changes of the other.
    fn lies_in_left(&self, path: &str) -> bool {
        let mut above = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
        self.left_more || (!self.left.is_empty() && above.any(|above| self.left.contains(above)))
    }

    fn forget(&mut self, path: &str) {
        if self.changes.remove(path).is_some() {
            let letters = if self.left.contains(path) { 0 } else { path.len() };
            self.bytes = self.bytes.saturating_sub(letters.saturating_add(PER_NAME));
        }
    }
}

fn count(budget: &dyn ResourceBudget, before: usize, now: usize) {
    if now > before {
        budget.hold_memory(wide(now - before));
    } else if now < before {
        budget.release_memory(wide(before - now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the memory of both tables independently.
    fn held(log: &ChangeLog) -> usize {
        let mut names: HashMap<*const u8, usize> = HashMap::new();
        let kept = log.changes.keys().chain(&log.left);
        for name in kept {
            names.insert(name.as_ptr(), name.len());
        }
        names.values().sum::<usize>() + PER_NAME * (log.changes.len() + log.left.len())
    }

    /// Builds a path of `directories` nested directories with names of maximum length.
    fn deep(directories: usize, number: usize) -> String {
        format!("{}{number:05}", format!("{}/", "d".repeat(255)).repeat(directories))
    }

    #[test]
    fn change_log_is_bounded_in_bytes() {
        let mut log = ChangeLog::default();
        for number in 0..4_200 {
            log.note_moved(&deep(126, number), &deep(126, number + 1), Origin::Call);
            assert!(log.bytes <= MAX_BYTES && held(&log) == log.bytes, "{number}");
        }
        assert!(log.unlisted > 0 && log.left_more && !log.paths().is_empty());
    }

    #[test]
    fn removed_changes_release_their_space() {
        let mut log = ChangeLog::default();
        for number in 0..100 {
            log.note("a", Origin::Before);
            log.note_moved("a", "b", Origin::Call);
            log.note_moved("b", "a", Origin::Before);
            log.note_gone("b");
            let made = deep(3, number);
            log.note(&made, Origin::Call);
            log.note_gone(&made);
            assert_eq!(held(&log), log.bytes);
        }
        assert_eq!((log.unlisted, log.left_more), (0, false));
    }

    #[test]
    fn source_names_of_moves_are_bounded() {
        let mut log = ChangeLog::default();
        for number in 0..MAX_PATHS {
            log.note_left(&number.to_string());
        }
        assert!(!log.left_more);
        log.note_left("one more");
        assert!(log.left_more && log.left.len() == MAX_PATHS);
    }
}
