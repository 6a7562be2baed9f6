//! Where a call runs: a quick one that comes alone in place, on the thread that has read its request and writes its answer; all others on a pool of threads,
//! where those are answered, too, behind which others wait.
//!
//! To wake another thread up and to be woken up by it takes longer than most calls do. What computes, though, keeps nobody's requests from being read: it is moved
//! where it first gives way, at the next tick of the epoch clock at the latest.

use crate::execution::{BoxFuture, Pace, pace};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::JoinHandle;
use tracing::Instrument as _;

/// Where calls run.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// Where those go that are not over at once. Nowhere, where the runtime on which requests are read has threads of its own.
    pool: Option<Handle>,
    /// Requests that were read as lines, one behind the other, and wait to be answered. Over HTTP each connection has one, and waits for nobody to read another.
    counts: Arc<Counts>,
}

/// How many wait, and what for.
#[derive(Debug, Default)]
struct Counts {
    waiting: AtomicUsize,
    /// Those whose call computes, and is not waited for by any other.
    slow: AtomicUsize,
}

impl Counts {
    /// Whether one more goes to the pool: where others wait already, unless the pool has calls that keep its threads busy. Then a quick one is done sooner in place.
    fn is_crowded(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 1 && self.slow.load(Ordering::Relaxed) == 0
    }
}

tokio::task_local! {
    /// The request that is being answered.
    static WAITING: Waiting;
}

/// A request that waits for its answer. Dropped when it has it.
struct Waiting {
    counts: Arc<Counts>,
    is_slow: AtomicBool,
}

impl Waiting {
    /// The request of this task takes its time: it is none of those any more behind which others wait.
    fn steps_aside() {
        // What does not come as a line waits behind nobody.
        let _ = WAITING.try_with(|waiting| {
            if !waiting.is_slow.swap(true, Ordering::Relaxed) {
                waiting.counts.slow.fetch_add(1, Ordering::Relaxed);
                waiting.counts.waiting.fetch_sub(1, Ordering::Relaxed);
            }
        });
    }
}

impl Lanes {
    /// With a pool beside the one thread.
    pub(super) fn with_pool(pool: Handle) -> Self {
        Self { pool: Some(pool), counts: Arc::default() }
    }

    /// Begins to answer a request that was read as a line: on the pool, where others wait already, and in place otherwise. Called inside of a runtime.
    pub(super) fn begin(&self, answering: impl Future<Output = ()> + Send + 'static) {
        let waiting = self.enter();
        let is_behind = self.counts.is_crowded();
        // In a box: a runtime moves about what it is given.
        let answering = Box::pin(WAITING.scope(waiting, answering));
        match &self.pool {
            Some(pool) if is_behind => pool.spawn(answering),
            _ => tokio::spawn(answering),
        };
    }

    /// Takes note of a request: where others wait behind it, its call does not run in place.
    fn enter(&self) -> Waiting {
        self.counts.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting { counts: self.counts.clone(), is_slow: AtomicBool::new(false) }
    }

    /// Runs work to its end, wherever it has to. Dropping the future ends it.
    pub(super) async fn run<T: Send + 'static>(&self, pace: &Arc<Pace>, work: BoxFuture<'static, T>) -> T {
        let mut work = Watched { work, longest: Duration::ZERO };
        let Some(pool) = &self.pool else { return work.work.await };
        if !pace.is_quick() {
            Waiting::steps_aside();
        }
        if is_on_a_pool() {
            return work.finish(pace).await;
        }
        if pace.is_quick() && !self.counts.is_crowded() {
            let here = poll_fn(|cx| match work.poll(cx) {
                Poll::Ready(done) => Poll::Ready(Some(done)),
                // What waits for something else costs nothing here. What computes goes elsewhere.
                Poll::Pending if pace::is_slow(work.longest) => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            });
            if let Some(done) = here.await {
                pace.took(work.longest);
                return done;
            }
        }
        let pace = pace.clone();
        Task(pool.spawn(async move { work.finish(&pace).await }.in_current_span())).ended().await
    }
}

/// Whether this thread is one of several of its runtime. The one that reads and writes is alone in its own.
fn is_on_a_pool() -> bool {
    Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

/// Work, and the longest time for which it has held its thread.
struct Watched<T> {
    work: BoxFuture<'static, T>,
    longest: Duration,
}

impl<T> Watched<T> {
    async fn finish(&mut self, pace: &Pace) -> T {
        let done = poll_fn(|cx| self.poll(cx)).await;
        pace.took(self.longest);
        done
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        let begun = Instant::now();
        let polled = self.work.as_mut().poll(cx);
        self.longest = self.longest.max(begun.elapsed());
        if polled.is_pending() && pace::is_slow(self.longest) {
            Waiting::steps_aside();
        }
        polled
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let counted = if self.is_slow.load(Ordering::Relaxed) { &self.counts.slow } else { &self.counts.waiting };
        counted.fetch_sub(1, Ordering::Relaxed);
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
    use std::sync::mpsc;
    use std::thread::{self, ThreadId};
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
    fn behind_another_one_a_request_is_answered_on_the_pool_as_a_whole() {
        let (pool, here) = (pool(), thread::current().id());
        let lanes = Arc::new(Lanes::with_pool(pool.handle().clone()));
        let (answers, answered) = mpsc::channel();
        let request = || {
            let (lanes, answers) = (lanes.clone(), answers.clone());
            async move {
                let ran = lanes.run(&quick(), at_once()).await;
                let _ = answers.send((ran, thread::current().id()));
            }
        };
        let reads = Builder::new_current_thread().build().expect("a runtime can be started");
        let next = || answered.recv_timeout(Duration::from_secs(10)).expect("it is answered");
        reads.block_on(async {
            lanes.begin(request());
            tokio::task::yield_now().await;
        });
        assert_eq!(next(), (here, here), "it comes alone");
        let _another = lanes.enter();
        reads.block_on(async { lanes.begin(request()) });
        let (ran, wrote) = next();
        assert!(ran == wrote && ran != here, "the thread that runs the call writes its answer");
    }

    #[test]
    fn nobody_waits_behind_what_computes() {
        let (pool, here) = (pool(), thread::current().id());
        let lanes = Lanes::with_pool(pool.handle().clone());
        let _waiting = [lanes.enter(), lanes.enter()];
        assert_ne!(run(&lanes, &quick(), at_once()), here, "they wait, too");
        let reads = Builder::new_current_thread().build().expect("a runtime can be started");
        reads.block_on(WAITING.scope(lanes.enter(), async {
            // Of this one nothing is known.
            let _ = lanes.run(&Arc::default(), at_once()).await;
            assert_eq!(lanes.run(&quick(), at_once()).await, here, "the pool may be busy");
        }));
        assert_ne!(run(&lanes, &quick(), at_once()), here, "that has ended");
        assert_eq!(lanes.counts.waiting.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn what_waits_stays_and_what_computes_goes_on_on_the_pool() {
        let (pool, here) = (pool(), thread::current().id());
        let lanes = Lanes::with_pool(pool.handle().clone());
        let waits = |computes: Duration| -> BoxFuture<'static, ThreadId> {
            Box::pin(async move {
                let begun = Instant::now();
                while begun.elapsed() < computes {
                    std::hint::spin_loop();
                }
                tokio::task::yield_now().await;
                thread::current().id()
            })
        };
        // Of a few runs, for the machine may be slow itself.
        assert!((0..100).any(|_| run(&lanes, &quick(), waits(Duration::ZERO)) == here));
        assert_ne!(run(&lanes, &quick(), waits(Duration::from_millis(2))), here);
    }

    #[test]
    fn what_runs_on_the_pool_ends_where_nobody_waits_for_it() {
        let pool = pool();
        let lanes = Lanes::with_pool(pool.handle().clone());
        let (dropped, is_dropped) = mpsc::channel::<()>();
        let never = Box::pin(async move {
            let _dropped = dropped;
            std::future::pending::<()>().await;
        });
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime can be started");
        let pace = Arc::default();
        let waited =
            runtime.block_on(async { tokio::time::timeout(Duration::from_millis(1), lanes.run(&pace, never)).await });
        assert!(waited.is_err());
        assert_eq!(is_dropped.recv_timeout(Duration::from_secs(10)), Err(mpsc::RecvTimeoutError::Disconnected));
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
