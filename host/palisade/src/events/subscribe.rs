//! Subscribers and the delivery of events to them.

use super::{Envelope, Event, EventStream};
use arc_swap::ArcSwap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::SystemTime;

/// A receiver of events.
pub trait Subscriber: Send + Sync {
    /// Receives one event, on the thread of the call. It must return at once.
    fn receive(&self, event: &Envelope);
}

/// The event bus of a host. Without subscribers no event is built. Clones share it.
#[derive(Clone, Default)]
pub struct Events(Arc<Bus>);

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events")
            .field("subscribers", &self.0.subscribers.load().len())
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Bus {
    subscribers: ArcSwap<Vec<Arc<dyn Subscriber>>>,
    sent: AtomicU64,
}

/// The event bus, as long as its host or a clone of the bus exists.
pub(super) struct EventsOfHost(Weak<Bus>);

impl EventsOfHost {
    pub(super) fn upgrade(&self) -> Option<Events> {
        self.0.upgrade().map(Events)
    }
}

impl Events {
    /// Creates a bus with these subscribers.
    #[must_use]
    pub fn new(subscribers: Vec<Arc<dyn Subscriber>>) -> Self {
        Self(Arc::new(Bus {
            subscribers: ArcSwap::from_pointee(subscribers),
            sent: AtomicU64::new(0),
        }))
    }

    /// Adds a subscriber.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "it is kept; a swap that has to be tried again takes one more clone"
    )]
    pub fn subscribe(&self, subscriber: Arc<dyn Subscriber>) {
        self.0
            .subscribers
            .rcu(|old| old.iter().cloned().chain([subscriber.clone()]).collect::<Vec<_>>());
    }

    /// Removes a subscriber.
    pub fn unsubscribe(&self, subscriber: &Arc<dyn Subscriber>) {
        let others = |old: &Arc<Vec<Arc<dyn Subscriber>>>| -> Vec<_> {
            old.iter().filter(|known| !Arc::ptr_eq(known, subscriber)).cloned().collect()
        };
        self.0.subscribers.rcu(others);
    }

    /// Returns a stream of all events from now on. It ends when the host and all clones of this bus
    /// are gone.
    #[must_use]
    pub fn stream(&self) -> EventStream {
        EventStream::new(self)
    }

    pub(super) fn downgrade(&self) -> EventsOfHost {
        EventsOfHost(Arc::downgrade(&self.0))
    }

    /// Returns true if there are subscribers.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        !self.0.subscribers.load().is_empty()
    }

    /// Builds and sends an event if there are subscribers.
    pub fn emit(&self, event: impl FnOnce() -> Event) {
        let subscribers = self.0.subscribers.load();
        if !subscribers.is_empty() {
            let seq = self.0.sent.fetch_add(1, Ordering::Relaxed);
            let envelope = Envelope { seq, time: SystemTime::now(), event: event() };
            subscribers.iter().for_each(|subscriber| deliver(&**subscriber, &envelope));
        }
    }
}

/// Delivers an event. A subscriber's panic affects neither the call nor the other subscribers.
fn deliver(subscriber: &dyn Subscriber, event: &Envelope) {
    if catch_unwind(AssertUnwindSafe(|| subscriber.receive(event))).is_err() {
        tracing::error!(event = event.event.name(), "a subscriber panicked");
    }
}
