//! Asks the caller of a call for confirmation, which may arrive only with a later request.

use super::{Answer, ConfirmationRequest, Confirmer, Unavailable};
use crate::execution::BoxFuture;

/// The outcome of a confirmation request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallAnswer {
    /// The user answered.
    Answered(Answer),
    /// There is no user to ask.
    Unavailable,
    /// The request is sent with the end of this call. The caller makes the call again with the
    /// answer.
    Deferred,
}

/// A way to ask on behalf of one call. Every [`Confirmer`] is one that never answers later.
pub trait CallConfirmer: Send + Sync {
    /// Asks the user, under the terms of [`Confirmer::confirm`].
    fn ask<'a>(&'a self, request: &'a ConfirmationRequest) -> BoxFuture<'a, CallAnswer>;
}

impl<C: Confirmer + ?Sized> CallConfirmer for C {
    fn ask<'a>(&'a self, request: &'a ConfirmationRequest) -> BoxFuture<'a, CallAnswer> {
        let answer = self.confirm(request);
        Box::pin(async move { answer.await.into() })
    }
}

impl From<Result<Answer, Unavailable>> for CallAnswer {
    fn from(answered: Result<Answer, Unavailable>) -> Self {
        answered.map_or(Self::Unavailable, Self::Answered)
    }
}
