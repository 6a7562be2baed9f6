//! The lock: what a person has approved, and the comparison of a plugin with it.

mod change;
mod file;
mod form;
mod installed;
mod revoked;
mod store;
mod version;

pub use change::Change;
pub use file::LockError;
pub(crate) use file::{LockOf, lock_file};
pub use installed::{installed_file, installed_folder};
pub use revoked::RevokedBytes;
pub(crate) use store::{keep_words, kept_words};
pub(crate) use version::{falls_below, is_older};

use crate::signature::Signer;
use crate::words::{ToolWords, Words, WordsHash};
use palisade::tool::Digest;
use palisade::tool::text::elided;
use serde::{Deserialize, Serialize};

/// The most digests of earlier approvals that an entry keeps, by which a rollback is recognised.
const EARLIER: usize = 256;
/// The most changes that a sentence names.
const MAX_CHANGES: usize = 6;

/// The place of a plugin: the name of its file without `.wasm`, and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Locator<'a> {
    /// The plugin's name.
    pub name: &'a str,
    /// The source: the directory of the file, or the URL that the plugin was installed from.
    pub source: &'a str,
}

/// The approval of one plugin, or its revocation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Entry {
    /// The plugin's name.
    pub name: String,
    /// The source: the directory of the file, or the URL that the plugin was installed from.
    pub source: String,
    /// The digest that the source resolved to, where it has digests of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved: Option<String>,
    /// The SHA-256 of the plugin's bytes.
    pub digest: Digest,
    /// The size of the bytes.
    pub size: u64,
    /// The version, if the plugin has one: the highest that was approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_seen: Option<String>,
    /// The interface that the plugin implements.
    pub wit: String,
    /// The hash over all words.
    pub describes: WordsHash,
    /// The names of the imports.
    #[serde(default)]
    pub imports: Vec<String>,
    /// The key that has signed the bytes, if a signature was verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signer: Option<Signer>,
    /// When the plugin was approved, as a date and time in UTC.
    pub approved: String,
    /// When the approval was revoked, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked: Option<String>,
    /// The digests of earlier approvals, the latest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Digest>,
    /// The tools.
    #[serde(default, rename = "tool")]
    pub tools: Vec<ToolEntry>,
}

/// One tool of an approved plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolEntry {
    /// The tool's name.
    pub name: String,
    /// The name of the tool's class.
    pub class: String,
    /// The hash over the tool's words.
    pub describes: WordsHash,
}

impl From<&ToolWords> for ToolEntry {
    fn from(tool: &ToolWords) -> Self {
        let class = tool.class.as_str().to_owned();
        Self { name: tool.name.clone(), class, describes: tool.hash() }
    }
}

/// The approvals of a user, or of a project, sorted by name and source.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lock {
    entries: Vec<Entry>,
    revoked: Vec<RevokedBytes>,
}

/// The state of a plugin in a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It comes with the host.
    Shipped,
    /// It is as it was approved.
    Approved,
    /// It was never approved. The name is that of an approved plugin with the same bytes.
    New {
        /// The approved plugin with the same bytes.
        same_as: Option<String>,
    },
    /// It is not what was approved.
    Changed(Vec<Change>),
    /// Its approval was revoked, or its bytes were.
    Revoked {
        /// The plugin of another name whose revocation covers these bytes, unless this plugin was
        /// revoked itself.
        with: Option<String>,
    },
}

impl State {
    /// Returns the name of the state.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Shipped => "shipped",
            Self::Approved => "approved",
            Self::New { .. } => "new",
            Self::Changed(_) => "changed",
            Self::Revoked { .. } => "revoked",
        }
    }

    /// Returns the state in words that continue a sentence about the plugin.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Shipped => "it comes with the host".to_owned(),
            Self::Approved => "it is approved".to_owned(),
            Self::New { same_as: None } => "it is new".to_owned(),
            Self::New { same_as: Some(name) } => {
                format!("it is new, with the bytes of the approved plugin `{}`", elided(name, 80))
            }
            Self::Changed(changes) => {
                let shown: Vec<String> =
                    changes.iter().take(MAX_CHANGES).map(ToString::to_string).collect();
                let more = match changes.len().saturating_sub(MAX_CHANGES) {
                    0 => String::new(),
                    more => format!("; and {more} more differences"),
                };
                format!("it has changed since it was approved: {}{more}", shown.join("; "))
            }
            Self::Revoked { with: None } => "its approval was revoked".to_owned(),
            Self::Revoked { with: Some(name) } => {
                format!("its bytes were revoked as the plugin `{}`", elided(name, 80))
            }
        }
    }

    /// Returns true if the approval or the bytes of the plugin were revoked.
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        matches!(self, Self::Revoked { .. })
    }
}

impl Lock {
    /// Returns the entries, sorted by name and source.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the entry of a plugin.
    #[must_use]
    pub fn entry(&self, of: Locator<'_>) -> Option<&Entry> {
        let key = (of.name, of.source);
        let at = self.entries.binary_search_by(|entry| entry.key().cmp(&key)).ok()?;
        self.entries.get(at)
    }

    /// Returns true if bytes and words are those that were approved: the quick case of
    /// [`judge`](Self::judge).
    pub(crate) fn is_as_approved(&self, of: Locator<'_>, digest: Digest, words: WordsHash) -> bool {
        self.judge_bytes(of, digest) == State::Approved
            && self.entry(of).is_some_and(|entry| entry.describes == words)
    }

    /// Says whether a plugin is the one that was approved. It is only if its bytes and all of its
    /// words are.
    #[must_use]
    pub fn judge(&self, of: Locator<'_>, digest: Digest, words: &Words) -> State {
        match self.judge_bytes(of, digest) {
            State::Approved => {}
            State::Changed(changes) => {
                let words = self.entry(of).map(|entry| entry.changed_words(words));
                return State::Changed(
                    changes.into_iter().chain(words.unwrap_or_default()).collect(),
                );
            }
            other => return other,
        }
        match self.entry(of).map(|entry| entry.changed_words(words)) {
            Some(changes) if changes.is_empty() => State::Approved,
            Some(changes) => State::Changed(changes),
            None => State::New { same_as: None },
        }
    }

    /// Does the same for the bytes alone, before anything of them runs. [`State::Approved`] means
    /// no more than that the bytes are those that were approved.
    #[must_use]
    pub fn judge_bytes(&self, of: Locator<'_>, digest: Digest) -> State {
        // Revoked bytes are revoked under every name. Only an approval of these bytes for this very
        // plugin, which is younger, lifts the revocation of another entry.
        let has = |entry: &&Entry| entry.digest == digest;
        let is_approved = self.entry(of).filter(has).is_some_and(|own| own.revoked.is_none());
        let mut entries = self.entries.iter().filter(has);
        if self.has_revoked(digest)
            || (!is_approved && entries.any(|entry| entry.revoked.is_some()))
        {
            return State::Revoked { with: self.revoked_as(of, digest) };
        }
        let mut others = self.entries.iter().filter(|it| it.digest == digest && !it.is_of(of));
        match self.entry(of) {
            None => State::New { same_as: others.next().map(|other| other.name.clone()) },
            Some(entry) if entry.revoked.is_some() => State::Revoked { with: None },
            Some(entry) if entry.digest == digest => State::Approved,
            Some(entry) if entry.earlier.contains(&digest) => {
                State::Changed(vec![Change::Rollback])
            }
            Some(own) => {
                // A URL gives its file to each plugin that was installed from it.
                let from_elsewhere = |it: &&Entry| {
                    it.name != own.name && (it.source != own.source || !own.is_installed())
                };
                // The other plugin may have been approved with other bytes since.
                let had = |it: &&Entry| it.earlier.contains(&digest) && !it.is_of(of);
                let others = others.chain(self.entries.iter().filter(had));
                let other = others.filter(from_elsewhere).map(|other| other.name.clone()).next();
                State::Changed(vec![other.map_or(Change::Bytes, Change::BytesOf)])
            }
        }
    }

    /// Adds an approval. It replaces an earlier one of the same plugin, and keeps the highest
    /// version and the digests that were approved before. It lifts the revocation of the same
    /// bytes. Other bytes that were revoked stay so.
    pub fn approve(&mut self, mut entry: Entry) {
        self.revoked.retain(|it| it.digest != entry.digest);
        let of = Locator { name: &entry.name, source: &entry.source };
        let Some(at) = self.entries.iter().position(|known| known.is_of(of)) else {
            self.entries.push(entry);
            return self.sort();
        };
        let former = self.entries.remove(at);
        if former.revoked.is_some() && former.digest != entry.digest {
            self.revoke_bytes(&former.name, former.digest);
        }
        let earlier = [former.digest].into_iter().chain(former.earlier);
        entry.earlier = earlier.filter(|digest| *digest != entry.digest).take(EARLIER).collect();
        let version = entry.version_seen.as_deref();
        let is_lower = |highest: &String| version.is_none() || falls_below(version, highest);
        if let Some(highest) = former.version_seen.filter(is_lower) {
            entry.version_seen = Some(highest);
        }
        self.entries.insert(at, entry);
        self.sort();
    }

    /// Sorts the entries, so that the file of two machines with the same approvals is alike.
    fn sort(&mut self) {
        self.entries.sort_by(|one, other| one.key().cmp(&other.key()));
    }
}

impl Entry {
    /// Returns true if this is the entry of a plugin.
    #[must_use]
    pub fn is_of(&self, of: Locator<'_>) -> bool {
        self.name == of.name && self.source == of.source
    }

    /// Returns the key by which entries are sorted.
    fn key(&self) -> (&str, &str) {
        (&self.name, &self.source)
    }

    /// Returns the differences between words and those that were approved.
    fn changed_words(&self, words: &Words) -> Vec<Change> {
        if words.hash() == self.describes {
            return Vec::new();
        }
        let has = |tools: &[ToolWords], name: &str| tools.iter().any(|tool| tool.name == name);
        let known = |name: &str| self.tools.iter().find(|tool| tool.name == name);
        let added: Vec<String> = words
            .tools
            .iter()
            .filter(|tool| known(&tool.name).is_none())
            .map(|tool| tool.name.clone())
            .collect();
        let removed: Vec<String> = self
            .tools
            .iter()
            .filter(|tool| !has(&words.tools, &tool.name))
            .map(|tool| tool.name.clone())
            .collect();
        let mut changes = vec![Change::Words];
        // A sentence names the first changes only: a class that is wider has to be among them.
        let (wider, narrower): (Vec<Change>, Vec<Change>) =
            self.changed_classes(words).partition(Change::is_wider);
        changes.extend(wider);
        changes.extend((!added.is_empty()).then_some(Change::Added(added)));
        changes.extend((!removed.is_empty()).then_some(Change::Removed(removed)));
        changes.extend(narrower);
        changes
    }

    /// Returns the classes that differ from those that were approved.
    fn changed_classes(&self, words: &Words) -> impl Iterator<Item = Change> {
        words.tools.iter().filter_map(|tool| {
            let known = self.tools.iter().find(|known| known.name == tool.name);
            let from = known.filter(|known| known.class != tool.class.as_str())?.class.clone();
            Some(Change::Class { tool: tool.name.clone(), from, to: tool.class })
        })
    }
}

#[cfg(test)]
mod tests;
