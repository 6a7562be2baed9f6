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

    /// Returns the entry of the installed plugin of this name. One that is not revoked comes first.
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

    /// Removes the entry of a plugin, and returns it. This is no revocation: the same bytes are new
    /// afterwards.
    pub fn remove(&mut self, of: Locator<'_>) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.is_of(of))?;
        Some(self.entries.remove(at))
    }
}
