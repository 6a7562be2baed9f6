//! Tests of the queue: the first answer wins, and a late answer gets the outcome.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use crate::tool::{CallId, SideEffects};
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, SystemTime};

fn question(id: &str) -> ConfirmationRequest {
    ConfirmationRequest {
        id: RequestId::new(id),
        call_id: CallId::new("c"),
        session_id: None,
        turn_id: None,
        tool: "tool".into(),
        side_effects: SideEffects::Write,
        called_by: None,
        input_summary: "{}".into(),
        input: None,
        input_bytes: 2,
        projected_modifications: Vec::new(),
        displayed: DisplayedFiles::default(),
        plugin: None,
        digest: None,
        grants: Vec::new(),
        valid_for: Duration::from_secs(1),
        expires: SystemTime::UNIX_EPOCH,
    }
}

/// Polls a future once.
async fn once<T>(future: &mut BoxFuture<'_, T>) -> Option<T> {
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

#[tokio::test]
async fn question_waits_until_it_is_answered_once() {
    let (queue, one, other) = (ConfirmationQueue::default(), question("one"), question("other"));
    let (mut first, mut second) = (queue.confirm(&one), queue.confirm(&other));
    assert_eq!((once(&mut first).await, once(&mut second).await), (None, None));
    assert_eq!(queue.pending(), [one.clone(), other.clone()]);
    assert_eq!((queue.next().await.id, queue.next().await.id), (one.id.clone(), other.id.clone()));
    assert_eq!(
        queue.answer(&RequestId::new("another"), Answer::Allow),
        Err(AnswerRefused::Unknown)
    );
    assert_eq!(queue.answer(&other.id, Answer::Deny), Ok(()));
    assert_eq!(
        queue.answer(&other.id, Answer::Allow),
        Err(AnswerRefused::AlreadyAnswered(Answer::Deny))
    );
    assert_eq!((once(&mut first).await, once(&mut second).await), (None, Some(Ok(Answer::Deny))));
    assert_eq!(queue.pending(), std::slice::from_ref(&one));
    drop(first);
    assert_eq!(queue.pending(), []);
    assert_eq!(queue.answer(&one.id, Answer::Allow), Err(AnswerRefused::Withdrawn));
}

#[tokio::test]
async fn last_thousand_outcomes_are_remembered() {
    let queue = ConfirmationQueue::default();
    for number in 0..1_025 {
        let question = question(&number.to_string());
        let mut asked = queue.confirm(&question);
        once(&mut asked).await;
        queue.answer(&question.id, Answer::Allow).unwrap();
    }
    let late = |number: usize| queue.answer(&RequestId::new(&number.to_string()), Answer::Deny);
    assert_eq!(late(0), Err(AnswerRefused::Unknown));
    assert_eq!(late(1), Err(AnswerRefused::AlreadyAnswered(Answer::Allow)));
    assert_eq!(late(1_024), Err(AnswerRefused::AlreadyAnswered(Answer::Allow)));
}

#[tokio::test]
async fn first_answer_of_several_confirmers_wins() {
    let (queue, asked) = (ConfirmationQueue::default(), question("one"));
    let with_queue = FirstOf::new(vec![Arc::new(NoConfirmer), Arc::new(queue.clone())]);
    let mut waiting = with_queue.confirm(&asked);
    assert_eq!(once(&mut waiting).await, None, "one of them can still answer");
    queue.answer(&asked.id, Answer::Always).unwrap();
    assert_eq!(once(&mut waiting).await, Some(Ok(Answer::Always)));
    let nobody = FirstOf::new(vec![Arc::new(NoConfirmer), Arc::new(NoConfirmer)]);
    assert_eq!(once(&mut nobody.confirm(&asked)).await, Some(Err(Unavailable)));
    let denied = FirstOf::new(vec![Arc::new(NoConfirmer), Arc::new(DenyAll)]);
    assert_eq!(once(&mut denied.confirm(&asked)).await, Some(Ok(Answer::Deny)));
}

/// A caller that gives these answers, each at one poll. `None` stays silent.
struct Caller(Mutex<Vec<Option<CallAnswer>>>);

impl Caller {
    fn of(answers: impl IntoIterator<Item = Option<CallAnswer>>) -> Self {
        let mut answers: Vec<_> = answers.into_iter().collect();
        answers.reverse();
        Self(Mutex::new(answers))
    }
}

impl CallConfirmer for Caller {
    fn ask<'a>(&'a self, _: &'a ConfirmationRequest) -> BoxFuture<'a, CallAnswer> {
        Box::pin(poll_fn(|_| match self.0.lock().unwrap().pop().flatten() {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        }))
    }
}

#[tokio::test]
async fn caller_and_host_are_asked_at_once_and_the_first_answer_wins() {
    let (queue, asked) = (ConfirmationQueue::default(), question("one"));
    let silent = Caller::of([]);
    let mut waiting = ask_both(&silent, &queue, &asked);
    assert_eq!(once(&mut waiting).await, None);
    queue.answer(&asked.id, Answer::Allow).unwrap();
    assert_eq!(once(&mut waiting).await, Some(CallAnswer::Answered(Answer::Allow)));
    drop(waiting);
    let (asked, later) = (question("two"), Some(CallAnswer::Answered(Answer::Deny)));
    let caller = Caller::of([None, later]);
    let mut waiting = ask_both(&caller, &queue, &asked);
    assert_eq!(once(&mut waiting).await, None);
    assert_eq!(queue.pending(), std::slice::from_ref(&asked));
    assert_eq!(once(&mut waiting).await, later);
    drop(waiting);
    assert_eq!(queue.answer(&asked.id, Answer::Allow), Err(AnswerRefused::Withdrawn));
}

#[tokio::test]
async fn call_waits_as_long_as_either_can_answer() {
    let (queue, asked) = (ConfirmationQueue::default(), question("one"));
    let unavailable = || Some(CallAnswer::Unavailable);
    for answers in [vec![unavailable()], vec![None, unavailable()]] {
        let gone = Caller::of(answers);
        let mut waiting = ask_both(&gone, &queue, &asked);
        assert_eq!((once(&mut waiting).await, once(&mut waiting).await), (None, None));
        queue.answer(&asked.id, Answer::Allow).unwrap();
        assert_eq!(once(&mut waiting).await, Some(CallAnswer::Answered(Answer::Allow)));
    }
    let caller = Caller::of([None, None, unavailable()]);
    let mut waiting = ask_both(&caller, &NoConfirmer, &asked);
    assert_eq!((once(&mut waiting).await, once(&mut waiting).await), (None, None));
    assert_eq!(once(&mut waiting).await, unavailable());
}

#[tokio::test]
async fn request_that_the_caller_closes_is_left_to_the_host() {
    let closed = || Some(CallAnswer::Answered(Answer::None));
    for (number, answers) in [vec![closed()], vec![None, closed()]].into_iter().enumerate() {
        let (queue, asked) = (ConfirmationQueue::default(), question(&number.to_string()));
        let caller = Caller::of(answers);
        let mut waiting = ask_both(&caller, &queue, &asked);
        assert_eq!((once(&mut waiting).await, once(&mut waiting).await), (None, None));
        queue.answer(&asked.id, Answer::Allow).unwrap();
        assert_eq!(once(&mut waiting).await, Some(CallAnswer::Answered(Answer::Allow)));
    }
    // Nobody else can be asked.
    let caller = Caller::of([closed()]);
    assert_eq!(once(&mut ask_both(&caller, &NoConfirmer, &question("one"))).await, closed());
}

#[tokio::test]
async fn host_is_not_asked_what_the_caller_answers_itself() {
    let (queue, asked) = (ConfirmationQueue::default(), question("one"));
    for answer in [CallAnswer::Deferred, CallAnswer::Answered(Answer::Deny)] {
        let caller = Caller::of([Some(answer)]);
        assert_eq!(once(&mut ask_both(&caller, &queue, &asked)).await, Some(answer));
        assert_eq!(queue.answer(&asked.id, Answer::Allow), Err(AnswerRefused::Unknown));
    }
}

#[test]
fn answer_and_outcome_names_match_the_events() {
    assert_eq!(
        [Answer::Allow, Answer::Deny, Answer::Always].map(Answer::as_str),
        ["allow", "deny", "always"]
    );
    let ends = [
        (Resolution::Answered(Answer::Deny), "deny"),
        (Resolution::AllowedMeanwhile, "always"),
        (Resolution::TimedOut, "timeout"),
        (Resolution::Withdrawn, "cancelled"),
        (Resolution::Unanswerable, "nobody"),
        (Resolution::Deferred, "deferred"),
    ];
    assert!(ends.iter().all(|(end, name)| end.as_str() == *name));
    let id = RequestId::random().unwrap();
    assert!(
        id.as_str().starts_with("cr_") && id.as_str().len() == 35 && id.to_string() == id.as_str()
    );
    assert_ne!(RequestId::random(), Some(id));
}
