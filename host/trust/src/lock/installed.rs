//! Plugins that were installed from a source: their entries, and their files beside the lock.
//!
//! The lock alone decides which file is installed: it has the digest, and the file has it in its
//! name. So an update takes effect in the step that replaces the lock, and a process that ends
//! before or after that step leaves a whole plugin.

use super::{Entry, Locator, Lock};
use palisade::tool::Digest;
use std::path::{Path, PathBuf};

/// The part of a source that a directory does not have.
const URL: &str = "://";

/// Returns the folder of installed plugins beside a lock: `palisade.plugins` for `palisade.lock`.
#[must_use]
pub fn installed_folder(lock: &Path) -> PathBuf {
    lock.with_extension("plugins")
}

/// Returns the name of an installed plugin's file.
#[must_use]
pub fn installed_file(name: &str, digest: Digest) -> String {
    format!("{name}@{}.wasm", digest.hex())
}

impl Entry {
    /// Returns true if the plugin was installed from a source, and does not lie in a directory of
    /// the user.
    #[must_use]
    pub fn is_installed(&self) -> bool {
        self.source.contains(URL)
    }
}

impl Lock {
    /// Returns the entries of installed plugins, sorted by name and source.
    pub fn installed(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.is_installed())
    }

    /// Returns the entry of the installed plugin of this name. An entry that is not revoked comes
    /// first.
    #[must_use]
    pub fn installed_as(&self, name: &str) -> Option<&Entry> {
        let named = || self.installed().filter(|entry| entry.name == name);
        named().find(|entry| entry.revoked.is_none()).or_else(|| named().next())
    }

    /// Sets the digest that the source of a plugin resolved to.
    pub fn resolve(&mut self, of: Locator<'_>, resolved: Option<String>) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.is_of(of)) {
            entry.resolved = resolved;
        }
    }

    /// Gives the entry of a plugin another source, from which it is installed from now on.
    pub(crate) fn move_source(&mut self, of: Locator<'_>, to: &str) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.is_of(of)) {
            entry.source = to.to_owned();
        }
        self.sort();
    }

    /// Removes the entry of a plugin, and returns it. This is no revocation: the same bytes are new
    /// afterwards.
    pub fn remove(&mut self, of: Locator<'_>) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.is_of(of))?;
        Some(self.entries.remove(at))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::super::tests::{entry, look};
    use super::*;
    use crate::{Change, LockedPlugins, State};

    fn installed(name: &str, source: &str, bytes: &str) -> Entry {
        Entry { source: source.to_owned(), ..entry(name, bytes, &look()) }
    }

    #[test]
    fn installed_plugin_is_found_by_its_name_and_removed_without_a_revocation() {
        let mut lock = Lock::default();
        lock.approve(entry("git", "a", &look()));
        lock.approve(installed("git", "https://a.org/git.wasm", "b"));
        assert_eq!(lock.installed().count(), 1);
        let source = lock.installed_as("git").unwrap().source.clone();
        assert_eq!(source, "https://a.org/git.wasm");
        let of = Locator { name: "git", source: &source };
        lock.resolve(of, Some("sha256:x".to_owned()));
        assert_eq!(lock.remove(of).unwrap().resolved.as_deref(), Some("sha256:x"));
        assert_eq!(lock.remove(of), None);
        assert!(lock.installed_as("git").is_none() && lock.entries().len() == 1);
        let state = lock.judge(of, Digest::of(b"b"), &look());
        assert_eq!(state, State::New { same_as: None });
    }

    #[test]
    fn new_file_of_one_url_under_two_names_is_no_swap() {
        let mut lock = Lock::default();
        let url = "https://a.org/git.wasm";
        lock.approve(installed("one", url, "a"));
        lock.approve(installed("two", url, "a"));
        lock.approve(installed("one", url, "b"));
        let two = Locator { name: "two", source: url };
        let state = lock.judge(two, Digest::of(b"b"), &look());
        assert_eq!(state, State::Changed(vec![Change::Bytes]));
        lock.approve(installed("far", "https://b.org/far.wasm", "c"));
        let state = lock.judge(two, Digest::of(b"c"), &look());
        assert_eq!(state, State::Changed(vec![Change::BytesOf("far".to_owned())]));
    }

    #[test]
    fn source_of_a_file_is_that_of_the_lock_in_its_folder_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("palisade.lock");
        let source = "oci://ghcr.io/me/git:1";
        Lock::update(&path, |lock| lock.approve(installed("git", source, "a"))).unwrap();
        let locked = LockedPlugins::open(&path).unwrap();
        assert_eq!(locked.missing(), ["git"]);
        let own = installed_folder(&path);
        let file = installed_file("git", Digest::of(b"a"));
        std::fs::create_dir(&own).unwrap();
        std::fs::write(own.join(&file), "a").unwrap();
        assert!(locked.missing().is_empty());
        assert_eq!(locked.source_of("git", &own.join(&file)), source);
        let other = own.to_string_lossy().into_owned();
        assert_eq!(locked.source_of("evil", &own.join("evil.wasm")), other);
        let elsewhere = folder.path().join("palisade.plugins/below");
        assert_ne!(locked.source_of("git", &elsewhere.join(&file)), source);
        let incoming = locked.incoming(&elsewhere, "https://a.org/x.wasm");
        assert_eq!(incoming.source_of("git", &elsewhere.join(&file)), "https://a.org/x.wasm");
    }
}
