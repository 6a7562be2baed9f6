//! The files whose contents a question displays. An answer applies to them as they were displayed.

use crate::workspace::FileState;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The files that a question displays, and their states at that time. Clones share them.
///
/// A confirmer that displays what a call would do to a file records the state in which it has read
/// the file. If the file is in another state when the call is about to run, the call is refused:
/// the user has allowed another change.
#[derive(Debug, Clone, Default)]
pub struct DisplayedFiles(Arc<Mutex<BTreeMap<String, Displayed>>>);

/// The display of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Displayed {
    /// Each display was of this state.
    In(FileState),
    /// Two displays were of different states, and the answer may follow from the older one.
    Differently,
}

impl DisplayedFiles {
    /// Records the state in which the question displays a file. The path is one of
    /// [`projected_modifications`](super::ConfirmationRequest::projected_modifications). After two
    /// different states the call is refused, because the answer may follow from the older display.
    pub fn record(&self, path: &str, state: FileState) {
        let now = Displayed::In(state);
        let mut files = self.files();
        let displayed = files.entry(path.to_owned()).or_insert(now);
        if *displayed != now {
            *displayed = Displayed::Differently;
        }
    }

    /// Returns whether the question displays no file.
    pub(crate) fn is_empty(&self) -> bool {
        self.files().is_empty()
    }

    /// Returns whether the question displays this file.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.files().contains_key(path)
    }

    /// Returns whether each display of a file was of this state.
    pub(crate) fn all_are_of(&self, path: &str, state: FileState) -> bool {
        self.files().get(path).is_none_or(|displayed| *displayed == Displayed::In(state))
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<String, Displayed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartialEq for DisplayedFiles {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.files().clone() == *other.files()
    }
}

impl Eq for DisplayedFiles {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;

    #[test]
    #[allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]
    fn file_is_current_if_all_displays_are_of_its_state() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a"), "one").unwrap();
        let workspace = Workspace::open(directory.path()).unwrap();
        let state = workspace.state_of("a");
        let displayed = DisplayedFiles::default();
        assert!(displayed.all_are_of("a", state), "no display, no state");
        displayed.record("a", state);
        displayed.clone().record("a", state);
        assert!(displayed.all_are_of("a", state));
        assert!(!displayed.all_are_of("a", FileState::MISSING));
        displayed.record("a", FileState::MISSING);
        assert!(!displayed.all_are_of("a", FileState::MISSING), "the first display is stale");
        assert!(!displayed.all_are_of("a", state));
        assert!(displayed.has("a") && !displayed.has("b"));
    }
}
