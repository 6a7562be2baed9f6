//! A clock that was set back while the journal was written.

use super::*;
use crate::journal::{CallFilter, Page};

/// More calls than may be out of order when the clock is well.
const CALLS: u16 = 3_000;

fn seconds(since: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::from_micros(since.micros() + seconds * 1_000_000)
}

/// Records calls, one a millisecond from this time on.
async fn calls(journal: &Journal, from: Timestamp, id: &str) {
    for number in 0..CALLS {
        let at = Timestamp::from_micros(from.micros() + i64::from(number) * 1_000);
        let call = facts(journal.next_call(), id);
        let start = CallStarted { call, input: Body::default(), at };
        journal.record(Record::CallStarted(Box::new(start)));
        if number % 500 == 0 {
            journal.flush().await;
        }
    }
    journal.flush().await;
}

/// Returns the number of calls that a filter selects, over all pages.
async fn selected(journal: &Journal, filter: CallFilter) -> (usize, usize) {
    let (mut early, mut late, mut after) = (0, 0, None);
    loop {
        let listing = journal.calls(&filter, Page { after, limit: Page::MOST }).await.unwrap();
        late += listing.rows.iter().filter(|row| row.id == "late").count();
        early += listing.rows.iter().filter(|row| row.id == "early").count();
        after = listing.next;
        if after.is_none() {
            return (early, late);
        }
    }
}

#[tokio::test]
async fn calls_are_found_by_their_time_although_the_clock_was_set_back() {
    let journal = temporary();
    let noon = now();
    calls(&journal, noon, "early").await;
    calls(&journal, seconds(noon, -3_600), "late").await;
    let (whole, half) = (usize::from(CALLS), seconds(noon, -1_800));
    let since = CallFilter { since: Some(half), ..CallFilter::default() };
    assert_eq!(selected(&journal, since).await, (whole, 0));
    let until = CallFilter { until: Some(half), ..CallFilter::default() };
    assert_eq!(selected(&journal, until).await, (0, whole));
}

#[tokio::test]
async fn order_of_events_is_that_of_their_numbers_whatever_the_clock_says() {
    let journal = temporary();
    for back in 0..100 {
        let time = seconds(now(), -back * 60);
        journal.record(Record::Event(NewEvent { time, ..new_event(&back.to_string()) }));
    }
    journal.flush().await;
    let lines = read_all(&journal, &EventFilter::default()).await;
    let lines: Vec<i64> = lines.iter().map(|event| event.line.parse().unwrap()).collect();
    assert_eq!(lines, (0..100).collect::<Vec<_>>());
}

#[tokio::test]
async fn record_of_a_time_to_come_does_not_keep_the_file_from_its_bound() {
    let journal = Journal::temporary(small()).unwrap();
    let future = seconds(now(), 10 * 365 * 24 * 3_600);
    for number in 0..8_000 {
        let time = if number == 0 { future } else { now() };
        journal.record(Record::Event(NewEvent { time, ..new_event(&"x".repeat(1_000)) }));
        if number % 200 == 0 {
            journal.flush().await;
        }
    }
    journal.flush().await;
    eventually("the file is within its bound", || journal.health().bytes <= small().full_at());
}

#[tokio::test]
async fn record_of_a_wrong_time_neither_keeps_nor_removes_the_records_behind_it() {
    let journal = temporary();
    const DAY: i64 = 24 * 3_600;
    let ages = [(-400, "future"), (40, "old"), (1, "kept"), (20_000, "old"), (0, "kept")];
    for (days, id) in ages {
        let at = seconds(now(), -days * DAY);
        journal.record(Record::Event(NewEvent { time: at, ..new_event(id) }));
        let key = journal.next_call();
        let start = CallStarted { call: facts(key, id), input: Body::default(), at };
        journal.record(Record::CallStarted(Box::new(start)));
        journal.record(ended(facts(key, id), Outcome::Succeeded));
    }
    journal.flush().await;
    let column = |query: &'static str| -> Vec<String> {
        let read = |conn: &mut rusqlite::Connection| {
            conn.prepare(query)?.query_map([], |row| row.get(0))?.collect()
        };
        journal.0.readers.read_here(read).unwrap()
    };
    let kept = ["future", "kept", "kept"];
    eventually("old events are removed", || column("SELECT line FROM events ORDER BY id") == kept);
    eventually("old calls are removed", || column("SELECT id FROM calls ORDER BY key") == kept);
}
