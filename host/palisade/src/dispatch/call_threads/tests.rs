//! Tests of the pool without hanging threads, and of its counts. The suite `hanging` tests threads
//! that hang in a system call.

#![allow(clippy::unwrap_used, reason = "a test that cannot start a thread has failed")]

use super::pool::{Permit, WorkerPool};
use crate::execution::share::{Groups, Owner};
use crate::tool::Digest;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

fn owner(name: &str) -> Owner {
    Owner::new(Digest::of(name.as_bytes()), Groups::default())
}

fn permit(pool: &Arc<WorkerPool>) -> Permit {
    permit_of(pool, &owner("a plugin"))
}

fn permit_of(pool: &Arc<WorkerPool>, owner: &Owner) -> Permit {
    pool.permit(pool.permits.share_of(owner).try_take(1).unwrap(), owner)
}

fn exhausted(pool: &WorkerPool) -> Option<u64> {
    pool.exhausted(&owner("a plugin"))
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
    assert_eq!((pool.lost(), exhausted(&pool), free(&pool)), (2, Some(1), 3));
    let number = first.number;
    drop(first);
    assert_eq!((pool.lost(), free(&pool)), (1, 3));
    assert!(!pool.abandon(number), "it has ended");
    drop(second);
    assert_eq!((pool.lost(), exhausted(&pool), free(&pool)), (0, None, 4));
}

#[test]
fn hanging_threads_of_one_owner_leave_slots_to_the_others() {
    let pool = WorkerPool::new(64, 32);
    let (hanging, other) = (owner("hanging"), owner("other"));
    let permits: Vec<Permit> = (0..30).map(|_| permit_of(&pool, &hanging)).collect();
    permits.iter().for_each(|permit| assert!(pool.abandon(permit.number)));
    assert_eq!((pool.lost(), pool.exhausted(&hanging)), (30, Some(32)));
    assert_eq!(pool.exhausted(&other), None);
    let lost = permit_of(&pool, &other);
    assert!(pool.abandon(lost.number));
    assert_eq!(pool.exhausted(&other), None, "a part is left for each further owner");
    drop(permits);
    assert_eq!((pool.lost(), pool.exhausted(&hanging)), (1, None));
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
