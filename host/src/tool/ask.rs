//! What a running tool asks its client for: data only; who answers, and how, is the matter of whoever made the call.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;

/// What a client can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AskKind {
    /// A person, with a form.
    Elicitation,
    /// A model, with messages.
    Sampling,
    /// The directories that the client's user works in.
    Roots,
}

impl AskKind {
    /// The name used in errors, which is that of the contract.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }
}

impl fmt::Display for AskKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a client can be asked for, each kind once.
pub type AskKinds = BTreeSet<AskKind>;

/// One question of a tool. It has passed the bounds of the contract; what its parameters mean has not been looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct AskRequest {
    /// Tells it from the others that are asked at once.
    pub key: String,
    /// Who is asked.
    pub kind: AskKind,
    /// The parameters, as the Model Context Protocol has them for this kind.
    pub params: Map<String, Value>,
}
