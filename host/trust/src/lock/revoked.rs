//! Revocations: of the approval of a plugin, and of bytes under every name.

use super::{Entry, Locator, Lock};
use palisade::tool::Digest;
use serde::{Deserialize, Serialize};
use std::time::SystemTime;

/// Bytes that are revoked under every name, whatever becomes of the entry that they had.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RevokedBytes {
    /// The SHA-256 of the bytes.
    pub digest: Digest,
    /// The name of the plugin that had them.
    pub name: String,
    /// When they were revoked, as a date and time in UTC.
    pub revoked: String,
}

impl Lock {
    /// Returns the bytes that are revoked under every name.
    #[must_use]
    pub fn revoked(&self) -> &[RevokedBytes] {
        &self.revoked
    }

    /// Revokes the approvals of all plugins of this name, or of that from one source, and their
    /// bytes under every name. Returns how many approvals there were.
    pub fn revoke(&mut self, name: &str, source: Option<&str>) -> usize {
        let time = now();
        let is_meant = |entry: &&mut Entry| {
            entry.name == name
                && source.is_none_or(|source| entry.source == source)
                && entry.revoked.is_none()
        };
        let meant = self.entries.iter_mut().filter(is_meant);
        let digests: Vec<Digest> = meant
            .map(|entry| {
                entry.revoked = Some(time.clone());
                entry.digest
            })
            .collect();
        for digest in &digests {
            self.revoke_bytes(name, *digest);
        }
        digests.len()
    }

    /// Revokes bytes under every name, also if they were never approved. `name` is that of the
    /// plugin that has them.
    pub fn revoke_bytes(&mut self, name: &str, digest: Digest) {
        if self.has_revoked(digest) {
            return;
        }
        let name = name.to_owned();
        self.revoked.push(RevokedBytes { digest, name, revoked: now() });
        self.revoked.sort_by_cached_key(|it| (it.name.clone(), it.digest.to_string()));
    }

    /// Returns the name of another plugin under which bytes were revoked, unless this plugin was
    /// revoked itself.
    pub(super) fn revoked_as(&self, of: Locator<'_>, digest: Digest) -> Option<String> {
        if self.entry(of).is_some_and(|own| own.revoked.is_some()) {
            return None;
        }
        let is_it = |entry: &&Entry| entry.digest == digest && entry.revoked.is_some();
        let entry = self.entries.iter().find(is_it).map(|entry| &entry.name);
        let bytes = || self.revoked.iter().find(|it| it.digest == digest);
        let name = entry.or_else(|| bytes().map(|it| &it.name));
        name.filter(|name| *name != of.name).cloned()
    }

    /// Returns true if bytes are revoked under every name.
    pub(super) fn has_revoked(&self, digest: Digest) -> bool {
        self.revoked.iter().any(|it| it.digest == digest)
    }
}

fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}
