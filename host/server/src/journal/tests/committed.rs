//! Commit order, batches, and what a commit promises.

use super::*;
use crate::journal::queue::{BATCH, Queue};
use crate::journal::{HealthState, JournalError};

#[tokio::test]
async fn events_have_the_order_in_which_they_were_recorded() {
    let journal = temporary();
    for number in 0..2_000 {
        journal.record(event(&number.to_string()));
    }
    journal.flush().await;
    let all = read_all(&journal, &EventFilter::default()).await;
    let lines: Vec<usize> = all.iter().map(|event| event.line.parse().unwrap()).collect();
    assert_eq!(lines, (0..2_000).collect::<Vec<_>>());
    assert!(all.windows(2).all(|pair| pair[0].id < pair[1].id));
}

#[tokio::test]
async fn committed_event_can_be_read_when_the_commit_returns() {
    let journal = temporary();
    let newest = journal.newest();
    for number in 1..=50 {
        journal.commit(event("x")).await.unwrap();
        assert_eq!(newest.borrow().get(), number);
        let page = journal.events_after(EventId::new(number - 1), &EventFilter::default(), 9).await;
        assert_eq!(page.unwrap().events.len(), 1);
    }
}

#[tokio::test]
async fn commit_comes_after_all_records_before_it() {
    let journal = temporary();
    for _ in 0..3_000 {
        journal.record(event("before"));
    }
    journal.commit(event("after")).await.unwrap();
    assert_eq!(journal.newest().borrow().get(), 3_001);
}

#[test]
fn records_are_gathered_in_batches_unless_somebody_waits() {
    let queue = Queue::default();
    let far = Duration::from_secs(3_600);
    for _ in 0..BATCH + 1 {
        queue.add(event("x"));
    }
    assert_eq!(queue.take(Instant::now() + far, far).entries.len(), BATCH, "a full batch");
    let gather_until = Instant::now() + Duration::from_millis(20);
    assert_eq!(queue.take(gather_until, far).entries.len(), 1);
    assert!(Instant::now() >= gather_until, "a single record has waited for others");
    queue.add(event("x"));
    let (done, _) = tokio::sync::oneshot::channel();
    assert!(queue.add_entry(Entry::Flush(done)));
    assert_eq!(queue.take(Instant::now() + far, far).entries.len(), 2, "somebody waits");
    assert!(queue.take(Instant::now(), Duration::ZERO).entries.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_commits_all_return() {
    let journal = temporary();
    let commits: Vec<_> = (0..200)
        .map(|number| {
            let journal = journal.clone();
            tokio::spawn(async move { journal.commit(event(&number.to_string())).await })
        })
        .collect();
    for commit in commits {
        commit.await.unwrap().unwrap();
    }
    assert_eq!(read_all(&journal, &EventFilter::default()).await.len(), 200);
}

#[tokio::test]
async fn closed_journal_refuses_commits_and_keeps_what_it_has() {
    let (_directory, path) = place();
    let journal = open(&path);
    let other = journal.clone();
    journal.record(event("kept"));
    journal.close();
    assert_eq!(other.commit(event("late")).await, Err(JournalError::Closed));
    other.record(event("late"));
    other.flush().await;
    assert_eq!(other.health().lost_events, 1);
    drop(other);
    let again = open(&path);
    assert_eq!(read_all(&again, &EventFilter::default()).await.len(), 1);
}

#[tokio::test]
async fn close_merges_the_log_into_the_file() {
    let (_directory, path) = place();
    let journal = open(&path);
    journal.record(event("x"));
    journal.close();
    let log = path.with_file_name("journal.db-wal");
    assert!(log.metadata().is_ok_and(|meta| meta.len() == 0) || !log.exists());
}

#[tokio::test]
async fn writer_that_panics_closes_the_journal() {
    let journal = temporary();
    let broken = Entry::Run(Box::new(|_| panic!("on purpose")));
    assert!(journal.0.shared.queue.add_entry(broken));
    assert_eq!(journal.commit(event("x")).await, Err(JournalError::Closed));
    eventually("the journal is closed", || journal.health().state == HealthState::Closed);
    journal.flush().await;
}
