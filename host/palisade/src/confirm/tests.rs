//! Tests of the queue: the first answer wins, and a late answer gets the outcome.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use crate::tool::{CallId, SideEffects};
use std::future::poll_fn;
use std::sync::Arc;
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
        input_summary: "{}".into(),
        projected_modifications: Vec::new(),
        plugin: None,
        digest: None,
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
