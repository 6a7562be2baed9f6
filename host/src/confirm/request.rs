//! A question, and what can come of it.

use crate::tool::{CallId, Digest, SideEffects};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Identifies a question. Random, so that nobody can answer a question that they were not shown.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// A new one: 128 random bits. `None` where the system gives no randomness; nothing may be asked then.
    pub(crate) fn random() -> Option<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok()?;
        Some(Self(format!("cr_{:032x}", u128::from_be_bytes(bytes)).into()))
    }

    /// An id as a client sends it back. One that belongs to no question is refused when it is used.
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self(crate::tool::text::elided(id, 64).into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a person is asked. The answer counts for this tool, of this plugin, with this input, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfirmationRequest {
    /// The question.
    pub id: RequestId,
    /// The call that waits.
    pub call_id: CallId,
    /// The conversation, if there is one.
    pub session_id: Option<Arc<str>>,
    /// The turn of the conversation, if there is one.
    pub turn_id: Option<Arc<str>>,
    /// The tool.
    pub tool: String,
    /// Its class.
    pub side_effects: SideEffects,
    /// The input, escaped and shortened in its middle.
    pub input_summary: String,
    /// The paths that the call would change, relative to the workspace.
    pub projected_modifications: Vec<String>,
    /// The name of the plugin, unless the tool is a native one.
    pub plugin: Option<String>,
    /// The digest of the plugin, unless the tool is a native one.
    pub digest: Option<Digest>,
    /// How long the question stands in all.
    pub valid_for: Duration,
    /// When it ends, by the clock on the wall: for showing only.
    pub expires: SystemTime,
}

/// What a person answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Answer {
    /// This call may run.
    Allow,
    /// It may not.
    Deny,
    /// This call may run, and so may every later one of the same tool of the same plugin in this session.
    Always,
}

impl Answer {
    /// The name used in events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Always => "always",
        }
    }
}

/// How a question was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Decision {
    /// By an answer.
    Answered(Answer),
    /// By an answer to another question: the tool is always allowed since.
    AllowedMeanwhile,
    /// By silence.
    TimedOut,
    /// By the end of the call: it was cancelled, or its caller has gone.
    Withdrawn,
    /// By nobody: whoever was to be asked could not be reached after all.
    Unanswerable,
    /// Not yet: the question went to the client with the end of the call, and is put again when the call is.
    Deferred,
}

impl Decision {
    /// The name used in events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered(answer) => answer.as_str(),
            Self::AllowedMeanwhile => "always",
            Self::TimedOut => "timeout",
            Self::Withdrawn => "cancelled",
            Self::Unanswerable => "nobody",
            Self::Deferred => "deferred",
        }
    }
}
