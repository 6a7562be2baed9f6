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
/// use palisade::{Host, confirm::{Answer, ConfirmationQueue}, json, policy::Policy};
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
    state: Mutex<QueueState>,
    arrived: tokio::sync::Notify,
}

#[derive(Default)]
struct QueueState {
    /// The open requests in order of arrival.
    open: Vec<OpenRequest>,
    resolved: VecDeque<(RequestId, Option<Answer>)>,
}

struct OpenRequest {
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
        self.state().open.iter().map(|open| open.request.clone()).collect()
    }

    /// Waits for the oldest request that this function has not returned before.
    pub async fn next(&self) -> ConfirmationRequest {
        loop {
            // Created before the check, so that no wake-up is lost between the check and the wait.
            let arrived = self.0.arrived.notified();
            if let Some(open) = self.state().open.iter_mut().find(|open| open.is_new) {
                open.is_new = false;
                return open.request.clone();
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
        let mut state = self.state();
        let Some(open) = state.take(id) else { return Err(state.refusal(id)) };
        // The call may have given up without having withdrawn the request yet.
        let taken = open.answer.send(answer).is_ok();
        state.resolve(id.clone(), taken.then_some(answer));
        if taken { Ok(()) } else { Err(AnswerRefused::Withdrawn) }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, request: &ConfirmationRequest) -> oneshot::Receiver<Answer> {
        let (answer, answered) = oneshot::channel();
        let open = OpenRequest { request: request.clone(), is_new: true, answer };
        self.state().open.push(open);
        self.0.arrived.notify_waiters();
        answered
    }
}

impl QueueState {
    fn take(&mut self, id: &RequestId) -> Option<OpenRequest> {
        let index = self.open.iter().position(|open| open.request.id == *id)?;
        Some(self.open.remove(index))
    }

    fn resolve(&mut self, id: RequestId, answer: Option<Answer>) {
        if self.resolved.len() >= REMEMBERED {
            self.resolved.pop_front();
        }
        self.resolved.push_back((id, answer));
    }

    fn refusal(&self, id: &RequestId) -> AnswerRefused {
        match self.resolved.iter().find(|(known, _)| known == id) {
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
            let answered = self.push(request);
            let _withdrawal = WithdrawOnDrop { queue: self, id: &request.id };
            answered.await.map_err(|_| Unavailable)
        })
    }
}

/// A guard that withdraws a request from the queue when its call stops asking.
struct WithdrawOnDrop<'a> {
    queue: &'a ConfirmationQueue,
    id: &'a RequestId,
}

impl Drop for WithdrawOnDrop<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        if state.take(self.id).is_some() {
            state.resolve(self.id.clone(), None);
        }
    }
}
