//! Requests that wait for units of a pool.

use super::pool::{Grant, Share, wake};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

impl Share {
    /// Waits for units. The requests of one owner are served in order, the owners round-robin.
    pub(crate) fn take(self: &Arc<Self>, units: u64) -> Acquire {
        Acquire::new(self.clone(), units)
    }

    /// Waits for one unit. The requests of one owner are served in order, the owners round-robin.
    pub fn acquire(self: &Arc<Self>) -> impl Future<Output = Grant> + Send + 'static {
        self.take(1)
    }

    /// Like [`take`](Self::take), but runs a callback with the units: at once, or on the thread
    /// that releases them. The callback must be short.
    pub(crate) fn take_then(
        self: &Arc<Self>,
        units: u64,
        then: impl FnOnce(Grant) + Send + 'static,
    ) {
        CallbackRequest::begin(self.take(units), Box::new(then));
    }
}

/// A request for units. It enters the queue at its first poll and leaves it on drop.
#[derive(Debug)]
#[must_use = "a request that is not awaited takes nothing"]
pub(crate) struct Acquire {
    share: Arc<Share>,
    units: u64,
    state: RequestState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestState {
    Outside,
    Queued(u64),
}

impl Acquire {
    pub(super) fn new(share: Arc<Share>, units: u64) -> Self {
        Self { share, units, state: RequestState::Outside }
    }

    fn grant(&self, lease: Option<u64>) -> Grant {
        Grant { share: self.share.clone(), units: self.units, lease }
    }
}

impl Future for Acquire {
    type Output = Grant;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Grant> {
        let share = self.share.clone();
        let mut scheduler = share.pool.scheduler();
        match self.state {
            RequestState::Outside => {
                if let Ok(lease) = scheduler.take(share.index, self.units) {
                    return Poll::Ready(self.grant(lease));
                }
                self.state =
                    RequestState::Queued(scheduler.queue(share.index, self.units, cx.waker()));
                share.waiting.fetch_add(1, Ordering::Relaxed);
                Poll::Pending
            }
            RequestState::Queued(id) => match scheduler.granted(share.index, id, cx.waker()) {
                Some(lease) => {
                    self.state = RequestState::Outside;
                    share.waiting.fetch_sub(1, Ordering::Relaxed);
                    Poll::Ready(self.grant(lease))
                }
                None => Poll::Pending,
            },
        }
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        let RequestState::Queued(id) = self.state else { return };
        self.share.waiting.fetch_sub(1, Ordering::Relaxed);
        let woken = {
            let mut scheduler = self.share.pool.scheduler();
            scheduler.withdraw(self.share.index, id, self.units);
            scheduler.serve()
        };
        wake(woken);
    }
}

/// A request with a callback in place of an awaiting future. The thread that releases the units
/// runs the callback.
pub(super) struct CallbackRequest(Mutex<Option<(Acquire, Then)>>);

/// The callback of a request.
pub(super) type Then = Box<dyn FnOnce(Grant) + Send>;

impl CallbackRequest {
    /// Queues a request or serves it at once.
    pub(super) fn begin(request: Acquire, then: Then) {
        Arc::new(Self(Mutex::new(Some((request, then))))).proceed();
    }

    fn proceed(self: Arc<Self>) {
        let waker = Waker::from(self.clone());
        let served = {
            let mut awaited = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let Some((request, _)) = &mut *awaited else { return };
            match Pin::new(request).poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(grant) => awaited.take().map(|(_, then)| (then, grant)),
                Poll::Pending => None,
            }
        };
        if let Some((then, grant)) = served {
            then(grant);
        }
    }
}

impl Wake for CallbackRequest {
    fn wake(self: Arc<Self>) {
        self.proceed();
    }
}
