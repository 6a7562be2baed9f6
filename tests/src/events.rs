//! A subscriber that keeps what it hears, and can act on it at once.

use std::sync::{Arc, Mutex, PoisonError};

use palisade::{Event, Subscriber};

/// What happens at each event.
type Reaction = Arc<dyn Fn(&Event) + Send + Sync>;

/// Keeps every event.
#[derive(Clone, Default)]
pub struct Recorder {
    heard: Arc<Mutex<Vec<Event>>>,
    react: Option<Reaction>,
}

impl Recorder {
    /// Does something at each event, on the thread of the call.
    #[must_use]
    pub fn reacting(react: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self { heard: Arc::default(), react: Some(Arc::new(react)) }
    }

    /// What was heard so far.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The names of what was heard.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.events().iter().map(Event::name).collect()
    }

    /// The events that end a call.
    #[must_use]
    pub fn terminal(&self) -> Vec<Event> {
        self.events().into_iter().filter(Event::is_terminal).collect()
    }
}

impl Subscriber for Recorder {
    fn receive(&self, event: &Event) {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone());
        if let Some(react) = &self.react {
            react(event);
        }
    }
}
