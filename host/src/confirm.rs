//! Asking a person. Policy decides that a question is needed; whoever embeds the host decides how it is put.

mod asker;
mod desk;
mod request;
mod several;

pub(crate) use asker::{Asked, Asker};

pub use desk::{AnswerRefused, Desk};
pub use request::{Answer, ConfirmationRequest, Decision, RequestId};
pub use several::Several;

use crate::execution::BoxFuture;

/// Nobody can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nobody can be asked")]
pub struct NobodyToAsk;

/// A way to ask a person: a terminal, a program's own dialog, a [`Desk`] where answers are handed in, or [`Several`] at once.
pub trait Confirmer: Send + Sync {
    /// Puts the question. The call's own clock does not run meanwhile; dropping the future withdraws the question.
    ///
    /// Where questions are shown, they are shown at the future's first poll: events tell of a question only after that, so that whoever hears of one can answer.
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

/// Answers every question with no: the calls end as `user_denied`, as if a person had sat there.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenyAll;

impl Confirmer for DenyAll {
    fn confirm<'a>(&'a self, _: &'a ConfirmationRequest) -> BoxFuture<'a, Result<Answer, NobodyToAsk>> {
        Box::pin(async { Ok(Answer::Deny) })
    }
}

/// Answers with a function of the program that embeds the host.
///
/// ```
/// use palisade::{Answer, AnswerBy};
///
/// let docs_only = AnswerBy::new(|request| {
///     if request.projected_modifications.iter().all(|path| path.starts_with("docs/")) { Answer::Allow } else { Answer::Deny }
/// });
/// # let _: &dyn palisade::Confirmer = &docs_only;
/// ```
pub struct AnswerBy<F>(F);

impl<F: Fn(&ConfirmationRequest) -> Answer + Send + Sync> AnswerBy<F> {
    /// Answers with this function. It runs on the thread of the call: it must return at once.
    #[must_use]
    pub fn new(answer: F) -> Self {
        Self(answer)
    }
}

impl<F: Fn(&ConfirmationRequest) -> Answer + Send + Sync> Confirmer for AnswerBy<F> {
    fn confirm<'a>(&'a self, request: &'a ConfirmationRequest) -> BoxFuture<'a, Result<Answer, NobodyToAsk>> {
        Box::pin(async move { Ok((self.0)(request)) })
    }
}

#[cfg(test)]
mod tests;
