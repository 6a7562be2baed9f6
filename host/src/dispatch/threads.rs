//! The second call mode: work on threads of the host's own, so that one which hangs in the kernel holds up nobody but itself.
//!
//! A call that is to end and whose thread does not come back is answered all the same. Its thread is written off and replaced, up to a cap; beyond it, calls are
//! refused at once. A thread that comes back after all is counted in again.

mod pool;
#[cfg(test)]
mod tests;

use super::queue::exhausted;
use super::run::{caught, caught_here};
use crate::execution::share::Share;
use crate::execution::{ToolContext, wait};
use crate::registry::Registered;
use crate::sandbox::limits;
use crate::tool::{ErrorKind, ExecutionKind, Limit};
use pool::{Pool, Pulse, Seat};
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

/// Where the work of a call is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallMode {
    /// Inside the caller's future, on whichever thread polls it: the fastest. A file operation that hangs in the kernel holds that thread.
    #[default]
    InPlace,
    /// On threads of the host's own, for workspaces that may hang in the kernel, such as network mounts and FUSE: a hand-over there and back, and another where the
    /// input names paths. One that hangs is answered at its deadline or its cancellation, plus half a second. A plugin's tool that is given no workspace holds
    /// nothing that could hang, and runs in place.
    OwnThreads {
        /// Threads that work at once, 1 to 256.
        threads: u32,
        /// Threads that may be lost to the kernel at once, 1 to 128. Up to this many are replaced; then calls are refused.
        lost: u32,
    },
}

impl CallMode {
    /// Own threads, as many as fit most hosts: 64 that work, 32 that may be lost.
    pub const OWN_THREADS: Self = Self::OwnThreads { threads: limits::CALL_THREADS, lost: limits::LOST_THREADS };
}

/// Threads for calls, those that idle ended when it is dropped. It waits for none.
pub(crate) struct Threads(Arc<Pool>);

impl Drop for Threads {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Threads {
    pub(crate) fn new(threads: u32, lost: u32) -> Self {
        Self(Pool::new(threads, lost))
    }

    /// How many threads are lost at this moment.
    pub(crate) fn lost(&self) -> usize {
        self.0.lost()
    }

    /// A place on a thread, once one is free, for as long as the call has patience left. Its own clock does not run here.
    pub(super) async fn admit(
        &self,
        tool: &Registered,
        cancel: &CancellationToken,
        patience: Duration,
    ) -> Result<Place, ErrorKind> {
        self.check_lost()?;
        let places = self.0.places.share(tool.owner());
        if let Ok(free) = places.try_take(1) {
            return Ok(Place(self.0.seat(free)));
        }
        let _waiting = wait(tool.queue())?;
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ErrorKind::Cancelled),
            place = timeout(patience, self.free_place(&places)) => place.unwrap_or_else(|_| Err(exhausted())),
        }
    }

    async fn free_place(&self, places: &Arc<Share>) -> Result<Place, ErrorKind> {
        let mut free = pin!(places.take(1));
        loop {
            let mut full = pin!(self.0.full.notified());
            full.as_mut().enable();
            self.check_lost()?;
            tokio::select! {
                biased;
                free = &mut free => {
                    self.check_lost()?;
                    return Ok(Place(self.0.seat(free)));
                }
                () = full => {}
                // Threads whose callers have gone are only looked after here.
                () = sleep(limits::THREAD_GRACE) => {}
            }
        }
    }

    fn check_lost(&self) -> Result<(), ErrorKind> {
        match self.0.exhausted() {
            Some(lost) => Err(ErrorKind::ResourceExhausted { limit: Limit::LostThreads, value: lost as u64 }),
            None => Ok(()),
        }
    }

    /// Does work on a thread, and answers for it when the time is up or the caller gives up, also if the thread does not come back.
    pub(super) async fn within<T: Send + 'static>(
        &self,
        time: Duration,
        tool: &Registered,
        cancel: &CancellationToken,
        work: impl FnOnce() -> Result<T, ErrorKind> + Send + 'static,
    ) -> Result<T, ErrorKind> {
        let place = self.admit(tool, cancel, limits::QUEUE_TIMEOUT).await?;
        let until = Instant::now() + time;
        let overdue = async {
            tokio::select! {
                () = cancel.cancelled() => ErrorKind::Cancelled,
                () = sleep_until(until) => ErrorKind::Unanswered { limit: time },
            }
        };
        place.start(Timers::Own, cancel.clone(), async move { work() })?.or(overdue).await
    }

    /// As [`within`](Self::within), for callers that have no runtime; they wait here.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        time: Duration,
        tool: &Registered,
        work: impl FnOnce() -> Result<T, ErrorKind> + Send + 'static,
    ) -> Result<T, ErrorKind> {
        self.check_lost()?;
        let seat = self.0.seat(self.0.places.share(tool.owner()).try_take(1).map_err(|_| exhausted())?);
        let (number, (send, done)) = (seat.number, mpsc::sync_channel(1));
        let job = move || {
            let result = caught_here(work);
            drop(seat);
            let _ = send.send(result);
        };
        self.0.start(Box::new(job)).map_err(ErrorKind::internal)?;
        match done.recv_timeout(time) {
            Ok(result) => result,
            Err(_) if self.0.write_off(number) => Err(ErrorKind::Unanswered { limit: time }),
            Err(_) => done.recv_timeout(limits::THREAD_GRACE).unwrap_or_else(|_| Err(lost())),
        }
    }
}

/// Under which runtime work is polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timers {
    /// One of its own, which has timers and nothing else: it ends in time whoever drives the caller's.
    Own,
    /// The caller's, with all that it has.
    Callers,
}

/// A place on a thread that waits for its work.
pub(super) struct Place(Seat);

impl Place {
    /// Starts work on the thread. It is polled there and nowhere else.
    pub(super) fn start<T: Send + 'static>(
        self,
        timers: Timers,
        cancel: CancellationToken,
        work: impl Future<Output = Result<T, ErrorKind>> + Send + 'static,
    ) -> Result<Away<T>, ErrorKind> {
        let (Self(seat), runtime, pulse) = (self, Handle::current(), Pulse::default());
        let (pool, number, (send, done)) = (seat.pool(), seat.number, oneshot::channel());
        let (beats, work) = (pulse.clone(), work.in_current_span());
        let job = move || {
            let work = watched(caught(work), beats);
            let result = match timers {
                Timers::Callers => runtime.block_on(work),
                Timers::Own => own_runtime().and_then(|own| {
                    let result = own.block_on(work);
                    // A plugin's code that is still being loaded is loaded for the next call: nobody waits for it here.
                    own.shutdown_background();
                    result
                }),
            };
            // The books are closed before the caller learns of the end.
            drop(seat);
            let _ = send.send(result);
        };
        pool.start(Box::new(job)).map_err(ErrorKind::internal)?;
        Ok(Away { done: Some(done), pulse, pool, number, cancel })
    }
}

fn own_runtime() -> Result<Runtime, ErrorKind> {
    tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(ErrorKind::internal)
}

async fn watched<T>(work: impl Future<Output = T>, pulse: Pulse) -> T {
    let mut work = pin!(work);
    poll_fn(|cx| {
        pulse.beat();
        let poll = work.as_mut().poll(cx);
        if poll.is_pending() {
            pulse.beat();
        }
        poll
    })
    .await
}

/// Completes when the thread has been in one piece of the work for the whole of the grace.
async fn is_stuck(pulse: &Pulse) {
    loop {
        let seen = pulse.count();
        sleep(limits::THREAD_GRACE).await;
        if pulse.stands_still(seen) {
            return;
        }
    }
}

/// Work that runs on another thread. Dropped before its end, it is told to stop, and its thread stays in the books.
pub(super) struct Away<T: Send + 'static> {
    done: Option<oneshot::Receiver<Result<T, ErrorKind>>>,
    pulse: Pulse,
    pool: Arc<Pool>,
    number: u64,
    cancel: CancellationToken,
}

impl<T: Send + 'static> Away<T> {
    /// The result; or the word of `overdue`, which says when the work should have ended, once its thread is found stuck.
    pub(super) async fn or(mut self, overdue: impl Future<Output = ErrorKind>) -> Result<T, ErrorKind> {
        let late = tokio::select! {
            biased;
            result = self.ended() => return result,
            late = overdue => late,
        };
        self.ended_or_stuck().await.unwrap_or(Err(late))
    }

    /// The result, once there is one.
    pub(super) async fn ended(&mut self) -> Result<T, ErrorKind> {
        let result = match &mut self.done {
            Some(done) => done.await.unwrap_or_else(|_| Err(lost())),
            None => std::future::pending().await,
        };
        self.done = None;
        result
    }

    /// The result of work that should have ended, or `None` where its thread is stuck and now written off.
    pub(super) async fn ended_or_stuck(&mut self) -> Option<Result<T, ErrorKind>> {
        let pulse = self.pulse.clone();
        tokio::select! {
            biased;
            result = self.ended() => return Some(result),
            () = is_stuck(&pulse) => {}
        }
        if !self.pool.write_off(self.number) {
            return Some(self.ended().await);
        }
        self.done = None;
        None
    }
}

impl<T: Send + 'static> Drop for Away<T> {
    fn drop(&mut self) {
        if self.done.take().is_some() {
            self.cancel.cancel();
            self.pool.leave(self.number, self.pulse.clone());
        }
    }
}

/// When a call has to be over: its caller gives up, or its time is up. The clock of a plugin's call only starts once it has its sandbox.
pub(super) async fn overdue(context: &ToolContext) -> ErrorKind {
    /// How long to wait at least before looking again whether the clock has started.
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
