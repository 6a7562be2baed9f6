//! Readers of events resume without loss or repetition, and hold nothing.

use super::*;
use crate::journal::ring::{Found, Ring};

/// Follows the journal to this event. Returns the numbers it got, and those that gaps announced as
/// missed.
async fn follow(journal: Journal, to: EventId, seed: u64) -> (Vec<u64>, u64) {
    let mut seeded = Seeded(seed);
    let mut newest = journal.newest();
    let (mut got, mut missed, mut after) = (Vec::new(), 0, EventId::START);
    while after < to {
        let limit = 1 + usize::try_from(seeded.below(700)).unwrap();
        let page = journal.events_after(after, &EventFilter::default(), limit).await.unwrap();
        let mut expected = after.next();
        if let Some(first) = page.gap {
            assert!(first > expected, "{first} after {after}");
            missed += first.get() - expected.get();
            expected = first;
        }
        for event in &page.events {
            assert_eq!(event.id, expected);
            assert_eq!(*event.line, *line(event.id.get()));
            expected = event.id.next();
            got.push(event.id.get());
        }
        assert_eq!(page.scanned_to.next(), expected);
        after = page.scanned_to;
        if page.events.is_empty() && after < to {
            newest.changed().await.unwrap();
        }
        for _ in 0..seeded.below(3) {
            tokio::task::yield_now().await;
        }
    }
    (got, missed)
}

fn line(number: u64) -> String {
    format!("{number:0>1000}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_readers_get_each_of_ten_thousand_events_once() {
    let journal = temporary();
    let to = EventId::new(10_000);
    let readers: Vec<_> =
        (0..20).map(|seed| tokio::spawn(follow(journal.clone(), to, seed))).collect();
    for number in 1..=to.get() {
        journal.record(event(&line(number)));
        if number % 500 == 0 {
            journal.flush().await;
        }
    }
    journal.flush().await;
    assert_eq!(journal.health().lost_events, 0);
    // A reader that comes late finds the oldest events in the file only.
    let late = follow(journal.clone(), to, 99).await;
    for reader in readers {
        assert_eq!(reader.await.unwrap(), late);
    }
    assert_eq!(late, ((1..=to.get()).collect(), 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reader_behind_the_retention_learns_what_it_missed() {
    let journal = Journal::temporary(small()).unwrap();
    let to = EventId::new(10_000);
    let readers: Vec<_> =
        (0..5).map(|seed| tokio::spawn(follow(journal.clone(), to, seed))).collect();
    for number in 1..=to.get() {
        journal.record(event(&line(number)));
        if number % 500 == 0 {
            journal.flush().await;
        }
    }
    journal.flush().await;
    let late = follow(journal.clone(), to, 99).await;
    assert!(late.1 > 0, "10 MB do not fit in 4 MiB");
    for (got, missed) in [late].into_iter().chain({
        let mut all = Vec::new();
        for reader in readers {
            all.push(reader.await.unwrap());
        }
        all
    }) {
        assert_eq!(got.len() as u64 + missed, to.get());
    }
}

#[tokio::test]
async fn filtered_reader_passes_over_the_events_of_others() {
    let journal = temporary();
    journal.record(session("mine", Some("me")));
    journal.record(session("other", Some("you")));
    for number in 0..9_000 {
        let id = if number % 3_000 == 0 { "mine" } else { "other" };
        journal.record(Record::Event(NewEvent {
            session_id: Some(id.into()),
            ..new_event(&number.to_string())
        }));
    }
    journal.flush().await;
    let lines = async |filter: EventFilter| {
        let all = read_all(&journal, &filter).await;
        all.iter().map(|event| event.line.to_string()).collect::<Vec<_>>().join(" ")
    };
    let all = EventFilter::default;
    assert_eq!(lines(EventFilter { client: Some("me".into()), ..all() }).await, "0 3000 6000");
    assert_eq!(
        lines(EventFilter { session_id: Some("mine".into()), ..all() }).await,
        "0 3000 6000"
    );
    let neither =
        EventFilter { session_id: Some("mine".into()), client: Some("you".into()), ..all() };
    assert_eq!(lines(neither).await, "");
}

#[tokio::test]
async fn position_of_another_journal_is_a_gap() {
    let journal = temporary();
    journal.commit(event("x")).await.unwrap();
    let page = journal.events_after(EventId::new(99), &EventFilter::default(), 9).await.unwrap();
    assert_eq!((page.scanned_to.get(), page.gap), (1, Some(EventId::new(2))));
}

#[tokio::test]
async fn page_is_bounded_in_bytes_but_never_empty() {
    let journal = temporary();
    for _ in 0..5 {
        journal.record(event(&"x".repeat(700 << 10)));
    }
    journal.record(event(&"x".repeat(2 << 20)));
    journal.flush().await;
    let mut sizes = Vec::new();
    let mut after = EventId::START;
    for _ in 0..6 {
        let page = journal.events_after(after, &EventFilter::default(), 99).await.unwrap();
        sizes.push(page.events.len());
        after = page.scanned_to;
    }
    assert_eq!((sizes, after.get()), (vec![1; 6], 6));
}

#[tokio::test]
async fn reader_that_stopped_reading_holds_nothing() {
    let (_directory, path) = place();
    let journal = open(&path);
    journal.commit(event("first")).await.unwrap();
    let stopped = journal.events_after(EventId::START, &EventFilter::default(), 1).await.unwrap();
    let waiting = journal.newest();
    for _ in 0..20 {
        for _ in 0..1_000 {
            journal.record(event(&"x".repeat(1_000)));
        }
        journal.flush().await;
    }
    assert_eq!((stopped.events.len(), waiting.borrow().get()), (1, 20_001));
    // The log is merged again and again, which an open view would prevent.
    let log = path.with_file_name("journal.db-wal").metadata().unwrap().len();
    assert!(log <= 9 << 20, "{log} bytes of 20 MB");
    let resumed = journal.events_after(stopped.scanned_to, &EventFilter::default(), 1).await;
    assert_eq!(resumed.unwrap().events[0].id.get(), 2);
}

#[tokio::test]
async fn journal_of_another_process_is_followed() {
    let (_directory, path) = place();
    let journal = open(&path);
    journal.commit(event("1")).await.unwrap();
    let key = journal.next_call();
    journal.commit(started(facts(key, "c"))).await.unwrap();
    let reader = Journal::read_only(&path).unwrap();
    assert_eq!(read_all(&reader, &EventFilter::default()).await.len(), 1);
    assert_eq!(state(&reader, key).await, Some(CallState::Running), "it runs in the other process");
    let mut newest = reader.newest();
    journal.commit(event("2")).await.unwrap();
    newest.changed().await.unwrap();
    let page = reader.events_after(EventId::new(1), &EventFilter::default(), 9).await.unwrap();
    assert_eq!(&*page.events[0].line, "2");
    assert_eq!(reader.commit(event("3")).await, Err(crate::journal::JournalError::Closed));
}

#[test]
fn memory_of_recent_events_is_bounded() {
    let events = |bytes: usize, numbers: std::ops::RangeInclusive<u64>| {
        let stored = |id| StoredEvent {
            id: EventId::new(id),
            time: now(),
            name: "tool.log".into(),
            session_id: None,
            client: None,
            call_id: None,
            call: None,
            line: "x".repeat(bytes).into(),
        };
        numbers.map(stored).collect::<Vec<_>>()
    };
    let from = |ring: &Ring| {
        (0..10_000).find(|after| {
            let found = ring.after(EventId::new(*after), &EventFilter::default(), 1);
            matches!(found, Found::Here(_))
        })
    };
    let ring = Ring::new(EventId::START);
    ring.extend(events(10, 1..=5_000));
    assert_eq!(from(&ring), Some(5_000 - 4_096));
    ring.extend(events(1 << 20, 5_001..=5_010));
    assert_eq!(from(&ring), Some(5_006), "four of 1 MiB");
}
