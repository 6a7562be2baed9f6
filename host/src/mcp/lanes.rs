//! Where a call runs: a quick one that comes alone in place, on the thread that has read its request and writes its answer; all others, and whatever waits, on a
//! pool of threads.
//!
//! To wake another thread up and to be woken up by it takes longer than most calls do. What is slow, though, keeps nobody's requests from being read.

use crate::execution::{BoxFuture, Pace};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

/// A tool that took no longer than this the last time runs in place: about what two wake-ups take.
const QUICK: Duration = Duration::from_micros(200);

/// Where calls run.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// Where those go that are not over at once. Nowhere, where the runtime on which requests are read has threads of its own.
    pool: Option<Handle>,
    /// Requests that were read on the one thread and wait to be answered there.
    waiting: Arc<AtomicUsize>,
}

/// A request that waits for its answer. Dropped when it has it.
pub(super) struct Waiting(Arc<AtomicUsize>);

impl Lanes {
    /// With a pool beside the one thread.
    pub(super) fn with_pool(pool: Handle) -> Self {
        Self { pool: Some(pool), waiting: Arc::default() }
    }

    /// Takes note of a request: where others wait behind it, its call does not run in place.
    pub(super) fn enter(&self) -> Waiting {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(self.waiting.clone())
    }

    /// Runs work to its end, wherever it has to. Dropping the future ends it.
    pub(super) async fn run<T: Send + 'static>(&self, pace: &Arc<Pace>, mut work: BoxFuture<'static, T>) -> T {
        let Some(pool) = &self.pool else { return work.await };
        if pace.was_within(QUICK) && self.waiting.load(Ordering::Relaxed) <= 1 {
            let begun = Instant::now();
            let first = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await;
            pace.took(begun.elapsed());
            if let Poll::Ready(done) = first {
                return done;
            }
        }
        let pace = pace.clone();
        let timed = async move {
            let begun = Instant::now();
            let done = work.await;
            pace.took(begun.elapsed());
            done
        };
        Task(pool.spawn(timed.in_current_span())).ended().await
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Work on the pool. Dropped, it ends.
struct Task<T>(JoinHandle<T>);

impl<T> Task<T> {
    async fn ended(mut self) -> T {
        match (&mut self.0).await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The pool is gone, and with it the server: nobody waits for an answer any more.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
