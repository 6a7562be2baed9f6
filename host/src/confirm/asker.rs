//! Putting a question to whoever made the call, who may have to answer with another request than the one that asks.

use super::{Answer, ConfirmationRequest, Confirmer, NobodyToAsk};
use crate::execution::BoxFuture;

/// What came of putting a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// An answer.
    Answered(Answer),
    /// Nobody can be asked.
    Nobody,
    /// The question goes out with the end of this call. Whoever answers it makes the call again, and brings the answer along.
    Later,
}

/// A way to ask on behalf of one call. Every [`Confirmer`] is one that never answers later.
pub(crate) trait Asker: Send + Sync {
    /// Puts the question, under the terms of [`Confirmer::confirm`].
    fn put<'a>(&'a self, request: &'a ConfirmationRequest) -> BoxFuture<'a, Asked>;
}

impl<C: Confirmer + ?Sized> Asker for C {
    fn put<'a>(&'a self, request: &'a ConfirmationRequest) -> BoxFuture<'a, Asked> {
        let answer = self.confirm(request);
        Box::pin(async move { answer.await.into() })
    }
}

impl From<Result<Answer, NobodyToAsk>> for Asked {
    fn from(answered: Result<Answer, NobodyToAsk>) -> Self {
        answered.map_or(Self::Nobody, Self::Answered)
    }
}
