//! More records than can be written.

use super::*;
use crate::journal::{HealthState, LOST};

fn chatter(line: &str) -> Record {
    Record::Event(NewEvent { importance: Importance::Chatter, ..new_event(line) })
}

fn of_session(session: &str, line: &str) -> Record {
    let session_id = Some(session.into());
    Record::Event(NewEvent { session_id, ..new_event(line) })
}

#[tokio::test]
async fn lost_events_are_counted_and_said() {
    let journal = temporary();
    let held = hold(&journal);
    let line = "x".repeat(100_000);
    for _ in 0..200 {
        journal.record(event(&line));
    }
    let lost = journal.health().lost_events;
    assert!((100..200).contains(&lost), "6 of 20 MB are kept, and {lost} are lost");
    held.send(()).unwrap();
    journal.flush().await;
    let all = read_all(&journal, &EventFilter::default()).await;
    assert_eq!(all.len() as u64, 200 - lost + 1);
    let said: Vec<_> = all.iter().filter(|event| &*event.name == LOST).collect();
    assert_eq!(said.len(), 1);
    assert!(said[0].line.ends_with(&format!("\"lost\":{lost}}}")), "{}", said[0].line);
    assert_eq!(journal.health().state, HealthState::Storing);
}

#[tokio::test]
async fn chatter_leaves_room_for_other_events_and_these_for_calls() {
    let journal = temporary();
    let held = hold(&journal);
    let line = "x".repeat(100_000);
    let fill = |record: &dyn Fn(&str) -> Record| {
        let before = journal.health().waiting;
        for _ in 0..100 {
            journal.record(record(&line));
        }
        journal.health().waiting - before
    };
    let (talk, other) = (fill(&chatter), fill(&event));
    assert!((35..=42).contains(&talk) && (15..=21).contains(&other), "{talk} {other}");
    let key = journal.next_call();
    journal.record(started(facts(key, "c")));
    journal.record(ended(facts(key, "c"), Outcome::Succeeded));
    held.send(()).unwrap();
    journal.flush().await;
    assert_eq!(state(&journal, key).await, Some(CallState::Succeeded));
    assert_eq!(journal.health().lost_records, 0);
}

#[tokio::test]
async fn end_of_a_call_keeps_its_outcome_when_the_queue_is_full() {
    let journal = temporary();
    let keys: Vec<CallKey> = (0..300).map(|_| journal.next_call()).collect();
    let held = hold(&journal);
    for key in &keys {
        journal.record(started(facts(*key, "c")));
    }
    for key in &keys {
        let Record::CallEnded(mut end) = ended(facts(*key, "c"), failed("timeout")) else {
            unreachable!("`ended` makes an end");
        };
        end.output = text(&"x".repeat(60_000));
        journal.record(Record::CallEnded(end));
    }
    let lost = journal.health().lost_records;
    assert!(lost > 100, "{lost}");
    held.send(()).unwrap();
    journal.flush().await;
    for key in keys {
        let call = journal.call(CallRef::Key(key)).await.unwrap().unwrap().call;
        assert_eq!((call.state, call.error_class.as_deref()), (CallState::Failed, Some("timeout")));
    }
}

#[tokio::test]
async fn commit_waits_for_room_and_is_not_lost() {
    let journal = temporary();
    let held = hold(&journal);
    let big = |number: usize| {
        let key = journal.next_call();
        let input = text(&"x".repeat(64 << 10));
        let call = facts(key, &number.to_string());
        (key, Record::CallStarted(Box::new(CallStarted { call, input, at: now() })))
    };
    let (keys, records): (Vec<_>, Vec<_>) = (0..300).map(big).unzip();
    let commits: Vec<_> = records
        .into_iter()
        .map(|record| {
            let journal = journal.clone();
            tokio::spawn(async move { journal.commit(record).await })
        })
        .collect();
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    let waiting = journal.health().waiting;
    assert!((100..200).contains(&waiting), "8 of 19 MB are in the queue: {waiting}");
    held.send(()).unwrap();
    for commit in commits {
        commit.await.unwrap().unwrap();
    }
    for key in keys {
        assert_eq!(state(&journal, key).await, Some(CallState::Running));
    }
}

#[tokio::test]
async fn record_larger_than_the_queue_is_stored_when_nothing_waits() {
    let journal = temporary();
    journal.commit(event(&"x".repeat(10 << 20))).await.unwrap();
    assert_eq!(journal.newest().borrow().get(), 1);
}

#[tokio::test]
async fn flood_of_one_session_loses_no_record_of_another() {
    let journal = temporary();
    let held = hold(&journal);
    let line = "x".repeat(100_000);
    for _ in 0..200 {
        journal.record(of_session("flood", &line));
    }
    let before = journal.health().lost_events;
    assert!(before > 100, "{before}");
    for _ in 0..10 {
        journal.record(of_session("other", &line));
    }
    assert_eq!(journal.health().lost_events, before, "the other session has a part of its own");
    held.send(()).unwrap();
    journal.flush().await;
    // Written records free the share of their session.
    journal.record(of_session("flood", &line));
    journal.flush().await;
    assert_eq!(journal.health().lost_events, before);
}

#[tokio::test]
async fn flood_of_one_session_delays_no_commit_of_another() {
    let journal = temporary();
    let held = hold(&journal);
    let commit = |session: &str| {
        let (journal, record) = (journal.clone(), of_session(session, "committed"));
        tokio::spawn(async move { journal.commit(record).await })
    };
    for _ in 0..4_000 {
        journal.record(of_session("flood", "1"));
    }
    journal.record(of_session("other", "first"));
    let commits = [commit("flood"), commit("other")];
    while journal.health().waiting < 4_003 {
        tokio::task::yield_now().await;
    }
    held.send(()).unwrap();
    for commit in commits {
        commit.await.unwrap().unwrap();
    }
    journal.flush().await;
    let all = read_all(&journal, &EventFilter::default()).await;
    let of_other: Vec<usize> =
        (0..all.len()).filter(|at| all[*at].session_id.as_deref() == Some("other")).collect();
    assert!(of_other[1] < BATCH, "{of_other:?}");
    assert_eq!(&*all[of_other[0]].line, "first", "the records of a session stay in order");
    assert_eq!(&*all[4_002].line, "committed", "the flood's own commit is behind its records");
}
