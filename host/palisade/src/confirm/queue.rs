//! A queue of confirmation requests that wait for answers: for dialogs, servers and tests.

use super::{Answer, ConfirmationRequest, Confirmer, RequestId, Unavailable};
use crate::execution::BoxFuture;
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
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
    /// A call has taken the answer to its request.
    taken: tokio::sync::Notify,
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
    hold: Hold,
    answer: oneshot::Sender<Answer>,
}

/// Whether [`ConfirmationQueue::next`] withholds a request, because the answer to another one may
/// allow its call too.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Hold {
    /// It does not.
    None,
    /// This request was answered, and its call has not taken the answer yet.
    Answered(RequestId),
    /// That call has taken the answer. The session looks next whether it applies.
    Taken,
}

impl OpenRequest {
    /// Returns true if an *always* for the other request may apply to this one.
    fn is_like(&self, other: &ConfirmationRequest) -> bool {
        let key = |of: &ConfirmationRequest| {
            (of.session_id.clone(), of.tool.clone(), of.side_effects, of.digest)
        };
        key(&self.request) == key(other)
    }
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

    /// Waits for the oldest request that this function has not returned before. After an answer,
    /// further requests of the same tool wait until it is known whether the answer allows them too.
    pub async fn next(&self) -> ConfirmationRequest {
        loop {
            // Created before the check, so that no wake-up is lost between the check and the wait.
            let arrived = self.0.arrived.notified();
            if let Some(open) =
                self.state().open.iter_mut().find(|open| open.is_new && open.hold == Hold::None)
            {
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
        // An allow may count as always.
        if taken && matches!(answer, Answer::Always | Answer::Allow) {
            let similar = state.open.iter_mut().filter(|other| other.is_like(&open.request));
            similar.for_each(|other| other.hold = Hold::Answered(id.clone()));
        }
        state.resolve(id.clone(), taken.then_some(answer));
        if taken { Ok(()) } else { Err(AnswerRefused::Withdrawn) }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, request: &ConfirmationRequest) -> oneshot::Receiver<Answer> {
        let (answer, answered) = oneshot::channel();
        let open = OpenRequest { request: request.clone(), is_new: true, hold: Hold::None, answer };
        self.state().open.push(open);
        self.0.arrived.notify_waiters();
        answered
    }

    /// Completes when the answer that holds this request was taken.
    async fn other_is_taken(&self, id: &RequestId) {
        loop {
            // Created before the check, so that no wake-up is lost between the check and the wait.
            let taken = self.0.taken.notified();
            if self.state().hold_of(id) == Some(Hold::Taken) {
                return;
            }
            taken.await;
        }
    }

    fn release(&self, id: &RequestId) {
        self.state().set_hold(|open| open.request.id == *id, &Hold::None);
        self.0.arrived.notify_waiters();
    }
}

impl QueueState {
    fn hold_of(&self, id: &RequestId) -> Option<Hold> {
        self.open.iter().find(|open| open.request.id == *id).map(|open| open.hold.clone())
    }

    fn set_hold(&mut self, of: impl Fn(&OpenRequest) -> bool, hold: &Hold) {
        let matching = self.open.iter_mut().filter(|open| of(open));
        matching.for_each(|open| open.hold = hold.clone());
    }

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
        // Outside of the future's body, which ends before the dispatcher has recorded the answer.
        let withdrawal = WithdrawOnDrop { queue: self, id: &request.id };
        let mut asking = Box::pin(async move {
            let mut answered = self.push(request);
            loop {
                tokio::select! {
                    biased;
                    answer = &mut answered => return answer.map_err(|_| Unavailable),
                    () = self.other_is_taken(&request.id) => {}
                }
                // The dispatcher drops this future now if the other answer applies.
                tokio::task::yield_now().await;
                self.release(&request.id);
            }
        });
        Box::pin(poll_fn(move |cx| {
            let _ = &withdrawal;
            asking.as_mut().poll(cx)
        }))
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
        let answered = Hold::Answered(self.id.clone());
        state.set_hold(|open| open.hold == answered, &Hold::Taken);
        drop(state);
        self.queue.0.taken.notify_waiters();
    }
}
