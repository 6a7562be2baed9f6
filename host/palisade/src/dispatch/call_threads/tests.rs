//! Tests of the pool without hanging threads, and of its counts. The suite `hanging` tests threads
//! that hang in a system call.

#![allow(clippy::unwrap_used, reason = "a test that cannot start a thread has failed")]

use super::pool::{Permit, WorkerPool};
use crate::tool::Digest;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

fn permit(pool: &Arc<WorkerPool>) -> Permit {
    pool.permit(pool.permits.share(Digest::of(b"a plugin")).try_take(1).unwrap())
}

fn free(pool: &WorkerPool) -> u64 {
    pool.permits.capacity() - pool.permits.held()
}

/// Runs work on a thread of the pool and waits for its result.
fn run<T: Send + 'static>(pool: &Arc<WorkerPool>, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, done) = sync_channel(1);
    pool.start(Box::new(move || send.send(work()).unwrap())).unwrap();
    done.recv_timeout(Duration::from_secs(20)).unwrap()
}

#[test]
fn thread_counts_survive_loss_and_return() {
    let pool = WorkerPool::new(4, 1);
    let first = permit(&pool);
    let second = permit(&pool);
    assert!(pool.abandon(first.number) && pool.abandon(second.number), "both still work");
    // The first was replaced, the second is beyond the limit.
    assert_eq!((pool.lost(), pool.exhausted(), free(&pool)), (2, Some(1), 3));
    let number = first.number;
    drop(first);
    assert_eq!((pool.lost(), free(&pool)), (1, 3));
    assert!(!pool.abandon(number), "it has ended");
    drop(second);
    assert_eq!((pool.lost(), pool.exhausted(), free(&pool)), (0, None, 4));
}

#[test]
fn idle_thread_is_reused() {
    let pool = WorkerPool::new(4, 1);
    let threads: HashSet<_> =
        (0..200).map(|_| run(&pool, || std::thread::current().id())).collect();
    assert!(threads.len() < 20, "{} threads for work that came one after the other", threads.len());
}

#[test]
fn panic_after_work_keeps_the_thread() {
    let pool = WorkerPool::new(1, 1);
    pool.start(Box::new(|| panic!("something that is dropped last"))).unwrap();
    assert_eq!(run(&pool, || 42), 42);
}

#[test]
fn idle_threads_end_with_their_host() {
    let pool = WorkerPool::new(1, 1);
    run(&pool, || ());
    pool.close();
    let start = std::time::Instant::now();
    while Arc::strong_count(&pool) > 1 {
        assert!(start.elapsed() < Duration::from_secs(5), "a thread still holds the pool");
        std::thread::yield_now();
    }
}
