//! What happens around calls, for whoever subscribes.

use crate::execution::{Progress, Severity, Sink};
use crate::tool::{CallId, ErrorClass, SideEffects};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Something that happened. Exactly one of the terminal events (`Completed`, `Failed`, `InputInvalid`) ends each call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// `tool.called`: the checks are passed and the tool is about to run.
    Called(Subject),
    /// `tool.completed`: the tool ran to its end.
    Completed(Subject, Completion),
    /// `tool.failed`: it did not, or was never started.
    Failed(Subject, ErrorClass, String),
    /// `tool.input_invalid`: the input broke the schema.
    InputInvalid(Subject, String),
    /// `tool.output_delta`: a part of the output.
    OutputDelta(Subject, String),
    /// `tool.progress`: how far the tool has come.
    Progress(Subject, Progress),
    /// `tool.log`: a message of the tool.
    Log(Subject, Severity, String),
}

/// How a tool that ran to its end did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Whether it reports success.
    pub success: bool,
    /// How long it ran.
    pub duration: Duration,
}

/// The call that an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The call.
    pub call_id: CallId,
    /// The conversation, if there is one.
    pub session_id: Option<Arc<str>>,
    /// The tool's name, as asked for.
    pub tool: Arc<str>,
    /// The declared class; unknown where the tool is.
    pub side_effects: Option<SideEffects>,
}

impl Event {
    /// The event's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Called(_) => "tool.called",
            Self::Completed(..) => "tool.completed",
            Self::Failed(..) => "tool.failed",
            Self::InputInvalid(..) => "tool.input_invalid",
            Self::OutputDelta(..) => "tool.output_delta",
            Self::Progress(..) => "tool.progress",
            Self::Log(..) => "tool.log",
        }
    }

    /// The call that it is about.
    #[must_use]
    pub fn subject(&self) -> &Subject {
        match self {
            Self::Called(subject)
            | Self::Completed(subject, _)
            | Self::Failed(subject, ..)
            | Self::InputInvalid(subject, _)
            | Self::OutputDelta(subject, _)
            | Self::Progress(subject, _)
            | Self::Log(subject, ..) => subject,
        }
    }

    /// Whether it ends its call.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed(..) | Self::Failed(..) | Self::InputInvalid(..))
    }
}

/// Whoever wants to know. Called on the thread of the call: it must return at once.
pub trait Subscriber: Send + Sync {
    /// Takes one event.
    fn receive(&self, event: &Event);
}

/// All subscribers of a host. With none, no event is ever built.
#[derive(Clone, Default)]
pub struct Events(Arc<[Arc<dyn Subscriber>]>);

impl Events {
    /// Sends to these subscribers.
    #[must_use]
    pub fn new(subscribers: Vec<Arc<dyn Subscriber>>) -> Self {
        Self(subscribers.into())
    }

    /// Whether anybody listens.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        !self.0.is_empty()
    }

    /// Builds and sends an event if anybody listens.
    pub fn emit(&self, event: impl FnOnce() -> Event) {
        if self.is_watched() {
            let event = event();
            self.0.iter().for_each(|subscriber| deliver(&**subscriber, &event));
        }
    }
}

/// A subscriber that panics misses its event; neither the call nor the other subscribers notice.
fn deliver(subscriber: &dyn Subscriber, event: &Event) {
    if catch_unwind(AssertUnwindSafe(|| subscriber.receive(event))).is_err() {
        tracing::error!(event = event.name(), "a subscriber panicked");
    }
}

/// Turns what a running tool says into events.
pub(crate) struct EventSink {
    pub(crate) events: Events,
    pub(crate) subject: Subject,
}

impl Sink for EventSink {
    fn log(&self, severity: Severity, message: &str) {
        self.events.emit(|| Event::Log(self.subject.clone(), severity, message.to_owned()));
    }

    fn progress(&self, progress: Progress) {
        self.events.emit(|| Event::Progress(self.subject.clone(), progress));
    }

    fn emit(&self, chunk: &str) {
        self.events.emit(|| Event::OutputDelta(self.subject.clone(), chunk.to_owned()));
    }
}
