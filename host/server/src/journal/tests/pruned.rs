//! Retention by age and by size.

use super::*;
use crate::journal::{Page, SessionFilter};

fn count(journal: &Journal, table: &'static str) -> i64 {
    let query = format!("SELECT count(*) FROM {table}");
    journal.0.readers.read_here(|conn| conn.query_row(&query, [], |row| row.get(0))).unwrap()
}

fn file_bytes(journal: &Journal) -> u64 {
    let path = journal.0.file.path();
    let log = path.with_file_name("journal.db-wal");
    path.metadata().unwrap().len() + log.metadata().map_or(0, |meta| meta.len())
}

#[tokio::test]
async fn old_records_are_removed_and_recent_ones_kept() {
    let journal = temporary();
    let day = Duration::from_secs(24 * 60 * 60);
    for (age, id) in [(40, "old"), (31, "old"), (29, "kept"), (0, "kept")] {
        let at = now().before(day * age);
        journal.record(Record::Event(NewEvent { time: at, ..new_event(id) }));
        let key = journal.next_call();
        let start = CallStarted { call: facts(key, id), input: Body::default(), at };
        journal.record(Record::CallStarted(Box::new(start)));
        journal.record(ended(facts(key, id), Outcome::Succeeded));
        journal.record(Record::SessionOpened(Box::new(SessionOpened {
            id: id.into(),
            client: None,
            title: None,
            origin: "http".into(),
            protocol: None,
            workspace: None,
            at,
        })));
        journal.record(Record::SessionClosed { id: id.into(), at });
    }
    journal.flush().await;
    eventually("old records are removed", || {
        [count(&journal, "events"), count(&journal, "calls"), count(&journal, "sessions")] == [2; 3]
    });
    let lines = read_all(&journal, &EventFilter::default()).await;
    assert_eq!(lines.len(), 4, "the newest are still in memory");
    let sessions = journal.sessions(&SessionFilter::default(), Page::default()).await.unwrap();
    assert!(sessions.rows.iter().all(|row| row.id == "kept"));
}

#[tokio::test]
async fn old_call_that_runs_is_kept() {
    let journal = temporary();
    let (old, key) = (Timestamp::from_micros(1), journal.next_call());
    let start = CallStarted { call: facts(key, "c"), input: Body::default(), at: old };
    journal.record(Record::CallStarted(Box::new(start)));
    let later = facts(journal.next_call(), "ended");
    let start = CallStarted { call: later.clone(), input: Body::default(), at: old };
    journal.record(Record::CallStarted(Box::new(start)));
    journal.record(ended(later, Outcome::Succeeded));
    journal.flush().await;
    eventually("old records are removed", || count(&journal, "calls") == 1);
    assert_eq!(state(&journal, key).await, Some(CallState::Running));
}

#[tokio::test]
async fn file_stays_within_its_size_under_a_flood() {
    let journal = Journal::temporary(small()).unwrap();
    let mut largest = 0;
    for number in 0..6_000 {
        let (key, id) = (journal.next_call(), number.to_string());
        let Record::CallEnded(mut end) = ended(facts(key, &id), Outcome::Succeeded) else {
            unreachable!("`ended` makes an end");
        };
        end.output = text(&"y".repeat(8_000));
        journal.record(Record::CallEnded(end));
        // Each batch is as long as it may be.
        if number % 500 == 0 {
            journal.flush().await;
            largest = largest.max(file_bytes(&journal));
        }
    }
    assert!(largest <= small().max_bytes + (16 << 20), "{largest} bytes of 48 MB");
}

#[tokio::test]
async fn large_records_after_small_ones_stay_within_the_size() {
    let journal = Journal::temporary(small()).unwrap();
    for _ in 0..16_000 {
        journal.record(event(&"x".repeat(200)));
        if journal.health().waiting > 10_000 {
            journal.flush().await;
        }
    }
    journal.flush().await;
    let mut largest = 0;
    for number in 0..300 {
        let (key, id) = (journal.next_call(), number.to_string());
        let Record::CallEnded(mut end) = ended(facts(key, &id), Outcome::Succeeded) else {
            unreachable!("`ended` makes an end");
        };
        end.output = text(&"y".repeat(200_000));
        journal.record(Record::CallEnded(end));
        if number % 30 == 0 {
            journal.flush().await;
            largest = largest.max(file_bytes(&journal));
        }
    }
    assert!(largest <= small().max_bytes + (24 << 20), "{largest} bytes of 60 MB");
}

#[tokio::test]
async fn file_stays_within_its_size_and_keeps_the_newest() {
    let journal = Journal::temporary(small()).unwrap();
    let mut largest = 0;
    for number in 0..2_000 {
        let key = journal.next_call();
        let id = number.to_string();
        journal.record(started(facts(key, &id)));
        journal
            .record(Record::Event(NewEvent { call: Some(key), ..new_event(&"x".repeat(4_000)) }));
        let Record::CallEnded(mut end) = ended(facts(key, &id), Outcome::Succeeded) else {
            unreachable!("`ended` makes an end");
        };
        end.output = text(&"y".repeat(8_000));
        journal.record(Record::CallEnded(end));
        if number % 20 == 0 {
            journal.flush().await;
            largest = largest.max(file_bytes(&journal));
        }
    }
    journal.flush().await;
    eventually("there is room again", || journal.health().bytes <= small().full_at());
    // The log is not part of the bound, and is merged at 4 MiB.
    assert!(largest <= small().max_bytes + (8 << 20), "{largest} bytes of 24 MB");
    let (events, calls) = (count(&journal, "events"), count(&journal, "calls"));
    assert!((50..2_000).contains(&events) && (50..2_000).contains(&calls), "{events} {calls}");
    let newest = journal.call(CallRef::Id { id: "1999".into(), client: None }).await.unwrap();
    assert_eq!(newest.unwrap().output.unwrap().length, 8_000);
    assert!(journal.call(CallRef::Id { id: "0".into(), client: None }).await.unwrap().is_none());
}

#[tokio::test]
async fn calls_without_effect_are_removed_before_changes() {
    let journal = Journal::temporary(small()).unwrap();
    let key = journal.next_call();
    let change = facts(key, "change");
    journal.record(started(change.clone()));
    journal.record(ended(change, Outcome::Succeeded));
    for number in 0..2_000 {
        // Every second call is of class write and refused before it runs.
        let key = journal.next_call();
        let class = if number % 2 == 0 { "write" } else { "read" };
        let call = CallFacts { class: Some(class), ..facts(key, &number.to_string()) };
        if class == "read" {
            journal.record(started(call.clone()));
        }
        let Record::CallEnded(mut end) = ended(call, Outcome::Succeeded) else {
            unreachable!("`ended` makes an end");
        };
        end.output = text(&"y".repeat(12_000));
        journal.record(Record::CallEnded(end));
        if number % 20 == 0 {
            journal.flush().await;
        }
    }
    journal.flush().await;
    eventually("there is room again", || journal.health().bytes <= small().full_at());
    let find = |id: &str| journal.call(CallRef::Id { id: id.into(), client: None });
    assert!(find("change").await.unwrap().is_some(), "the oldest record of all");
    assert!(find("0").await.unwrap().is_none() && find("1").await.unwrap().is_none());
    assert!(find("1999").await.unwrap().is_some());
}

#[tokio::test]
async fn smaller_size_shrinks_the_file() {
    let (_directory, path) = place();
    let journal = open(&path);
    for _ in 0..20_000 {
        journal.record(event(&"x".repeat(1_000)));
        if journal.health().waiting > 1_000 {
            journal.flush().await;
        }
    }
    journal.close();
    assert!(path.metadata().unwrap().len() > 16 << 20);
    let journal = Journal::open(&path, small()).unwrap();
    eventually("the file is smaller", || {
        path.metadata().unwrap().len() < 10 << 20 && journal.health().bytes <= small().full_at()
    });
    assert_eq!(journal.newest().borrow().get(), 20_000);
}
