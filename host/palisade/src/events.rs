//! Events about calls and plugins, for subscribers.

mod effects;
mod lines;
mod payload;
mod queue_limits;
mod sink;
mod stream;
mod subscribe;

pub use effects::Effects;
pub use lines::{JsonLines, LinesError, WAITING_BYTES, WAITING_LINES};
pub use stream::{EventStream, STREAM_BYTES, STREAM_EVENTS};
pub use subscribe::{Events, Subscriber};

pub(crate) use sink::{CallSink, last};

use crate::confirm::{ConfirmationRequest, RequestId, Resolution};
use crate::execution::{Progress, Severity};
use crate::tool::{CallId, Digest, ErrorClass, SideEffects};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The version of the event format: `v` in every line.
pub const VERSION: u8 = 1;

/// An event with its sequence number and time.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    /// The sequence number, incremented for each event of a host. Concurrent calls may deliver
    /// events slightly out of order; this number restores it.
    pub seq: u64,
    /// The time of the event.
    pub time: SystemTime,
    /// The event.
    pub event: Event,
}

/// An event. Exactly one terminal event (`Completed`, `Failed`, `InputInvalid`) ends each call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// `tool.called`: the checks passed and the tool is about to run.
    Called(Subject),
    /// `tool.completed`: the tool ran to completion.
    Completed(Subject, Completion),
    /// `tool.failed`: the tool failed or was never started.
    Failed(Subject, Failure),
    /// `tool.input_invalid`: the input does not match the schema.
    InputInvalid(Subject, String),
    /// `tool.confirmation_requested`: the user is asked and the call waits.
    ConfirmationRequested(Subject, ConfirmationRequest),
    /// `tool.confirmation_resolved`: the confirmation is resolved.
    ConfirmationResolved(Subject, RequestId, Resolution),
    /// `tool.output_delta`: a part of the output.
    OutputDelta(Subject, String),
    /// `tool.progress`: the tool's progress.
    Progress(Subject, Progress),
    /// `tool.log`: a log message of the tool.
    Log(Subject, Severity, String),
    /// `plugin.loaded`: the plugin's tools can be called.
    PluginLoaded(PluginFacts),
    /// `plugin.rejected`: a file whose tools are rejected. If tools of an earlier version stay, the
    /// reason says so.
    PluginRejected {
        /// The file.
        file: String,
        /// The reason for the rejection.
        reason: String,
    },
    /// `plugin.changed`: the plugin's tools run new code from now on.
    PluginChanged(PluginFacts),
    /// `plugin.removed`: the plugin's tools are removed; their running calls continue.
    PluginRemoved(PluginFacts),
}

/// A loaded plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginFacts {
    /// The plugin's name.
    pub plugin: Arc<str>,
    /// The SHA-256 of the plugin's bytes.
    pub digest: Digest,
    /// The names of the plugin's tools.
    pub tools: Vec<String>,
    /// The grants of the plugin beyond the classes of its tools, one on each line.
    pub grants: Vec<String>,
}

/// The outcome of a tool that ran to completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// True if the tool reports success.
    pub success: bool,
    /// The run time.
    pub duration: Duration,
    /// The effects of the call besides its output.
    pub effects: Effects,
}

/// The failure of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The error's class.
    pub class: ErrorClass,
    /// The reason, followed by the advice for the operator as
    /// [`ToolError::message`](crate::ToolError::message) has it: for those who run the program, and
    /// not for a model.
    pub message: String,
    /// The output before the failure.
    pub partial_output: Option<String>,
    /// The run time; zero for a call that never started.
    pub duration: Duration,
    /// The effects of the call besides its output.
    pub effects: Effects,
}

/// The call that an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The call's id.
    pub call_id: CallId,
    /// The call that makes this one, if a running tool does.
    pub parent: Option<CallId>,
    /// The id of the conversation, if there is one.
    pub session_id: Option<Arc<str>>,
    /// The id of the turn, if there is one.
    pub turn_id: Option<Arc<str>>,
    /// The tool's name, as requested.
    pub tool: Arc<str>,
    /// The declared class, or `None` for an unknown tool.
    pub side_effects: Option<SideEffects>,
}

impl Event {
    /// Returns the event's name.
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

    /// Returns the call that the event is about, or `None` for plugin events.
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
            Self::PluginLoaded(_)
            | Self::PluginRejected { .. }
            | Self::PluginChanged(_)
            | Self::PluginRemoved(_) => None,
        }
    }

    /// Returns true if a call may emit any number of these events. They are the first to be dropped
    /// under backpressure.
    #[must_use]
    pub fn is_chatter(&self) -> bool {
        matches!(self, Self::OutputDelta(..) | Self::Progress(..) | Self::Log(..))
    }

    /// Returns true if the event ends its call.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed(..) | Self::Failed(..) | Self::InputInvalid(..))
    }
}
