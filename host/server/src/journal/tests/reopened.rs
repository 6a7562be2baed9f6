//! A journal that is opened again.

use super::*;
use crate::journal::{ConfirmationFilter, ConfirmationRequested, JournalError, Page, RECOVERED};

#[tokio::test]
async fn running_and_waiting_calls_are_found_as_unknown() {
    let (_directory, path) = place();
    let journal = open(&path);
    let keys: Vec<CallKey> = (0..3).map(|_| journal.next_call()).collect();
    journal.record(session("s", None));
    journal.record(started(facts(keys[0], "runs")));
    let question = ConfirmationRequested {
        call: facts(keys[1], "waits"),
        request_id: "cr".into(),
        input: None,
        input_summary: "{}".into(),
        projected_modifications: "[]".into(),
        at: now(),
        expires: now(),
    };
    journal.record(Record::ConfirmationRequested(Box::new(question)));
    journal.record(started(facts(keys[2], "done")));
    journal.commit(ended(facts(keys[2], "done"), Outcome::Succeeded)).await.unwrap();
    drop(journal);
    let again = open(&path);
    let states =
        [state(&again, keys[0]).await, state(&again, keys[1]).await, state(&again, keys[2]).await];
    assert_eq!(
        states.map(Option::unwrap),
        [CallState::Unknown, CallState::Unknown, CallState::Succeeded]
    );
    let questions = again.confirmations(&ConfirmationFilter::default(), Page::default()).await;
    assert_eq!(questions.unwrap().rows[0].resolution.as_deref(), Some("unknown"));
    assert!(again.session("s").await.unwrap().unwrap().closed.is_some());
    let events = read_all(&again, &EventFilter::default()).await;
    assert_eq!((events.len(), &*events[0].name), (1, RECOVERED));
    assert!(events[0].line.contains(r#""unknown_calls":2"#));
    drop(again);
    let third = open(&path);
    assert_eq!(read_all(&third, &EventFilter::default()).await.len(), 1, "it is said once");
}

#[tokio::test]
async fn numbers_are_never_given_twice() {
    let (_directory, path) = place();
    let old = Timestamp::from_micros(1);
    let journal = open(&path);
    for _ in 0..10 {
        journal.record(Record::Event(NewEvent { time: old, ..new_event("old") }));
        let key = journal.next_call();
        let start = CallStarted { call: facts(key, "c"), input: Body::default(), at: old };
        journal.record(Record::CallStarted(Box::new(start)));
        journal.record(ended(facts(key, "c"), Outcome::Succeeded));
    }
    journal.flush().await;
    eventually("all is removed by its age", || {
        let rows = journal.0.readers.read_here(|conn| {
            conn.query_row(
                "SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM calls)",
                [],
                |row| row.get::<_, i64>(0),
            )
        });
        rows.unwrap() == 0
    });
    drop(journal);
    let again = open(&path);
    assert_eq!(again.newest().borrow().get(), 10);
    again.commit(event("new")).await.unwrap();
    assert_eq!((again.newest().borrow().get(), again.next_call().get()), (11, 11));
    let page = again.events_after(EventId::new(3), &EventFilter::default(), 9).await.unwrap();
    assert_eq!((page.events[0].id.get(), page.gap), (11, Some(EventId::new(11))));
}

#[tokio::test]
async fn second_writer_is_refused_and_changes_nothing() {
    let (_directory, path) = place();
    let journal = open(&path);
    let key = journal.next_call();
    journal.commit(started(facts(key, "c"))).await.unwrap();
    let why = Journal::open(&path, JournalSettings::default()).unwrap_err();
    assert!(matches!(why, JournalError::InUse { .. }), "{why}");
    assert_eq!(state(&journal, key).await, Some(CallState::Running));
}

#[test]
fn missing_journal_is_not_made_to_be_read() {
    let (directory, path) = place();
    let why = Journal::read_only(&path).unwrap_err();
    assert!(matches!(why, JournalError::Unavailable { .. }), "{why}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
