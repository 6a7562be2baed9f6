//! What happens around calls and plugins, for whoever subscribes.

mod lines;
mod payload;
mod room;
mod sink;
mod stream;
mod subscribe;

pub use lines::{JsonLines, LinesError, WAITING_BYTES, WAITING_LINES};
pub use stream::{EventStream, STREAM_BYTES, STREAM_EVENTS};
pub use subscribe::{Events, Subscriber};

pub(crate) use sink::{CallSink, last};

use crate::confirm::{ConfirmationRequest, Decision, RequestId};
use crate::execution::{Progress, Severity};
use crate::tool::{CallId, Digest, ErrorClass, SideEffects};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The version of the form in which events are written: `v` in every line.
pub const VERSION: u8 = 1;

/// An event with its place in the host's sequence.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    /// Counts up by one for each event of a host. Calls that run at once may deliver theirs a little out of order; this number tells.
    pub seq: u64,
    /// When it happened.
    pub time: SystemTime,
    /// What happened.
    pub event: Event,
}

/// Something that happened. Exactly one of the terminal events (`Completed`, `Failed`, `InputInvalid`) ends each call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// `tool.called`: the checks are passed and the tool is about to run.
    Called(Subject),
    /// `tool.completed`: the tool ran to its end.
    Completed(Subject, Completion),
    /// `tool.failed`: it did not, or was never started.
    Failed(Subject, Failure),
    /// `tool.input_invalid`: the input broke the schema.
    InputInvalid(Subject, String),
    /// `tool.confirmation_requested`: a person is asked, and the call waits.
    ConfirmationRequested(Subject, ConfirmationRequest),
    /// `tool.confirmation_resolved`: the question is settled, one way or another.
    ConfirmationResolved(Subject, RequestId, Decision),
    /// `tool.output_delta`: a part of the output.
    OutputDelta(Subject, String),
    /// `tool.progress`: how far the tool has come.
    Progress(Subject, Progress),
    /// `tool.log`: a message of the tool.
    Log(Subject, Severity, String),
    /// `plugin.loaded`: its tools can be called.
    PluginLoaded(PluginFacts),
    /// `plugin.rejected`: a file whose tools are not taken, and why. Where others stay that it had before, the reason says so.
    PluginRejected {
        /// The file.
        file: String,
        /// Why it was rejected.
        reason: String,
    },
    /// `plugin.changed`: other code stands behind the tools of a plugin from now on.
    PluginChanged(PluginFacts),
    /// `plugin.removed`: its tools are gone; calls of them that run go on.
    PluginRemoved(PluginFacts),
}

/// A plugin that is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginFacts {
    /// Its name.
    pub plugin: Arc<str>,
    /// The SHA-256 of its bytes.
    pub digest: Digest,
    /// The names of its tools.
    pub tools: Vec<String>,
}

/// How a tool that ran to its end did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Whether it reports success.
    pub success: bool,
    /// How long it ran.
    pub duration: Duration,
}

/// How a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The class of the error.
    pub class: ErrorClass,
    /// The message that the model reads.
    pub message: String,
    /// What the tool had said until then.
    pub partial_output: Option<String>,
    /// How long it ran; zero for a call that never started.
    pub duration: Duration,
}

/// The call that an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The call.
    pub call_id: CallId,
    /// The conversation, if there is one.
    pub session_id: Option<Arc<str>>,
    /// The turn of the conversation, if there is one.
    pub turn_id: Option<Arc<str>>,
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
            Self::ConfirmationRequested(..) => "tool.confirmation_requested",
            Self::ConfirmationResolved(..) => "tool.confirmation_resolved",
            Self::OutputDelta(..) => "tool.output_delta",
            Self::Progress(..) => "tool.progress",
            Self::Log(..) => "tool.log",
            Self::PluginLoaded(_) => "plugin.loaded",
            Self::PluginRejected { .. } => "plugin.rejected",
            Self::PluginChanged(_) => "plugin.changed",
            Self::PluginRemoved(_) => "plugin.removed",
        }
    }

    /// The call that it is about; `None` for events of plugins.
    #[must_use]
    pub fn subject(&self) -> Option<&Subject> {
        match self {
            Self::Called(subject)
            | Self::Completed(subject, _)
            | Self::Failed(subject, _)
            | Self::InputInvalid(subject, _)
            | Self::ConfirmationRequested(subject, _)
            | Self::ConfirmationResolved(subject, ..)
            | Self::OutputDelta(subject, _)
            | Self::Progress(subject, _)
            | Self::Log(subject, ..) => Some(subject),
            Self::PluginLoaded(_) | Self::PluginRejected { .. } | Self::PluginChanged(_) | Self::PluginRemoved(_) => {
                None
            }
        }
    }

    /// Whether there may be any number of it in one call. Where not everything finds a place, these are left out first.
    #[must_use]
    pub fn is_chatter(&self) -> bool {
        matches!(self, Self::OutputDelta(..) | Self::Progress(..) | Self::Log(..))
    }

    /// Whether it ends its call.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed(..) | Self::Failed(..) | Self::InputInvalid(..))
    }
}
