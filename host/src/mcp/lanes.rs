//! Where a call runs: a quick one that comes alone in place, on the thread that has read its request and writes its answer; all others on a pool of threads,
//! where those are answered, too, behind which others wait.
//!
//! To wake another thread up and to be woken up by it takes longer than most calls do. So what is over sooner stays in place whoever waits, where the pool has no
//! core of its own, and the thread stays awake for a moment after each. What computes, though, keeps nobody's requests from being read: it is moved where it first
//! gives way: as a rule at the next tick of the epoch clock.

mod counts;
mod linger;
#[cfg(test)]
mod tests;

use crate::execution::{BoxFuture, Pace, pace};
use counts::{Counts, WAITING, Waiting};
use linger::Linger;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::JoinHandle;
use tracing::Instrument as _;

/// Where calls run.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// Where those go that are not over at once. Nowhere, where the runtime on which requests are read has threads of its own.
    pool: Option<Pool>,
    linger: Linger,
    /// Requests that were read as lines, one behind the other, and wait to be answered. Over HTTP each connection has one, and waits for nobody to read another.
    counts: Arc<Counts>,
}

/// The threads beside the one.
#[derive(Debug)]
struct Pool {
    handle: Handle,
    /// How many cores there are for the client, the one thread and the pool.
    cores: usize,
}

/// The client has one, and the thread that reads and writes has the other.
const BUSY_CORES: usize = 2;

impl Pool {
    /// Whether this is sooner done in place, whoever waits for it.
    fn leaves(&self, pace: &Pace) -> bool {
        pace.is_brief() && self.cores <= BUSY_CORES
    }
}

impl Lanes {
    /// With a pool beside the one thread.
    pub(super) fn with_pool(pool: Handle) -> Self {
        Self::on_cores(pool, std::thread::available_parallelism().map_or(1, usize::from))
    }

    fn on_cores(handle: Handle, cores: usize) -> Self {
        Self { pool: Some(Pool { handle, cores }), ..Self::default() }
    }

    /// Begins to answer a request that was read as a line: on the pool, where others wait already and its call is not one that is left in place, and in place
    /// otherwise. Called inside of a runtime.
    pub(super) fn begin(
        &self,
        pace: impl FnOnce() -> Option<Arc<Pace>>,
        answering: impl Future<Output = ()> + Send + 'static,
    ) {
        let waiting = self.enter();
        let behind = self.pool.as_ref().filter(|_| self.counts.is_crowded());
        let elsewhere = behind.filter(|pool| !pace().is_some_and(|pace| pool.leaves(&pace)));
        // In a box: a runtime moves about what it is given.
        let answering = Box::pin(WAITING.scope(waiting, answering));
        match elsewhere {
            Some(pool) => pool.handle.spawn(answering),
            None => tokio::spawn(answering),
        };
    }

    /// Takes note of a request: where others wait behind it, its call does not run in place, unless it is left there.
    fn enter(&self) -> Waiting {
        Waiting::begin(&self.counts)
    }

    /// Runs work to its end, wherever it has to. Dropping the future ends it. Of what has ended soon, only what counts tells how quick the tool is: what is
    /// cancelled or refused says nothing of those that run.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        (pace, counts): (&Arc<Pace>, fn(&T) -> bool),
        work: BoxFuture<'static, T>,
    ) -> T {
        let Some(pool) = &self.pool else { return work.await };
        if !pace.is_quick() {
            Waiting::steps_aside();
        }
        let stays = pace.is_quick() && (pool.leaves(pace) || !self.counts.is_crowded());
        let mut work =
            Watched { work, pace: pace.clone(), counts, longest: Duration::ZERO, told: false };
        if is_on_a_pool() {
            return work.finish().await;
        }
        if stays {
            let here = poll_fn(|cx| match work.poll(cx) {
                Poll::Ready(done) => Poll::Ready(Some(done)),
                // What waits for something else costs nothing here. What computes goes elsewhere.
                Poll::Pending if pace::is_slow(work.longest) => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            });
            if let Some(done) = here.await {
                if pool.cores > 1 {
                    self.linger.begin(&self.counts);
                }
                return done;
            }
        }
        Task(pool.handle.spawn(async move { work.finish().await }.in_current_span())).ended().await
    }
}

/// Whether this thread is one of several of its runtime. The one that reads and writes is alone in its own.
fn is_on_a_pool() -> bool {
    Handle::try_current()
        .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

/// Work, and the longest time for which it has held its thread.
struct Watched<T> {
    work: BoxFuture<'static, T>,
    pace: Arc<Pace>,
    counts: fn(&T) -> bool,
    longest: Duration,
    told: bool,
}

impl<T> Watched<T> {
    async fn finish(&mut self) -> T {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        let begun = Instant::now();
        let polled = self.work.as_mut().poll(cx);
        self.longest = self.longest.max(begun.elapsed());
        let is_slow = pace::is_slow(self.longest);
        if polled.is_pending() && is_slow {
            Waiting::steps_aside();
        }
        // What is slow is so however it ends, and it may be long until it does.
        if is_slow || matches!(&polled, Poll::Ready(done) if (self.counts)(done)) {
            self.tell();
        }
        polled
    }

    /// How quick it was, once for each run.
    fn tell(&mut self) {
        if !std::mem::replace(&mut self.told, true) {
            self.pace.took(self.longest);
        }
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
