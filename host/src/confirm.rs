//! Asking a person. Policy decides that a question is needed; whoever embeds the host decides how it is put.

use crate::execution::BoxFuture;
use crate::tool::{CallId, Digest, SideEffects};

/// What a person is asked.
#[derive(Debug, Clone)]
pub struct ConfirmationRequest {
    /// The call that waits.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// Its class.
    pub side_effects: SideEffects,
    /// The input, escaped and shortened in its middle.
    pub input_summary: String,
    /// The paths that the call would change, relative to the workspace.
    pub projected_modifications: Vec<String>,
    /// The digest of the plugin, unless the tool is a native one.
    pub digest: Option<Digest>,
}

/// What a person answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// This call may run.
    Allow,
    /// It may not.
    Deny,
}

/// Nobody can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nobody can be asked")]
pub struct NobodyToAsk;

/// A way to ask a person.
pub trait Confirmer: Send + Sync {
    /// Puts the question. The call's own clock does not run meanwhile; dropping the future withdraws the question.
    ///
    /// # Errors
    ///
    /// [`NobodyToAsk`] where no person can be reached: the call is then refused.
    fn confirm<'a>(&'a self, request: &'a ConfirmationRequest) -> BoxFuture<'a, Result<Answer, NobodyToAsk>>;
}

/// The default: nobody can be asked, so whatever needs an answer is refused.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoConfirmer;

impl Confirmer for NoConfirmer {
    fn confirm<'a>(&'a self, _: &'a ConfirmationRequest) -> BoxFuture<'a, Result<Answer, NobodyToAsk>> {
        Box::pin(async { Err(NobodyToAsk) })
    }
}
