//! A queue of confirmation requests that wait for answers: for dialogs, servers and tests.

use super::{Answer, ConfirmationRequest, Confirmer, RequestId, Unavailable};
use crate::execution::BoxFuture;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The number of resolved requests kept, so that a late answer gets their outcome.
const REMEMBERED: usize = 1024;

/// A queue of confirmation requests. Any number of clients may read and answer them; the first
/// answer wins. Clones share the queue.
///
/// ```
/// use palisade::{Answer, ConfirmationQueue, Host, Policy, json};
/// use std::sync::Arc;
///
/// # async fn example() -> Result<(), palisade::BuildError> {
/// let queue = ConfirmationQueue::default();
/// let host = Host::builder().workspace(".").confirmer(Arc::new(queue.clone())).build()?;
/// let call = host.call("write_file", json!({"path": "note.txt", "content": "x"}), json!({}));
/// let answer = async {
///     let question = queue.next().await;
///     println!("{} would change {:?}", question.tool, question.projected_modifications);
///     queue.answer(&question.id, Answer::Deny)
/// };
/// let (result, answered) = tokio::join!(call, answer);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct ConfirmationQueue(Arc<Inner>);

impl fmt::Debug for ConfirmationQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfirmationQueue").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Inner {
    book: Mutex<Book>,
    arrived: tokio::sync::Notify,
}

#[derive(Default)]
struct Book {
    /// The open requests in order of arrival.
    waiting: Vec<Waiting>,
    settled: VecDeque<(RequestId, Option<Answer>)>,
}

struct Waiting {
    request: ConfirmationRequest,
    is_new: bool,
    answer: oneshot::Sender<Answer>,
}

/// The reason why an answer was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerRefused {
    /// Another client answered first.
    #[error("the question was already answered with `{}`", .0.as_str())]
    AlreadyAnswered(Answer),
    /// The request is no longer open: it timed out, its call was cancelled, or it was answered
    /// elsewhere.
    #[error(
        "the question no longer stands: it was withdrawn, answered elsewhere, or its time was up"
    )]
    Withdrawn,
    /// The request never existed, or ended long ago.
    #[error("there is no such question")]
    Unknown,
}

impl ConfirmationQueue {
    /// Returns the open requests, the oldest first.
    #[must_use]
    pub fn pending(&self) -> Vec<ConfirmationRequest> {
        self.book().waiting.iter().map(|waiting| waiting.request.clone()).collect()
    }

    /// Waits for the oldest request that this function has not returned before.
    pub async fn next(&self) -> ConfirmationRequest {
        loop {
            // Created before the check, so that no wake-up is lost between the check and the wait.
            let arrived = self.0.arrived.notified();
            if let Some(waiting) = self.book().waiting.iter_mut().find(|waiting| waiting.is_new) {
                waiting.is_new = false;
                return waiting.request.clone();
            }
            arrived.await;
        }
    }

    /// Answers a request.
    ///
    /// # Errors
    ///
    /// [`AnswerRefused`] if the request is already resolved; it contains the winning answer.
    pub fn answer(&self, id: &RequestId, answer: Answer) -> Result<(), AnswerRefused> {
        let mut book = self.book();
        let Some(waiting) = book.take(id) else { return Err(book.refusal(id)) };
        // The call may have given up without having withdrawn the request yet.
        let taken = waiting.answer.send(answer).is_ok();
        book.settle(id.clone(), taken.then_some(answer));
        if taken { Ok(()) } else { Err(AnswerRefused::Withdrawn) }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, request: &ConfirmationRequest) -> oneshot::Receiver<Answer> {
        let (answer, answered) = oneshot::channel();
        let waiting = Waiting { request: request.clone(), is_new: true, answer };
        self.book().waiting.push(waiting);
        self.0.arrived.notify_waiters();
        answered
    }
}

impl Book {
    fn take(&mut self, id: &RequestId) -> Option<Waiting> {
        let place = self.waiting.iter().position(|waiting| waiting.request.id == *id)?;
        Some(self.waiting.remove(place))
    }

    fn settle(&mut self, id: RequestId, answer: Option<Answer>) {
        if self.settled.len() >= REMEMBERED {
            self.settled.pop_front();
        }
        self.settled.push_back((id, answer));
    }

    fn refusal(&self, id: &RequestId) -> AnswerRefused {
        match self.settled.iter().find(|(known, _)| known == id) {
            Some((_, Some(answer))) => AnswerRefused::AlreadyAnswered(*answer),
            Some((_, None)) => AnswerRefused::Withdrawn,
            None => AnswerRefused::Unknown,
        }
    }
}

impl Confirmer for ConfirmationQueue {
    fn confirm<'a>(
        &'a self,
        request: &'a ConfirmationRequest,
    ) -> BoxFuture<'a, Result<Answer, Unavailable>> {
        Box::pin(async move {
            let answered = self.put(request);
            let _withdrawn = Withdrawn { queue: self, id: &request.id };
            answered.await.map_err(|_| Unavailable)
        })
    }
}

/// A guard that withdraws a request from the queue when its call stops asking.
struct Withdrawn<'a> {
    queue: &'a ConfirmationQueue,
    id: &'a RequestId,
}

impl Drop for Withdrawn<'_> {
    fn drop(&mut self) {
        let mut book = self.queue.book();
        if book.take(self.id).is_some() {
            book.settle(self.id.clone(), None);
        }
    }
}
