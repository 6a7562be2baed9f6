//! Tests of offloaded work: it takes turns, it ends with its call, and large values are dropped in
//! turns.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use super::*;
use crate::execution::account::{Account, MemoryLimits};
use crate::execution::deferred_drop::{ALONE, drop_later, retry_after_drops};
use crate::tool::Digest;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use tokio_util::sync::CancellationToken;

const LONG: Duration = Duration::from_secs(600);

fn budget(time: Duration, cancel: &CancellationToken) -> CallBudget {
    let account = Account::new(MemoryLimits { call: u64::MAX, total: u64::MAX });
    CallBudget::new(account, std::time::Instant::now() + time, cancel.clone())
}

/// Creates a share of `count` turns without competing owners or expiry.
fn turns(count: u64, owner: &[u8]) -> Arc<Share> {
    Pool::new(count).share(Digest::of(owner))
}

/// Runs until its budget is exhausted.
fn endless(budget: &dyn Budget) -> Result<(), Exhausted> {
    loop {
        budget.check()?;
        thread::yield_now();
    }
}

async fn polled_once<T>(work: &mut std::pin::Pin<Box<impl Future<Output = T>>>) -> Option<T> {
    std::future::poll_fn(|cx| match work.as_mut().poll(cx) {
        std::task::Poll::Ready(done) => std::task::Poll::Ready(Some(done)),
        std::task::Poll::Pending => std::task::Poll::Ready(None),
    })
    .await
}

#[tokio::test]
async fn work_ends_at_deadline_and_cancellation() {
    let cancel = CancellationToken::new();
    let turns = turns(1, b"a plugin");
    let late =
        offload(&budget(Duration::from_millis(5), &cancel), &turns, |budget| endless(&*budget))
            .await;
    assert_eq!(late, Err(Exhausted::Deadline));
    let both = budget(LONG, &cancel);
    let (stopped, ()) =
        tokio::join!(offload(&both, &turns, |budget| endless(&*budget)), async { cancel.cancel() });
    assert_eq!(stopped, Err(Exhausted::Cancelled));
}

#[tokio::test]
async fn work_ends_with_its_future() {
    let cancel = CancellationToken::new();
    let turns = turns(1, b"a plugin");
    let (ended, end) = oneshot::channel();
    let both = budget(LONG, &cancel);
    let mut work = Box::pin(offload(&both, &turns, move |budget| {
        let why = endless(&*budget);
        let _ = ended.send(why);
        why
    }));
    assert!(polled_once(&mut work).await.is_none());
    drop(work);
    assert_eq!(end.await, Ok(Err(Exhausted::Cancelled)));
    assert!(!cancel.is_cancelled());
}

#[tokio::test]
async fn runtime_continues_during_offloaded_work() {
    let cancel = CancellationToken::new();
    let turns = turns(1, b"a plugin");
    let (freed, free) = mpsc::channel();
    let both = budget(LONG, &cancel);
    let work = offload(&both, &turns, move |_| Ok(free.recv()));
    let (done, ()) = tokio::join!(work, async move { assert!(freed.send(1).is_ok()) });
    assert_eq!(done, Ok(Ok(1)));
}

#[tokio::test]
async fn work_starts_in_a_turn_and_releases_it() {
    let cancel = CancellationToken::new();
    let turns = turns(1, b"a plugin");
    let both = budget(LONG, &cancel);
    let own = turns.clone();
    let begun = Arc::new(AtomicUsize::new(0));
    let taken = turns.try_take(1).unwrap();
    let count = begun.clone();
    let mut work = Box::pin(offload(&both, &turns, move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(own.pool().held())
    }));
    assert!(polled_once(&mut work).await.is_none());
    assert_eq!(
        (turns.waiting(), begun.load(Ordering::SeqCst)),
        (1, 0),
        "it waits for its turn, on no thread"
    );
    drop(taken);
    assert_eq!(work.await, Ok(1), "it holds a turn");
    assert_eq!(turns.pool().held(), 0);
}

#[test]
fn work_beyond_a_tick_waits_for_its_next_turn() {
    let cancel = CancellationToken::new();
    let turns = turns(1, b"a plugin");
    let begin = |budget| TurnBudget::new(budget, &turns, None).with_tick(Duration::ZERO);
    let one = begin(budget(LONG, &cancel));
    let steps = AtomicUsize::new(0);
    let other = turns.try_take(1).unwrap();
    thread::scope(|scope| {
        let working = scope.spawn(|| {
            while one.check().is_ok() {
                steps.fetch_add(1, Ordering::SeqCst);
            }
        });
        while turns.waiting() == 0 {
            thread::yield_now();
        }
        assert_eq!(steps.load(Ordering::SeqCst), 0, "the turn is another's");
        drop(other);
        while steps.load(Ordering::SeqCst) < 100 {
            thread::yield_now();
        }
        let mut request = Box::pin(turns.take(1));
        let waker = std::task::Waker::noop();
        while request.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_pending() {
            thread::yield_now();
        }
        cancel.cancel();
        working.join().unwrap();
    });
    assert_eq!(
        begin(budget(Duration::ZERO, &CancellationToken::new())).check(),
        Err(Exhausted::Deadline)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_owner_leaves_half_of_the_threads() {
    let pool = Pool::new(1_000);
    let flood = pool.share(Digest::of(b"a flood"));
    let other = pool.share(Digest::of(b"another"));
    let cancel = CancellationToken::new();
    let begun = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..MAX_JOBS * 2)
        .map(|_| {
            let flood = flood.clone();
            let both = budget(LONG, &cancel);
            let begun = begun.clone();
            tokio::spawn(async move {
                let work = move |budget: Arc<dyn Budget>| {
                    begun.fetch_add(1, Ordering::SeqCst);
                    endless(&*budget)
                };
                offload(&both, &flood, work).await
            })
        })
        .collect();
    while begun.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    for _ in 0..10 {
        assert_eq!(offload(&budget(LONG, &cancel), &other, |_| Ok(1)).await, Ok(1));
        assert!(begun.load(Ordering::SeqCst) as u64 <= MAX_JOBS / 2);
    }
    cancel.cancel();
    for task in tasks {
        assert_eq!(task.await.unwrap(), Err(Exhausted::Cancelled));
    }
}

/// A value that records its drop and the dropping thread.
struct Large(Arc<Mutex<Vec<Option<String>>>>);

impl Drop for Large {
    fn drop(&mut self) {
        self.0.lock().unwrap().push(thread::current().name().map(str::to_owned));
    }
}

#[test]
fn large_value_is_dropped_on_another_thread() {
    let _alone = ALONE.lock();
    let turns = turns(1, b"a plugin");
    let dropped = Arc::<Mutex<Vec<_>>>::default();
    let taken = turns.try_take(1).unwrap();
    drop_later(&turns, Large(dropped.clone()));
    assert_eq!((turns.waiting(), dropped.lock().unwrap().len()), (1, 0));
    drop(taken);
    while Arc::strong_count(&dropped) > 1 {
        thread::yield_now();
    }
    assert_eq!(*dropped.lock().unwrap(), [Some("palisade-work".to_owned())]);
}

#[test]
fn memory_shortage_runs_pending_drops_first() {
    let _alone = ALONE.lock();
    let turns = turns(1, b"a plugin");
    let dropped = Arc::<Mutex<Vec<_>>>::default();
    let _taken = turns.try_take(1).unwrap();
    assert!(retry_after_drops(|| true));
    drop_later(&turns, Large(dropped.clone()));
    assert!(retry_after_drops(|| !dropped.lock().unwrap().is_empty()));
    assert_eq!(dropped.lock().unwrap().len(), 1);
    drop(turns);
    assert!(!retry_after_drops(|| false));
    assert_eq!(dropped.lock().unwrap().len(), 1, "it is dropped once");
}
