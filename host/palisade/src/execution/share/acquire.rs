//! Requests that wait for units of a pool.

use super::{Grant, Share, wake};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// A request for units. It enters the queue at its first poll and leaves it on drop.
#[derive(Debug)]
#[must_use = "a request that is not awaited takes nothing"]
pub(crate) struct Taking {
    share: Arc<Share>,
    units: u64,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    Queued(u64),
}

impl Taking {
    pub(super) fn new(share: Arc<Share>, units: u64) -> Self {
        Self { share, units, place: Place::Outside }
    }

    fn grant(&self, lease: Option<u64>) -> Grant {
        Grant { share: self.share.clone(), units: self.units, lease }
    }
}

impl Future for Taking {
    type Output = Grant;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Grant> {
        let share = self.share.clone();
        let mut book = share.pool.book();
        match self.place {
            Place::Outside => {
                if let Ok(lease) = book.take(share.index, self.units) {
                    return Poll::Ready(self.grant(lease));
                }
                self.place = Place::Queued(book.queue(share.index, self.units, cx.waker()));
                share.waiting.fetch_add(1, Ordering::Relaxed);
                Poll::Pending
            }
            Place::Queued(id) => match book.granted(share.index, id, cx.waker()) {
                Some(lease) => {
                    self.place = Place::Outside;
                    share.waiting.fetch_sub(1, Ordering::Relaxed);
                    Poll::Ready(self.grant(lease))
                }
                None => Poll::Pending,
            },
        }
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        let Place::Queued(id) = self.place else { return };
        self.share.waiting.fetch_sub(1, Ordering::Relaxed);
        let woken = {
            let mut book = self.share.pool.book();
            book.withdraw(self.share.index, id, self.units);
            book.serve()
        };
        wake(woken);
    }
}

/// A request with a callback in place of an awaiting future. The thread that releases the units
/// runs the callback.
pub(super) struct Awaited(Mutex<Option<(Taking, Then)>>);

/// The callback of a request.
pub(super) type Then = Box<dyn FnOnce(Grant) + Send>;

impl Awaited {
    /// Queues a request or serves it at once.
    pub(super) fn begin(taking: Taking, then: Then) {
        Arc::new(Self(Mutex::new(Some((taking, then))))).proceed();
    }

    fn proceed(self: Arc<Self>) {
        let waker = Waker::from(self.clone());
        let served = {
            let mut awaited = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let Some((taking, _)) = &mut *awaited else { return };
            match Pin::new(taking).poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(grant) => awaited.take().map(|(_, then)| (then, grant)),
                Poll::Pending => None,
            }
        };
        if let Some((then, grant)) = served {
            then(grant);
        }
    }
}

impl Wake for Awaited {
    fn wake(self: Arc<Self>) {
        self.proceed();
    }
}
