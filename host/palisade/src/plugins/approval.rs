//! Whether the tools of a plugin may be offered.

use std::fmt;
use std::sync::Arc;

/// The approval of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PluginApproval {
    /// Its tools are offered, and the rules of the policy apply to them.
    Approved,
    /// Its tools are offered in this run, because a person has named the file for it. No rule for a
    /// tool loosens the policy for them: it was written for another plugin, or for other bytes.
    ThisRun,
    /// Its tools, resources and prompts are offered to nobody. Calls of its tools are refused.
    Missing(Arc<NotApproved>),
}

/// The reason why a plugin is not approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotApproved {
    reason: String,
    advice: String,
}

impl NotApproved {
    /// Creates a refusal. `reason` continues a sentence about the plugin, such as `it is new`, and
    /// has no words of the plugin. `advice` names the command that approves it.
    #[must_use]
    pub fn new(reason: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { reason: reason.into(), advice: advice.into() }
    }

    /// Returns the reason.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns the advice.
    #[must_use]
    pub fn advice(&self) -> &str {
        &self.advice
    }
}

impl fmt::Display for NotApproved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it is not approved: {}; {}", self.reason, self.advice)
    }
}

impl std::error::Error for NotApproved {}
