//! Which paths a call has changed.

use std::collections::{HashMap, HashSet};

/// How many paths are listed at most: more than a person reads, and enough for a tool that renames across a project.
pub(crate) const MAX_PATHS: usize = 4_096;

/// How many bytes the listed paths have at most, in sum: paths may be 4 KiB each, and the list ends up in a result that is itself bounded.
const MAX_BYTES: usize = 512 << 10;

/// The changed paths, told apart by what there was before the call: what the call has made and removed again is no change. Allocates nothing before
/// the first change.
#[derive(Default)]
pub(super) struct Journal {
    changes: HashMap<String, Change>,
    /// The names that something was moved away from.
    left: HashSet<String>,
    bytes: usize,
    count: u64,
    unlisted: u64,
}

/// One changed path.
#[derive(Clone, Copy)]
struct Change {
    order: u64,
    origin: Origin,
}

/// Whether a path stood for something when it was changed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It did, as far as is known.
    Before,
    /// The call has made it.
    Call,
}

impl Journal {
    /// Notes that what this path stands for was made or changed. What was noted first about its origin stays.
    pub(super) fn note(&mut self, path: String, origin: Origin) {
        if self.changes.contains_key(&path) {
            return;
        }
        let origin = if self.lies_in_left(&path) { Origin::Before } else { origin };
        let bytes = self.bytes.saturating_add(path.len());
        if self.changes.len() >= MAX_PATHS || bytes > MAX_BYTES {
            self.unlisted = self.unlisted.saturating_add(1);
            return;
        }
        self.bytes = bytes;
        self.count = self.count.saturating_add(1);
        self.changes.insert(path, Change { order: self.count, origin });
    }

    /// Notes that what this path stood for is gone.
    pub(super) fn note_gone(&mut self, path: String) {
        match self.changes.get(&path) {
            Some(change) if change.origin == Origin::Call => self.forget(&path),
            _ => self.note(path, Origin::Before),
        }
    }

    /// Notes that what one path stood for is found under another now, and so is everything below it. `origin` is that of the new path.
    pub(super) fn note_moved(&mut self, old: String, new: String, origin: Origin) {
        let below = format!("{old}/");
        if self.left.len() < MAX_PATHS {
            self.left.insert(old.clone());
        }
        let moved: Vec<String> = self.changes.keys().filter(|path| path.starts_with(&below)).cloned().collect();
        self.note_gone(old);
        for path in moved {
            if let Some(Change { origin: Origin::Call, .. }) = self.changes.get(&path).copied() {
                let rest = path.strip_prefix(&below).unwrap_or(&path);
                let renamed = format!("{new}/{rest}");
                self.forget(&path);
                self.note(renamed, Origin::Call);
            }
        }
        self.note(new, origin);
    }

    /// The paths in the order in which they were changed first.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths: Vec<(&String, &Change)> = self.changes.iter().collect();
        paths.sort_unstable_by_key(|(_, change)| change.order);
        paths.into_iter().map(|(path, _)| if path.is_empty() { ".".to_owned() } else { path.clone() }).collect()
    }

    /// The temporary files that the call has made and that are there still.
    pub(super) fn temporaries(&self) -> Vec<String> {
        let made = self.changes.iter().filter(|(_, change)| change.origin == Origin::Call);
        made.filter(|(path, _)| is_temporary(path)).map(|(path, _)| path.clone()).collect()
    }

    /// How many changes found no place in the list. A path that is changed twice counts twice here, since it is not remembered.
    pub(super) fn unlisted(&self) -> u64 {
        self.unlisted
    }

    /// Whether a directory on the way to this was moved away. Whoever holds it open changes it by the names that it had, so that such a name may stand for two
    /// things: that one of them is made and removed again does not take back what was done to the other.
    fn lies_in_left(&self, path: &str) -> bool {
        let mut above = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
        self.left.len() >= MAX_PATHS || (!self.left.is_empty() && above.any(|above| self.left.contains(above)))
    }

    fn forget(&mut self, path: &str) {
        if self.changes.remove(path).is_some() {
            self.bytes = self.bytes.saturating_sub(path.len());
        }
    }
}

/// Whether a file is one of those that the shipped tools, and others that replace files in one step, write before they rename it: `.palisade-`, sixteen
/// hexadecimal digits, `.tmp`.
fn is_temporary(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let digits = name.strip_prefix(".palisade-").and_then(|name| name.strip_suffix(".tmp"));
    digits.is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
