//! Requests from a running tool to its client: data only. The embedder that made the call answers
//! them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;

/// The kind of client request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AskKind {
    /// A form for a person.
    Elicitation,
    /// Messages for a model.
    Sampling,
    /// The working directories of the client's user.
    Roots,
}

impl AskKind {
    /// Returns the kind's name in the contract, which errors use as well.
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

/// A set of request kinds.
pub type AskKinds = BTreeSet<AskKind>;

/// One request from a tool. Its size is within the contract's bounds; its parameters are not
/// validated.
#[derive(Debug, Clone, PartialEq)]
pub struct AskRequest {
    /// Distinguishes the request from the others of the same batch.
    pub key: String,
    /// The kind of request.
    pub kind: AskKind,
    /// The parameters, in the Model Context Protocol's form for this kind.
    pub params: Map<String, Value>,
}
