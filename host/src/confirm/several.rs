//! Several ways to ask at once: the first answer wins.

use super::{Answer, ConfirmationRequest, Confirmer, NobodyToAsk};
use crate::execution::BoxFuture;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// Puts each question everywhere at once. The first answer wins, and the question is withdrawn from the others; that one of them can ask nobody matters only
/// where none can.
#[derive(Clone)]
pub struct Several(Vec<Arc<dyn Confirmer>>);

impl Several {
    /// Asks all of these.
    #[must_use]
    pub fn new(confirmers: Vec<Arc<dyn Confirmer>>) -> Self {
        Self(confirmers)
    }
}

impl Confirmer for Several {
    fn confirm<'a>(&'a self, request: &'a ConfirmationRequest) -> BoxFuture<'a, Result<Answer, NobodyToAsk>> {
        let mut asked: Vec<_> = self.0.iter().map(|confirmer| confirmer.confirm(request)).collect();
        Box::pin(poll_fn(move |cx| {
            let mut answer = None;
            // All are polled, also after an answer: a question shows at its first poll, and whoever was asked learns how it ended.
            asked.retain_mut(|asking| match asking.as_mut().poll(cx) {
                Poll::Pending => true,
                Poll::Ready(given) => {
                    answer = answer.or(given.ok());
                    false
                }
            });
            match answer {
                Some(answer) => Poll::Ready(Ok(answer)),
                None if asked.is_empty() => Poll::Ready(Err(NobodyToAsk)),
                None => Poll::Pending,
            }
        }))
    }
}
