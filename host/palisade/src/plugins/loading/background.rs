//! Compilation behind a watched scan: the scan registers the files that are ready and leaves the
//! others to these threads. The scan after their end takes the results.

use super::slot::{Latest, Slot};
use super::work::{Work, lock};
use crate::execution::account::DescriptionPart;
use crate::plugins::candidate::{Candidate, FileDigest};
use crate::tool::Digest;
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, Builder};

/// A file that a scan has left to be compiled.
pub(super) struct Deferred {
    pub(super) candidate: Candidate,
    pub(super) file_digest: FileDigest,
    pub(super) before: Option<Slot>,
    pub(super) part: DescriptionPart,
}

/// A file and its bytes.
type Key = (PathBuf, Digest);

impl Deferred {
    fn key(&self) -> Key {
        key(&self.candidate, self.file_digest.digest)
    }
}

fn key(candidate: &Candidate, digest: Digest) -> Key {
    (candidate.path().map(ToOwned::to_owned).unwrap_or_default(), digest)
}

/// The files that are compiled behind the scans.
#[derive(Default)]
pub(super) struct Background {
    waiting: VecDeque<Deferred>,
    running: Vec<(Key, DescriptionPart)>,
    done: HashMap<Key, Latest>,
    threads: usize,
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

    /// Takes the result for these bytes of a file.
    pub(super) fn take(&mut self, candidate: &Candidate, digest: Digest) -> Option<Latest> {
        self.done.remove(&key(candidate, digest))
    }

    /// Replaces the waiting files by those of a new scan. Approved ones go first.
    pub(super) fn replace(&mut self, files: Vec<Deferred>) {
        self.has_missed = false;
        let present: HashSet<Key> = files.iter().map(Deferred::key).collect();
        self.done.retain(|key, _| present.contains(key));
        let is_new = |file: &Deferred| {
            let key = file.key();
            !self.done.contains_key(&key) && self.running.iter().all(|(other, _)| *other != key)
        };
        let (approved, others): (Vec<_>, Vec<_>) = files
            .into_iter()
            .filter(is_new)
            .partition(|file| file.part == DescriptionPart::Approved);
        self.waiting = approved.into_iter().chain(others).collect();
    }

    /// Takes the next file. Files without approval use at most half of the threads, so that they
    /// hold up no approved one.
    fn next(&mut self) -> Option<Deferred> {
        let is_other = |part: &DescriptionPart| *part != DescriptionPart::Approved;
        let others = self.running.iter().filter(|(_, part)| is_other(part)).count();
        let next = self.waiting.front()?;
        if is_other(&next.part) && others >= threads().div_ceil(2) {
            return None;
        }
        let file = self.waiting.pop_front()?;
        self.running.push((file.key(), file.part));
        Some(file)
    }

    fn end(&mut self, key: Key, latest: Latest) {
        self.running.retain(|(other, _)| *other != key);
        self.done.insert(key, latest);
    }
}

/// The most threads: one more than those of files without approval, also on one core.
fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from).max(2)
}

impl Work {
    /// Starts threads for the waiting files, unless enough run.
    pub(super) fn compile_deferred(self: &Arc<Self>) {
        for _ in 0..threads() {
            let mut background = lock(&self.background);
            if background.waiting.is_empty() || background.threads >= threads() {
                return;
            }
            background.threads = background.threads.saturating_add(1);
            drop(background);
            let work = self.clone();
            let spawned = Builder::new()
                .name("palisade-load".to_owned())
                .spawn(move || work.compile_waiting());
            if let Err(error) = spawned {
                tracing::error!("no thread to compile changed plugins: {error}");
                let mut background = lock(&self.background);
                background.threads = background.threads.saturating_sub(1);
                return background.note_missed();
            }
        }
    }

    fn compile_waiting(&self) {
        loop {
            let mut background = lock(&self.background);
            let next = background.next().filter(|_| !self.cancel.is_cancelled());
            let Some(file) = next else {
                background.threads = background.threads.saturating_sub(1);
                return;
            };
            drop(background);
            let key = file.key();
            let latest = self.compiled(&file.candidate, file.file_digest, file.before.as_ref());
            lock(&self.background).end(key, latest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, part: DescriptionPart) -> Deferred {
        let file_digest = FileDigest { digest: Digest::of(name.as_bytes()), identity: None };
        let candidate = Candidate::plugin(PathBuf::from(name));
        Deferred { candidate, file_digest, before: None, part }
    }

    fn result(background: &mut Background, file: &Deferred) {
        let latest = Latest { file_digest: None, digest: None, plugin: Err("bad".to_owned()) };
        background.end(file.key(), latest);
    }

    #[test]
    fn approved_files_go_first_and_find_a_free_thread() {
        let mut background = Background::default();
        let others =
            (0..threads()).map(|index| file(&index.to_string(), DescriptionPart::Unapproved));
        background.replace(others.chain([file("mine", DescriptionPart::Approved)]).collect());
        assert_eq!(background.next().unwrap().candidate.path(), Some("mine".as_ref()));
        let taken = std::iter::from_fn(|| background.next()).count();
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
        let (kept, gone) = (background.next().unwrap(), background.next().unwrap());
        background.replace(find(&["kept", "gone"]));
        assert!(background.next().is_none(), "both are being compiled");
        result(&mut background, &kept);
        result(&mut background, &gone);
        assert!(background.is_scan_due());
        background.replace(find(&["kept"]));
        assert!(background.next().is_none(), "it is compiled");
        assert!(background.take(&gone.candidate, gone.file_digest.digest).is_none());
        assert!(background.take(&kept.candidate, kept.file_digest.digest).is_some());
        assert!(!background.is_scan_due());
    }
}
