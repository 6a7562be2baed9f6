//! The reason why a candidate is not a plugin.

use crate::plugins::approval::NotApproved;
use crate::sandbox::PluginRefused;
use crate::tool::Digest;

/// The reason why a candidate is not a plugin.
#[derive(Debug, Clone)]
pub(in crate::plugins) struct CandidateError {
    pub(in crate::plugins) reason: String,
    /// The digest of the refused bytes, if known.
    pub(in crate::plugins) digest: Option<Digest>,
    /// The thing that the candidate lacks.
    pub(in crate::plugins) lacks: Lacks,
}

/// The thing that a candidate lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plugins) enum Lacks {
    /// A grant alone: with it the candidate may be a plugin.
    Grant,
    /// Room for its description beside those of the other plugins.
    Room,
    /// Something that no operator can give it.
    Fitness,
}

impl CandidateError {
    pub(super) fn new(refused: &PluginRefused, digest: Digest) -> Self {
        let lacks = match refused {
            PluginRefused::NoRoom { .. } | PluginRefused::NoAddressSpace { .. } => Lacks::Room,
            refused if refused.lacks_grant() => Lacks::Grant,
            _ => Lacks::Fitness,
        };
        Self { reason: refused.to_string(), digest: Some(digest), lacks }
    }

    /// Returns the digest of the refused bytes, if the same bytes are refused again. Room for them
    /// may be left later.
    pub(in crate::plugins) fn lasting_digest(&self, known: Option<Digest>) -> Option<Digest> {
        match self.lacks {
            Lacks::Room => None,
            Lacks::Grant | Lacks::Fitness => self.digest.or(known),
        }
    }

    pub(in crate::plugins) fn not_approved(why: &NotApproved, digest: Digest) -> Self {
        Self { reason: why.to_string(), digest: Some(digest), lacks: Lacks::Fitness }
    }
}

impl From<String> for CandidateError {
    fn from(reason: String) -> Self {
        Self { reason, digest: None, lacks: Lacks::Fitness }
    }
}
