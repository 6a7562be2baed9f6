//! The second call mode: calls run on the host's own threads, so that a thread which hangs in a
//! system call affects only its own call.
//!
//! A call whose thread does not return is answered at its deadline or cancellation. The thread is
//! abandoned and replaced, up to a cap; beyond it calls are refused at once. An abandoned thread
//! that returns is counted in again.

mod pool;
#[cfg(test)]
mod tests;

use super::errors::queue_timeout;
use super::panics::{catch_panic, catch_panic_sync};
use crate::execution::share::{Owner, Share};
use crate::execution::{ToolContext, enter_queue};
use crate::sandbox::limits;
use crate::tool::{ErrorKind, ExecutionKind, Limit};
pub(super) use pool::Permit;
use pool::{Heartbeat, WorkerPool};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// The place where the work of a call runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallMode {
    /// In the caller's future, on the thread that polls it: the fastest mode. A file operation that
    /// hangs in a system call blocks that thread.
    #[default]
    InPlace,
    /// On the host's own threads, for workspaces on file systems that may hang, such as network
    /// mounts and FUSE. It costs one hand-over to another thread and back, and a second one if the
    /// input has paths. A hanging call is answered half a second after its deadline or
    /// cancellation. A plugin's tool without access to the workspace cannot hang and runs in place.
    OwnThreads {
        /// The number of concurrent threads, 1 to 256.
        threads: u32,
        /// The number of hanging threads at once, 1 to 128. Up to this many are replaced, about
        /// half of them for one plugin or native tool; beyond it calls are refused.
        lost: u32,
    },
}

impl CallMode {
    /// Own threads with defaults for most hosts: 64 concurrent, 32 hanging.
    pub const OWN_THREADS: Self =
        Self::OwnThreads { threads: limits::CALL_THREADS, lost: limits::LOST_THREADS };
}

/// The thread pool for calls. Dropping it ends idle threads and does not wait for busy ones.
pub(crate) struct CallThreads(Arc<WorkerPool>);

impl Drop for CallThreads {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl CallThreads {
    pub(crate) fn new(threads: u32, lost: u32) -> Self {
        Self(WorkerPool::new(threads, lost))
    }

    /// Returns the number of threads that hang now.
    pub(crate) fn lost(&self) -> usize {
        self.0.lost()
    }

    /// Waits for a slot for a thread within `patience`, on behalf of the owner of this share of the
    /// queue. The call's clock does not run meanwhile.
    pub(super) async fn admit(
        &self,
        queue: &Arc<Share>,
        cancel: &CancellationToken,
        patience: Duration,
    ) -> Result<Permit, ErrorKind> {
        if let Some(free) = self.try_admit(queue)? {
            return Ok(free);
        }
        let share = self.0.permits.share_of(queue.owner());
        let _waiting = enter_queue(queue)?;
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ErrorKind::Cancelled),
            permit = timeout(patience, self.free_permit(&share)) => permit.unwrap_or_else(|_| Err(queue_timeout())),
        }
    }

    /// Takes a free slot, if there is one.
    fn try_admit(&self, queue: &Share) -> Result<Option<Permit>, ErrorKind> {
        self.check_lost(queue.owner())?;
        let free = self.0.permits.share_of(queue.owner()).try_take(1).ok();
        Ok(free.map(|free| self.0.permit(free, queue.owner())))
    }

    /// Waits like [`admit`](Self::admit), and blocks the calling thread. The wait needs timers, and
    /// the caller may be a thread of a runtime, which cannot drive another one.
    fn admit_here(
        &self,
        queue: &Arc<Share>,
        cancel: &CancellationToken,
    ) -> Result<Permit, ErrorKind> {
        if let Some(free) = self.try_admit(queue)? {
            return Ok(free);
        }
        let admit = || own_runtime()?.block_on(self.admit(queue, cancel, limits::QUEUE_TIMEOUT));
        std::thread::scope(|scope| {
            let waiting = std::thread::Builder::new()
                .name("palisade-queue".to_owned())
                .spawn_scoped(scope, admit);
            waiting.map_err(ErrorKind::no_thread)?.join().unwrap_or_else(|_| Err(lost()))
        })
    }

    async fn free_permit(&self, share: &Arc<Share>) -> Result<Permit, ErrorKind> {
        let mut free = pin!(share.take(1));
        loop {
            let mut hung = pin!(self.0.hung.notified());
            // Registered before the check, so that no wake-up is lost between the check and the
            // wait.
            hung.as_mut().enable();
            self.check_lost(share.owner())?;
            tokio::select! {
                biased;
                free = &mut free => {
                    self.check_lost(share.owner())?;
                    return Ok(self.0.permit(free, share.owner()));
                }
                () = hung => {}
                // Hanging threads without a caller are only detected here.
                () = sleep(limits::THREAD_GRACE) => {}
            }
        }
    }

    fn check_lost(&self, owner: &Owner) -> Result<(), ErrorKind> {
        match self.0.exhausted(owner) {
            Some(lost) => {
                Err(ErrorKind::ResourceExhausted { limit: Limit::LostThreads, value: lost })
            }
            None => Ok(()),
        }
    }

    /// Runs work on a thread. If the thread does not return by the deadline or cancellation, this
    /// returns an error anyway.
    pub(super) async fn run_within<T: Send + 'static>(
        &self,
        time: Duration,
        queue: &Arc<Share>,
        cancel: &CancellationToken,
        work: impl FnOnce() -> Result<T, ErrorKind> + Send + 'static,
    ) -> Result<T, ErrorKind> {
        let permit = self.admit(queue, cancel, limits::QUEUE_TIMEOUT).await?;
        let until = Instant::now() + time;
        let overdue = async {
            tokio::select! {
                () = cancel.cancelled() => ErrorKind::Cancelled,
                () = sleep_until(until) => ErrorKind::Unanswered { limit: time },
            }
        };
        permit.start(Timers::Own, cancel.clone(), async move { work() })?.or(overdue).await
    }

    /// Like [`run_within`](Self::run_within), for callers without a runtime: blocks the calling
    /// thread.
    pub(super) fn run_blocking<T: Send + 'static>(
        &self,
        time: Duration,
        queue: &Arc<Share>,
        cancel: &CancellationToken,
        work: impl FnOnce() -> Result<T, ErrorKind> + Send + 'static,
    ) -> Result<T, ErrorKind> {
        let permit = self.admit_here(queue, cancel)?;
        let number = permit.number;
        let (send, done) = mpsc::sync_channel(1);
        let job = move || {
            let result = catch_panic_sync(work);
            drop(permit);
            let _ = send.send(result);
        };
        self.0.start(Box::new(job)).map_err(ErrorKind::no_thread)?;
        match done.recv_timeout(time) {
            Ok(result) => result,
            Err(_) if self.0.abandon(number) => Err(ErrorKind::Unanswered { limit: time }),
            Err(_) => done.recv_timeout(limits::THREAD_GRACE).unwrap_or_else(|_| Err(lost())),
        }
    }
}

/// The runtime that polls the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timers {
    /// A runtime of its own with timers only, so that the work ends in time even if the caller's
    /// runtime is not driven.
    Own,
    /// The caller's runtime.
    Callers,
}

impl Permit {
    /// Starts work, which is polled on its thread only.
    pub(super) fn start<T: Send + 'static>(
        self,
        timers: Timers,
        cancel: CancellationToken,
        work: impl Future<Output = Result<T, ErrorKind>> + Send + 'static,
    ) -> Result<PendingJob<T>, ErrorKind> {
        let runtime = Handle::current();
        let heartbeat = Heartbeat::default();
        let pool = self.pool();
        let number = self.number;
        let (send, done) = oneshot::channel();
        let own_heartbeat = heartbeat.clone();
        let work = work.in_current_span();
        let job = move || {
            let work = with_heartbeat(catch_panic(work), own_heartbeat);
            let result = match timers {
                Timers::Callers => runtime.block_on(work),
                Timers::Own => own_runtime().and_then(|own| {
                    let result = own.block_on(work);
                    // A plugin's code may still be loading on the runtime; that load serves the
                    // next call, so it is not awaited.
                    own.shutdown_background();
                    result
                }),
            };
            // Release the slot before the caller learns of the end.
            drop(self);
            let _ = send.send(result);
        };
        pool.start(Box::new(job)).map_err(ErrorKind::no_thread)?;
        Ok(PendingJob { done: Some(done), heartbeat, pool, number, cancel })
    }
}

fn own_runtime() -> Result<Runtime, ErrorKind> {
    tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(ErrorKind::internal)
}

async fn with_heartbeat<T>(work: impl Future<Output = T>, heartbeat: Heartbeat) -> T {
    let mut work = pin!(work);
    poll_fn(|cx| {
        heartbeat.beat();
        let poll = work.as_mut().poll(cx);
        if poll.is_pending() {
            heartbeat.beat();
        }
        poll
    })
    .await
}

/// Completes when the thread has spent a whole grace period in one poll of the work.
async fn wait_until_stuck(heartbeat: &Heartbeat) {
    loop {
        let seen = heartbeat.count();
        sleep(limits::THREAD_GRACE).await;
        if heartbeat.is_unchanged_in_poll(seen) {
            return;
        }
    }
}

/// Work on another thread. Dropping it cancels the work; its thread stays counted.
pub(super) struct PendingJob<T: Send + 'static> {
    done: Option<oneshot::Receiver<Result<T, ErrorKind>>>,
    heartbeat: Heartbeat,
    pool: Arc<WorkerPool>,
    number: u64,
    cancel: CancellationToken,
}

impl<T: Send + 'static> PendingJob<T> {
    /// Waits for the result. If `overdue` completes first and the thread is found to hang, returns
    /// the error of `overdue`.
    pub(super) async fn or(
        mut self,
        overdue: impl Future<Output = ErrorKind>,
    ) -> Result<T, ErrorKind> {
        let late = tokio::select! {
            biased;
            result = self.ended() => return result,
            late = overdue => late,
        };
        self.ended_or_stuck().await.unwrap_or(Err(late))
    }

    /// Waits for the result.
    pub(super) async fn ended(&mut self) -> Result<T, ErrorKind> {
        let result = match &mut self.done {
            Some(done) => done.await.unwrap_or_else(|_| Err(lost())),
            None => std::future::pending().await,
        };
        self.done = None;
        result
    }

    /// Waits for the result of overdue work, or returns `None` after abandoning its thread, which
    /// hangs.
    pub(super) async fn ended_or_stuck(&mut self) -> Option<Result<T, ErrorKind>> {
        let heartbeat = self.heartbeat.clone();
        tokio::select! {
            biased;
            result = self.ended() => return Some(result),
            () = wait_until_stuck(&heartbeat) => {}
        }
        if !self.pool.abandon(self.number) {
            return Some(self.ended().await);
        }
        self.done = None;
        None
    }
}

impl<T: Send + 'static> Drop for PendingJob<T> {
    fn drop(&mut self) {
        if self.done.take().is_some() {
            self.cancel.cancel();
            self.pool.orphan(self.number, self.heartbeat.clone());
        }
    }
}

/// Completes when a call is cancelled or past its deadline. A plugin's clock starts only when it
/// has its sandbox.
pub(super) async fn overdue(context: &ToolContext) -> ErrorKind {
    /// The shortest interval between two checks of whether the clock has started.
    const LOOK: Duration = Duration::from_millis(10);
    let time_is_up = async {
        let clock = context.clock();
        while !clock.has_started() {
            sleep(clock.budget().max(LOOK)).await;
        }
        clock.run_out().await;
    };
    tokio::select! {
        () = context.cancelled() => ErrorKind::Cancelled,
        () = time_is_up => ErrorKind::Unanswered { limit: context.time_limit() },
    }
}

fn lost() -> ErrorKind {
    ErrorKind::execution(ExecutionKind::Internal, "the call was lost with its thread")
}
