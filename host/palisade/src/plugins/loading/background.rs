//! The files that a watched scan has left to be compiled: those that wait, those that are being
//! compiled, and the results for the next scan.

use super::slot::{Latest, Slot};
use crate::execution::account::DescriptionPart;
use crate::plugins::candidate::{Candidate, FileDigest};
use crate::tool::Digest;
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::thread;
use tokio_util::sync::CancellationToken;

/// A file that a scan has left to be compiled.
pub(super) struct Deferred {
    pub(super) candidate: Candidate,
    pub(super) file_digest: FileDigest,
    pub(super) before: Option<Slot>,
    pub(super) part: DescriptionPart,
}

/// A file and its bytes.
pub(super) type Key = (PathBuf, Digest);

impl Deferred {
    pub(super) fn key(&self) -> Key {
        key(&self.candidate, self.file_digest.digest)
    }
}

fn key(candidate: &Candidate, digest: Digest) -> Key {
    (candidate.path().map(ToOwned::to_owned).unwrap_or_default(), digest)
}

/// A file that is being compiled.
struct Running {
    key: Key,
    part: DescriptionPart,
    cancel: CancellationToken,
}

/// The files that are compiled behind the scans.
#[derive(Default)]
pub(super) struct Background {
    waiting: VecDeque<Deferred>,
    running: Vec<Running>,
    done: HashMap<Key, Latest>,
    pub(super) threads: usize,
    /// Whether a scan was left out because plugins of the start were being compiled.
    has_missed: bool,
}

impl Background {
    /// Records that a scan was left out.
    pub(super) fn note_missed(&mut self) {
        self.has_missed = true;
    }

    /// Returns true if a scan would find something new without a change of a file.
    pub(super) fn is_scan_due(&self) -> bool {
        self.has_missed || !self.done.is_empty()
    }

    /// Records that a scan begins.
    pub(super) fn note_scan(&mut self) {
        self.has_missed = false;
    }

    /// Takes the result for these bytes of a file. Other bytes may have been compiled, if the file
    /// was replaced meanwhile.
    pub(super) fn take(&mut self, candidate: &Candidate, digest: Digest) -> Option<Latest> {
        let latest = self.done.remove(&key(candidate, digest))?;
        latest.digest.is_none_or(|compiled| compiled == digest).then_some(latest)
    }

    /// Replaces the waiting files by those of a new scan, approved ones first. Files that are being
    /// compiled and that the scan has not found are given up.
    pub(super) fn replace(&mut self, files: Vec<Deferred>) {
        let present: HashSet<Key> = files.iter().map(Deferred::key).collect();
        self.done.retain(|key, _| present.contains(key));
        let gone = self.running.iter().filter(|running| !present.contains(&running.key));
        gone.for_each(|running| running.cancel.cancel());
        let is_new = |file: &Deferred| {
            let key = file.key();
            let runs = |it: &Running| it.key == key && !it.cancel.is_cancelled();
            !self.done.contains_key(&key) && !self.running.iter().any(runs)
        };
        let (approved, others): (Vec<_>, Vec<_>) = files
            .into_iter()
            .filter(is_new)
            .partition(|file| file.part == DescriptionPart::Approved);
        self.waiting = approved.into_iter().chain(others).collect();
    }

    /// Returns true if a file waits and another thread may take it.
    pub(super) fn wants_thread(&self) -> bool {
        !self.waiting.is_empty() && self.threads < threads()
    }

    /// Takes the next file, with a token that cancels its compilation. Files without approval use
    /// at most half of the threads, so that they hold up no approved one.
    pub(super) fn next(
        &mut self,
        cancel: &CancellationToken,
    ) -> Option<(Deferred, CancellationToken)> {
        let is_other = |part: DescriptionPart| part != DescriptionPart::Approved;
        let others = self.running.iter().filter(|running| is_other(running.part)).count();
        let next = self.waiting.front()?;
        if cancel.is_cancelled() || is_other(next.part) && others >= threads().div_ceil(2) {
            return None;
        }
        let file = self.waiting.pop_front()?;
        let cancel = cancel.child_token();
        let (key, part) = (file.key(), file.part);
        self.running.push(Running { key, part, cancel: cancel.clone() });
        Some((file, cancel))
    }

    /// Records the end of a compilation. That of a file that was given up has no result.
    pub(super) fn end(&mut self, key: Key, cancel: &CancellationToken, latest: Latest) {
        let ended = self.running.iter().position(|running| {
            running.key == key && running.cancel.is_cancelled() == cancel.is_cancelled()
        });
        if let Some(ended) = ended {
            self.running.swap_remove(ended);
        }
        if !cancel.is_cancelled() {
            self.done.insert(key, latest);
        }
    }
}

/// The most threads: at least two, so that an approved file finds one beside a file without
/// approval.
fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from).max(2)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;

    fn file(name: &str, part: DescriptionPart) -> Deferred {
        let file_digest = FileDigest { digest: Digest::of(name.as_bytes()), identity: None };
        let candidate = Candidate::plugin(PathBuf::from(name));
        Deferred { candidate, file_digest, before: None, part }
    }

    type Taken = (Deferred, CancellationToken);

    fn next(background: &mut Background) -> Option<Taken> {
        background.next(&CancellationToken::new())
    }

    fn result(background: &mut Background, (file, cancel): &Taken) {
        let digest = Some(file.file_digest.digest);
        let latest = Latest { file_digest: None, digest, plugin: Err("bad".to_owned()) };
        background.end(file.key(), cancel, latest);
    }

    #[test]
    fn approved_files_go_first_and_find_a_free_thread() {
        let mut background = Background::default();
        let others =
            (0..threads()).map(|index| file(&index.to_string(), DescriptionPart::Unapproved));
        background.replace(others.chain([file("mine", DescriptionPart::Approved)]).collect());
        assert_eq!(next(&mut background).unwrap().0.candidate.path(), Some("mine".as_ref()));
        let taken = std::iter::from_fn(|| next(&mut background)).count();
        assert_eq!(taken, threads().div_ceil(2), "half of the threads");
        assert!(taken < threads());
    }

    #[test]
    fn result_waits_for_the_scan_that_still_finds_these_bytes() {
        let mut background = Background::default();
        let find = |names: &[&str]| -> Vec<Deferred> {
            names.iter().map(|name| file(name, DescriptionPart::Approved)).collect()
        };
        background.replace(find(&["kept", "gone"]));
        let (kept, gone) = (next(&mut background).unwrap(), next(&mut background).unwrap());
        background.replace(find(&["kept", "gone"]));
        assert!(next(&mut background).is_none(), "both are being compiled");
        result(&mut background, &kept);
        result(&mut background, &gone);
        assert!(background.is_scan_due());
        background.replace(find(&["kept"]));
        assert!(next(&mut background).is_none(), "it is compiled");
        assert!(background.take(&gone.0.candidate, gone.0.file_digest.digest).is_none());
        assert!(background.take(&kept.0.candidate, kept.0.file_digest.digest).is_some());
        assert!(!background.is_scan_due());
    }

    #[test]
    fn compilation_of_bytes_that_are_gone_is_given_up() {
        let mut background = Background::default();
        background.replace(vec![file("old", DescriptionPart::Approved)]);
        let old = next(&mut background).unwrap();
        background.replace(vec![file("new", DescriptionPart::Approved)]);
        assert!(old.1.is_cancelled());
        result(&mut background, &old);
        assert!(!background.is_scan_due(), "it has no result");
        let new = next(&mut background).unwrap();
        let other = Digest::of(b"other bytes");
        let latest = Latest { file_digest: None, digest: Some(other), plugin: Err("x".to_owned()) };
        background.end(new.0.key(), &new.1, latest);
        let taken = background.take(&new.0.candidate, new.0.file_digest.digest);
        assert!(taken.is_none(), "the file had other bytes when it was compiled");
    }
}
