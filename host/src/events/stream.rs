//! Events as a stream, for a reader that takes its time.

use super::{Envelope, Events, Subscriber};
use futures_core::Stream;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Events that wait for a slow reader, before the newest are dropped: some 250 calls with their beginnings and ends.
pub const STREAM_EVENTS: usize = 1024;

/// Events, one after the other. A reader that falls behind by more than [`STREAM_EVENTS`] misses some, and [`missed`](Self::missed) says how many: no call ever
/// waits for a reader.
pub struct EventStream {
    queue: Receiver<Envelope>,
    feed: Arc<Feed>,
    events: Events,
}

struct Feed {
    queue: Sender<Envelope>,
    missed: AtomicU64,
}

impl EventStream {
    pub(super) fn new(events: &Events) -> Self {
        let (send, queue) = channel(STREAM_EVENTS);
        let feed = Arc::new(Feed { queue: send, missed: AtomicU64::new(0) });
        events.subscribe(feed.clone());
        Self { queue, feed, events: events.clone() }
    }

    /// The next event, once there is one.
    pub async fn next(&mut self) -> Option<Envelope> {
        self.queue.recv().await
    }

    /// The next event, if there is one already.
    pub fn try_next(&mut self) -> Option<Envelope> {
        self.queue.try_recv().ok()
    }

    /// How many events found no place, because they were not read in time.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.feed.missed.load(Ordering::Relaxed)
    }
}

impl Stream for EventStream {
    type Item = Envelope;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Envelope>> {
        self.queue.poll_recv(cx)
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        let feed: Arc<dyn Subscriber> = self.feed.clone();
        self.events.unsubscribe(&feed);
    }
}

impl Subscriber for Feed {
    fn receive(&self, event: &Envelope) {
        // Half of the places are kept for the beginnings and ends of calls: no tool can push those out by talking.
        let has_place = !event.event.is_chatter() || self.queue.capacity() > STREAM_EVENTS / 2;
        if !has_place || self.queue.try_send(event.clone()).is_err() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}
