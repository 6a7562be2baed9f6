//! Events as an asynchronous stream, for slow readers.

use super::queue_limits::{QueueLimits, QueuedEvent};
use super::subscribe::EventsOfHost;
use super::{Envelope, Events, Subscriber};
use futures_core::Stream;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The queue length at which new events are dropped: the start and end of some 250 calls.
pub const STREAM_EVENTS: usize = 1024;
/// The memory limit of the queued events, in bytes. A failure may take 128 KiB and an output chunk
/// 1 MiB.
pub const STREAM_BYTES: usize = 4 << 20;

/// A stream of events. A reader that falls behind by more than [`STREAM_EVENTS`] or
/// [`STREAM_BYTES`] loses events, and [`missed`](Self::missed) counts them: no call ever waits for
/// a reader. It ends, once it is read, when its host and every clone of the host's event bus are
/// gone.
pub struct EventStream {
    queue: Receiver<QueuedEvent>,
    /// Weak, as the bus: the sender of the queue belongs to the bus alone, and the queue ends with
    /// it.
    feed: Weak<Feed>,
    events: EventsOfHost,
    missed: Arc<AtomicU64>,
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("missed", &self.missed()).finish_non_exhaustive()
    }
}

struct Feed {
    queue: Sender<QueuedEvent>,
    limits: Arc<QueueLimits>,
    missed: Arc<AtomicU64>,
}

impl EventStream {
    pub(super) fn new(events: &Events) -> Self {
        let (send, queue) = channel(STREAM_EVENTS);
        let missed = Arc::new(AtomicU64::new(0));
        let feed = Arc::new(Feed {
            queue: send,
            limits: QueueLimits::new(STREAM_EVENTS, STREAM_BYTES),
            missed: missed.clone(),
        });
        let stream =
            Self { queue, feed: Arc::downgrade(&feed), events: events.downgrade(), missed };
        events.subscribe(feed);
        stream
    }

    /// Waits for the next event. `None` means that no event can follow.
    pub async fn next(&mut self) -> Option<Envelope> {
        self.queue.recv().await.map(|waiting| waiting.event)
    }

    /// Returns the next event if one is queued.
    pub fn try_next(&mut self) -> Option<Envelope> {
        self.queue.try_recv().ok().map(|waiting| waiting.event)
    }

    /// Returns the number of events that were dropped because the reader was too slow.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

impl Stream for EventStream {
    type Item = Envelope;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Envelope>> {
        self.queue.poll_recv(cx).map(|next| next.map(|waiting| waiting.event))
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        if let (Some(feed), Some(events)) = (self.feed.upgrade(), self.events.upgrade()) {
            let feed: Arc<dyn Subscriber> = feed;
            events.unsubscribe(&feed);
        }
    }
}

impl Subscriber for Feed {
    fn receive(&self, event: &Envelope) {
        if self.limits.admit(event).is_none_or(|waiting| self.queue.try_send(waiting).is_err()) {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Event, Subject};
    use crate::tool::CallId;

    #[tokio::test]
    async fn stream_ends_after_the_last_event_of_a_bus_that_is_gone() {
        let events = Events::default();
        let (mut stream, other) = (events.stream(), events.stream());
        drop(other);
        events.emit(|| Event::PluginRejected { file: "f".into(), reason: "r".into() });
        drop(events);
        assert!(stream.next().await.is_some(), "what was sent is read first");
        assert!(stream.next().await.is_none());
        assert!(stream.try_next().is_none() && stream.missed() == 0);
    }

    #[test]
    fn unread_stream_is_bounded_in_bytes() {
        let events = Events::default();
        let mut stream = events.stream();
        let subject = Subject {
            call_id: CallId::new("c"),
            parent: None,
            session_id: None,
            turn_id: None,
            tool: "t".into(),
            side_effects: None,
        };
        let chunk = "x".repeat(256 << 10);
        for _ in 0..100 {
            events.emit(|| Event::OutputDelta(subject.clone(), chunk.clone()));
        }
        events.emit(|| Event::InputInvalid(subject.clone(), "the end".to_owned()));
        let kept: Vec<_> = std::iter::from_fn(|| stream.try_next()).collect();
        assert_eq!(
            (kept.len(), stream.missed()),
            (8, 93),
            "half of the room is for talk, and the end has its place"
        );
        assert!(kept.last().is_some_and(|event| event.event.is_terminal()));
        events.emit(|| Event::OutputDelta(subject.clone(), chunk.clone()));
        assert!(stream.try_next().is_some(), "what was read makes room");
    }
}
