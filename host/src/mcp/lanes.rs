//! Where a call runs: a quick one that comes alone in place, on the thread that has read its request and writes its answer; all others, and whatever waits, on a
//! pool of threads.
//!
//! To wake another thread up and to be woken up by it takes longer than most calls do. What is slow, though, keeps nobody's requests from being read.

use crate::execution::{BoxFuture, Pace};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Instant;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

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
        if pace.is_quick() && self.waiting.load(Ordering::Relaxed) <= 1 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::{self, ThreadId};
    use std::time::Duration;
    use tokio::runtime::{Builder, Runtime};

    fn pool() -> Runtime {
        Builder::new_multi_thread().worker_threads(1).build().expect("a runtime can be started")
    }

    fn quick() -> Arc<Pace> {
        let pace = Arc::new(Pace::default());
        pace.took(Duration::ZERO);
        pace
    }

    fn run(lanes: &Lanes, pace: &Arc<Pace>, work: BoxFuture<'static, ThreadId>) -> ThreadId {
        let here = Builder::new_current_thread().build().expect("a runtime can be started");
        here.block_on(lanes.run(pace, work))
    }

    fn at_once() -> BoxFuture<'static, ThreadId> {
        Box::pin(async { thread::current().id() })
    }

    #[test]
    fn a_quick_call_that_comes_alone_runs_in_place_and_all_others_on_the_pool() {
        let (pool, here) = (pool(), thread::current().id());
        let lanes = Lanes::with_pool(pool.handle().clone());
        assert_ne!(run(&lanes, &Arc::default(), at_once()), here, "nothing is known of it");
        let _only = lanes.enter();
        assert_eq!(run(&lanes, &quick(), at_once()), here);
        let _another = lanes.enter();
        assert_ne!(run(&lanes, &quick(), at_once()), here, "another one waits");
        assert_eq!(run(&Lanes::default(), &Arc::default(), at_once()), here, "there is no pool");
    }

    #[test]
    fn what_waits_goes_on_on_the_pool_and_ends_where_nobody_waits_for_it() {
        let (pool, here) = (pool(), thread::current().id());
        let lanes = Lanes::with_pool(pool.handle().clone());
        let waits = Box::pin(async {
            let before = thread::current().id();
            tokio::task::yield_now().await;
            assert_ne!(before, thread::current().id());
            thread::current().id()
        });
        assert_ne!(run(&lanes, &quick(), waits), here);
        let (dropped, is_dropped) = std::sync::mpsc::channel::<()>();
        let never = Box::pin(async move {
            let _dropped = dropped;
            std::future::pending::<()>().await;
        });
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime can be started");
        let pace = quick();
        let waited =
            runtime.block_on(async { tokio::time::timeout(Duration::from_millis(1), lanes.run(&pace, never)).await });
        assert!(waited.is_err());
        assert!(
            is_dropped
                .recv_timeout(Duration::from_secs(10))
                .is_err_and(|gone| gone == std::sync::mpsc::RecvTimeoutError::Disconnected)
        );
    }

    #[test]
    fn a_panic_on_the_pool_is_one_of_the_call() {
        let pool = pool();
        let lanes = Lanes::with_pool(pool.handle().clone());
        let panics: BoxFuture<'static, ThreadId> = Box::pin(async { panic!("on purpose") });
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&lanes, &Arc::default(), panics)));
        assert!(caught.is_err());
    }
}
