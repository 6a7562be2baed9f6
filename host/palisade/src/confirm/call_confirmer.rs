//! Asks the caller of a call for confirmation, which may arrive only with a later request, and the
//! host's confirmer beside it.

use super::{Answer, ConfirmationRequest, Confirmer, Unavailable};
use crate::execution::BoxFuture;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};

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

/// When a question is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerTime {
    /// While the call waits.
    DuringCall,
    /// With a later call, which runs the tool again.
    LaterCall,
}

/// A way to ask on behalf of one call. Every [`Confirmer`] is one that never answers later.
pub trait CallConfirmer: Send + Sync {
    /// Asks the user, under the terms of [`Confirmer::confirm`].
    fn ask<'a>(&'a self, request: &'a ConfirmationRequest) -> BoxFuture<'a, CallAnswer>;

    /// Returns when questions are answered.
    fn when(&self) -> AnswerTime {
        AnswerTime::DuringCall
    }
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

/// Asks the caller of a call and the host's confirmer at once. The first answer wins, and withdraws
/// the other request. A request that the caller closes without an answer is left to the host's
/// confirmer: some clients close each, because they have no user. The host's confirmer is not asked
/// if the caller answers at once, or with a later call.
pub(crate) fn ask_both<'a>(
    caller: &'a dyn CallConfirmer,
    host: &'a dyn Confirmer,
    request: &'a ConfirmationRequest,
) -> BoxFuture<'a, CallAnswer> {
    let mut of_caller = Some(caller.ask(request));
    let mut of_host = None;
    let mut unless_host_answers = CallAnswer::Unavailable;
    Box::pin(poll_fn(move |cx| {
        match poll_answer(&mut of_caller, cx) {
            Poll::Ready(Some(closed @ CallAnswer::Answered(Answer::None))) => {
                of_caller = None;
                unless_host_answers = closed;
            }
            Poll::Ready(Some(answer)) => return Poll::Ready(answer),
            Poll::Ready(None) | Poll::Pending => {}
        }
        let of_host = of_host.get_or_insert_with(|| Some(host.ask(request)));
        match ready!(poll_answer(of_host, cx)) {
            Some(answer) => Poll::Ready(answer),
            None if of_caller.is_none() => Poll::Ready(unless_host_answers),
            None => Poll::Pending,
        }
    }))
}

/// Polls a request for its answer. `None` if nobody can be asked, also in later polls.
fn poll_answer(
    asked: &mut Option<BoxFuture<'_, CallAnswer>>,
    cx: &mut Context<'_>,
) -> Poll<Option<CallAnswer>> {
    let Some(asking) = asked else { return Poll::Ready(None) };
    let answer = ready!(asking.as_mut().poll(cx));
    if answer == CallAnswer::Unavailable {
        *asked = None;
        return Poll::Ready(None);
    }
    Poll::Ready(Some(answer))
}
