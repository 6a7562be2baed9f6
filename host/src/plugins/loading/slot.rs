//! What stands at one place of the order: a plugin, or the reason why there is none, or both where a broken file has come into the place of a good one.

use crate::plugins::candidate::{Candidate, Look};
use crate::plugins::{News, Plugin, Refusal, Rejected};
use crate::tool::Digest;

/// One place of the order.
#[derive(Clone)]
pub(super) struct Slot {
    pub(super) candidate: Candidate,
    /// What its bytes come to.
    pub(super) latest: Latest,
    /// Whose tools are registered: those of an earlier file of this name, where the latest is refused.
    pub(super) standing: Option<Plugin>,
    /// Why those of the latest are not.
    pub(super) rejected: Option<Rejected>,
}

/// The bytes of a file when they were last looked at, and what they come to.
#[derive(Clone)]
pub(super) struct Latest {
    /// Nothing is known of when they were read, or they could not be.
    pub(super) look: Option<Look>,
    pub(super) digest: Option<Digest>,
    pub(super) plugin: Result<Plugin, String>,
}

impl Latest {
    /// A plugin that has just been prepared.
    pub(super) fn of(plugin: Plugin) -> Self {
        Self { look: None, digest: Some(plugin.digest()), plugin: Ok(plugin) }
    }
}

impl Slot {
    /// A place that was free.
    pub(super) fn new(candidate: &Candidate, latest: Latest, registered: Result<(), Refusal>) -> Self {
        let rejected =
            registered.err().map(|Refusal { reason, cause }| Rejected { file: candidate.file(), reason, cause });
        let standing = latest.plugin.as_ref().ok().filter(|_| rejected.is_none()).cloned();
        Self { candidate: candidate.clone(), latest, standing, rejected }
    }

    /// What there is to tell of it when it is new.
    pub(super) fn news(&self) -> impl Iterator<Item = News<'_>> {
        let loaded = self.standing.iter().map(News::Loaded);
        loaded.chain(self.rejected.iter().map(News::Rejected))
    }
}
