//! Asks several confirmers at once; the first answer wins.

use super::{Answer, ConfirmationRequest, Confirmer, Unavailable};
use crate::execution::BoxFuture;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// A confirmer that forwards each request to several others. The first answer wins and withdraws
/// the request from the rest. Asking fails only if none of them can reach a user.
#[derive(Clone)]
pub struct FirstOf(Vec<Arc<dyn Confirmer>>);

impl FirstOf {
    /// Creates a confirmer that asks all of these.
    #[must_use]
    pub fn new(confirmers: Vec<Arc<dyn Confirmer>>) -> Self {
        Self(confirmers)
    }
}

impl fmt::Debug for FirstOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FirstOf").field("confirmers", &self.0.len()).finish_non_exhaustive()
    }
}

impl Confirmer for FirstOf {
    fn confirm<'a>(
        &'a self,
        request: &'a ConfirmationRequest,
    ) -> BoxFuture<'a, Result<Answer, Unavailable>> {
        let mut asked: Vec<_> = self.0.iter().map(|confirmer| confirmer.confirm(request)).collect();
        Box::pin(poll_fn(move |cx| {
            let mut answer = None;
            // All confirmers are polled even after an answer: a request is displayed at its first
            // poll, so a late answer is told the outcome.
            asked.retain_mut(|asking| match asking.as_mut().poll(cx) {
                Poll::Pending => true,
                Poll::Ready(given) => {
                    answer = answer.or(given.ok());
                    false
                }
            });
            match answer {
                Some(answer) => Poll::Ready(Ok(answer)),
                None if asked.is_empty() => Poll::Ready(Err(Unavailable)),
                None => Poll::Pending,
            }
        }))
    }
}
