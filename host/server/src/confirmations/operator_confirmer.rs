//! The confirmer that asks the attached operators.

use super::attendance::{Attached, Attendance, Attending};
use super::settled::{Settled, SettledQuestion, Settlement};
use crate::recorder::Recorder;
use palisade::BoxFuture;
use palisade::confirm::{
    Answer, AnswerRefused, ConfirmationQueue, ConfirmationRequest, Confirmer, RequestId,
    Unavailable,
};
use palisade::events::{Envelope, Event, Subscriber};
use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

/// How long a late answer waits for the outcome of its question. The event follows the withdrawal
/// at once.
const OUTCOME: Duration = Duration::from_secs(1);

/// A confirmer that asks the operators who read a server's events, and takes the first answer. If
/// nobody is attached, the call is refused at once.
///
/// Make it before the host, and give it to both: see [`Wiring`](crate::Wiring).
pub struct OperatorConfirmer {
    queue: ConfirmationQueue,
    attendance: Attendance,
    /// When each open question was asked.
    asked: Mutex<HashMap<RequestId, Instant>>,
    /// Held while an answer is given, so that the recorder is told of the winner only.
    settled: Mutex<Settled>,
    settled_more: Notify,
    recorder: Option<Arc<Recorder>>,
}

/// An open question.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) request: ConfirmationRequest,
    /// The time for which it is still open.
    pub(crate) remaining: Duration,
}

/// The reason why an answer was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotAnswered {
    /// Another answer was first.
    Already(Settlement),
    /// The question ended without an answer.
    Over(Settlement),
    /// There is no such question, or it ended long ago.
    Unknown,
}

impl fmt::Debug for OperatorConfirmer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperatorConfirmer")
            .field("attendance", &self.attendance)
            .finish_non_exhaustive()
    }
}

impl OperatorConfirmer {
    /// Creates a confirmer.
    #[must_use]
    pub fn new(attached: Attached) -> Self {
        Self {
            queue: ConfirmationQueue::default(),
            attendance: Attendance::new(attached),
            asked: Mutex::default(),
            settled: Mutex::default(),
            settled_more: Notify::new(),
            recorder: None,
        }
    }

    /// Sets the recorder that is told of each question, and who answers it.
    #[must_use]
    pub fn recording(mut self, recorder: Arc<Recorder>) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Counts an operator as attached until the returned value is dropped. For a program that shows
    /// questions by other means than the server's events, such as a terminal.
    #[must_use]
    pub fn attend(&self) -> Attending {
        self.attendance.enter()
    }

    /// Returns the number of attached operators.
    #[must_use]
    pub fn attached(&self) -> usize {
        self.attendance.count()
    }

    /// Returns the queue of open questions, for a program that shows them by other means.
    #[must_use]
    pub fn queue(&self) -> &ConfirmationQueue {
        &self.queue
    }

    /// Returns the open questions, the oldest first.
    pub(crate) fn questions(&self) -> Vec<Question> {
        let asked = self.asked();
        let remaining = |request: &ConfirmationRequest| {
            let since = asked.get(&request.id).map_or(Duration::ZERO, Instant::elapsed);
            request.valid_for.saturating_sub(since)
        };
        let pending = self.queue.pending().into_iter();
        pending.map(|request| Question { remaining: remaining(&request), request }).collect()
    }

    /// Returns the open question of this id.
    pub(crate) fn question(&self, id: &RequestId) -> Option<Question> {
        self.questions().into_iter().find(|question| question.request.id == *id)
    }

    /// Returns the outcome of a question that ended lately.
    pub(crate) fn outcome(&self, id: &RequestId) -> Option<Settlement> {
        self.settled().get(id).map(|question| question.settlement.clone())
    }

    /// Answers a question of this session and turn.
    pub(crate) async fn answer(
        &self,
        (session, turn): (Option<&str>, Option<&str>),
        id: &RequestId,
        answer: Answer,
        by: &str,
    ) -> Result<Settlement, NotAnswered> {
        let is_its = |of: (&Option<Arc<str>>, &Option<Arc<str>>)| {
            (of.0.as_deref(), of.1.as_deref()) == (session, turn)
        };
        if let Some(question) = self.question(id) {
            let request = &question.request;
            if !is_its((&request.session_id, &request.turn_id)) {
                return Err(NotAnswered::Unknown);
            }
            if let Some(settlement) = self.try_answer(request, answer, by) {
                return Ok(settlement);
            }
        }
        let Some(settled) = self.wait_for_outcome(id).await else {
            return Err(NotAnswered::Unknown);
        };
        if !is_its((&settled.session, &settled.turn)) {
            return Err(NotAnswered::Unknown);
        }
        match settled.settlement.is_answer() {
            true => Err(NotAnswered::Already(settled.settlement)),
            false => Err(NotAnswered::Over(settled.settlement)),
        }
    }

    /// Gives the answer, unless the question is settled.
    fn try_answer(
        &self,
        request: &ConfirmationRequest,
        answer: Answer,
        by: &str,
    ) -> Option<Settlement> {
        let mut settled = self.settled();
        if settled.get(&request.id).is_some() {
            return None;
        }
        // Before the answer is given, so that the record of it says by whom.
        if let Some(recorder) = &self.recorder {
            recorder.answered_by(&request.id, by);
        }
        let given: Result<(), AnswerRefused> = self.queue.answer(&request.id, answer);
        given.ok()?;
        let settlement = Settlement::now(answer.as_str(), Some(by));
        settled.insert(SettledQuestion {
            id: request.id.clone(),
            session: request.session_id.clone(),
            turn: request.turn_id.clone(),
            settlement: settlement.clone(),
        });
        Some(settlement)
    }

    /// Returns the outcome of a question, which may have ended a moment ago.
    async fn wait_for_outcome(&self, id: &RequestId) -> Option<SettledQuestion> {
        let known = || self.settled().get(id).cloned();
        if known().is_none() && !self.was_asked(id) {
            return None;
        }
        let wait = async {
            loop {
                // Created before the check, so that no wake-up is lost between the check and the
                // wait.
                let more = self.settled_more.notified();
                if let Some(settled) = known() {
                    return settled;
                }
                more.await;
            }
        };
        timeout(OUTCOME, wait).await.ok()
    }

    /// Returns true if the queue knows the question, open or not.
    fn was_asked(&self, id: &RequestId) -> bool {
        self.asked().contains_key(id)
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<RequestId, Instant>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settled(&self) -> MutexGuard<'_, Settled> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Confirmer for OperatorConfirmer {
    fn confirm<'a>(
        &'a self,
        request: &'a ConfirmationRequest,
    ) -> BoxFuture<'a, Result<Answer, Unavailable>> {
        // Both are dropped with the future, and not when it completes: the dispatcher records an
        // answer in between.
        let mut question = self.queue.confirm(request);
        let mut forget = Asking { asked: &self.asked, id: None };
        let mut over = Box::pin(self.attendance.is_over());
        Box::pin(poll_fn(move |cx| {
            if forget.id.is_none() {
                // Nothing is shown if nobody sees it.
                if over.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Err(Unavailable));
                }
                self.asked().insert(request.id.clone(), Instant::now());
                if let Some(recorder) = &self.recorder {
                    recorder.asked(request);
                }
                forget.id = Some(request.id.clone());
            }
            if let Poll::Ready(answer) = question.as_mut().poll(cx) {
                return Poll::Ready(answer);
            }
            over.as_mut().poll(cx).map(|()| Err(Unavailable))
        }))
    }
}

/// A question that is asked. Dropping it forgets when.
struct Asking<'a> {
    asked: &'a Mutex<HashMap<RequestId, Instant>>,
    id: Option<RequestId>,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.asked.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        }
    }
}

/// Learns the outcome of every question of the host, also of those that others answered.
impl Subscriber for OperatorConfirmer {
    fn receive(&self, event: &Envelope) {
        let Event::ConfirmationResolved(subject, id, resolution) = &event.event else { return };
        self.settled().insert(SettledQuestion {
            id: id.clone(),
            session: subject.session_id.clone(),
            turn: subject.turn_id.clone(),
            settlement: Settlement::now(resolution.as_str(), None),
        });
        self.settled_more.notify_waiters();
    }
}
