//! Confirmation by a user. The policy decides that a confirmation is needed; the embedder decides
//! how to ask.

pub(crate) mod call_confirmer;
mod displayed_files;
mod first_of;
mod queue;
mod request;

pub(crate) use call_confirmer::{AnswerTime, CallAnswer, CallConfirmer, ask_both};

pub use displayed_files::DisplayedFiles;
pub use first_of::FirstOf;
pub use queue::{AnswerRefused, ConfirmationQueue};
pub use request::{Answer, CallingTool, ConfirmationRequest, RequestId, Resolution};

use crate::execution::BoxFuture;
use std::fmt;

/// The error of a confirmer that cannot reach a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nobody can be asked")]
pub struct Unavailable;

/// A way to ask a user: a terminal, a program's own dialog, a [`ConfirmationQueue`] that other code
/// reads, or [`FirstOf`] several.
pub trait Confirmer: Send + Sync {
    /// Asks the user. The call's clock is paused meanwhile; dropping the future withdraws the
    /// request.
    ///
    /// A confirmer that displays requests must do so at the future's first poll. The event is sent
    /// only afterwards, so that its subscribers can already answer.
    ///
    /// A confirmer that displays one request at a time keeps its turn until the future is dropped:
    /// an [`Answer::Always`] is recorded before that. When the next request has its turn, its
    /// future returns `Pending` once before the display, and is dropped if the recorded answer
    /// applies.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if no user can be reached: the call is then refused.
    fn confirm<'a>(
        &'a self,
        request: &'a ConfirmationRequest,
    ) -> BoxFuture<'a, Result<Answer, Unavailable>>;
}

/// The default confirmer: there is no user to ask, so calls that need confirmation are refused.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoConfirmer;

impl Confirmer for NoConfirmer {
    fn confirm<'a>(
        &'a self,
        _: &'a ConfirmationRequest,
    ) -> BoxFuture<'a, Result<Answer, Unavailable>> {
        Box::pin(async { Err(Unavailable) })
    }
}

/// A confirmer that denies every request: the calls end as `user_denied`.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenyAll;

impl Confirmer for DenyAll {
    fn confirm<'a>(
        &'a self,
        _: &'a ConfirmationRequest,
    ) -> BoxFuture<'a, Result<Answer, Unavailable>> {
        Box::pin(async { Ok(Answer::Deny) })
    }
}

/// A confirmer that answers with a function of the embedder.
///
/// ```
/// use palisade::confirm::{Answer, ConfirmFn};
///
/// let formatter_only = ConfirmFn::new(|request| {
///     if request.plugin.as_deref() == Some("formatter") { Answer::Allow } else { Answer::Deny }
/// });
/// # let _: &dyn palisade::confirm::Confirmer = &formatter_only;
/// ```
pub struct ConfirmFn<F>(F);

impl<F: Fn(&ConfirmationRequest) -> Answer + Send + Sync> ConfirmFn<F> {
    /// Creates a confirmer from a function. It runs on the thread of the call and must return at
    /// once.
    #[must_use]
    pub fn new(answer: F) -> Self {
        Self(answer)
    }
}

impl<F> fmt::Debug for ConfirmFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfirmFn").finish_non_exhaustive()
    }
}

impl<F: Fn(&ConfirmationRequest) -> Answer + Send + Sync> Confirmer for ConfirmFn<F> {
    fn confirm<'a>(
        &'a self,
        request: &'a ConfirmationRequest,
    ) -> BoxFuture<'a, Result<Answer, Unavailable>> {
        Box::pin(async move { Ok((self.0)(request)) })
    }
}

#[cfg(test)]
mod tests;
