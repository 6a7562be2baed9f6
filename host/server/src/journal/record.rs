//! The records that are written into a journal.

use super::ids::CallKey;
use super::time::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// An event of a host or of a server. It gets its number when it is committed.
    Event(NewEvent),
    /// A session was opened.
    SessionOpened(Box<SessionOpened>),
    /// A session was closed.
    SessionClosed {
        /// The session's id.
        id: Arc<str>,
        /// The time.
        at: Timestamp,
    },
    /// A call is about to run.
    CallStarted(Box<CallStarted>),
    /// A call has ended, whether it ran or not.
    CallEnded(Box<CallEnded>),
    /// A user is asked about a call.
    ConfirmationRequested(Box<ConfirmationRequested>),
    /// A question is settled.
    ConfirmationResolved(ConfirmationResolved),
    /// A plugin was loaded.
    PluginSeen(PluginSeen),
}

/// Whether an event may be dropped first under load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Importance {
    /// A call can cause any number of these events. They may fill half of the queue.
    Chatter,
    /// Any other event.
    Ordinary,
}

/// An event that has no number yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// The time of the event.
    pub time: Timestamp,
    /// The name, such as `tool.called`.
    pub name: Arc<str>,
    /// The session, if there is one.
    pub session_id: Option<Arc<str>>,
    /// The call's id, if the event is about a call.
    pub call_id: Option<Arc<str>>,
    /// The call's number, if the event is about a call.
    pub call: Option<CallKey>,
    /// Whether the event may be dropped first.
    pub importance: Importance,
    /// The event as one line of JSON, without a line end.
    pub line: Arc<str>,
}

/// A session that was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOpened {
    /// The session's id.
    pub id: Arc<str>,
    /// The client that opened the session and sees its calls. `None`: only operators see them.
    pub client: Option<Arc<str>>,
    /// How the client names itself, such as the name and version that an MCP client sends.
    pub title: Option<Arc<str>>,
    /// The way by which its calls come: `http`, `mcp-http` or `mcp-stdio`.
    pub origin: Arc<str>,
    /// The revision of the client's protocol, if it has any.
    pub protocol: Option<Arc<str>>,
    /// The directory that its calls see.
    pub workspace: Option<Arc<str>>,
    /// The time.
    pub at: Timestamp,
}

/// The facts that identify a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFacts {
    /// The number, from [`Journal::next_call`](super::Journal::next_call).
    pub key: CallKey,
    /// The caller's id.
    pub id: Arc<str>,
    /// The session, if there is one.
    pub session_id: Option<Arc<str>>,
    /// The turn, if there is one.
    pub turn_id: Option<Arc<str>>,
    /// The call that makes this one, if a running tool does.
    pub parent: Option<CallKey>,
    /// The tool's name, as requested.
    pub tool: Arc<str>,
    /// The tool's class of side effects. `None` for an unknown tool.
    pub class: Option<&'static str>,
    /// The tool's plugin. `None` for a native or unknown tool.
    pub plugin: Option<Arc<str>>,
    /// The digest of the plugin.
    pub digest: Option<Arc<str>>,
}

/// A text that may be too long to be kept, or too private.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Body {
    /// The text or its beginning. `None`: it is not kept.
    pub text: Option<Arc<str>>,
    /// The length of the whole text in bytes.
    pub length: u64,
    /// The digest of the whole text of an input, unless all of it is kept.
    pub digest: Option<Arc<str>>,
}

/// A call that is about to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallStarted {
    /// The call.
    pub call: CallFacts,
    /// The input as JSON text.
    pub input: Body,
    /// The time.
    pub at: Timestamp,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The tool succeeded.
    Succeeded,
    /// The call failed, or was refused.
    Failed {
        /// The class of the error.
        class: &'static str,
        /// The message for the model.
        message: Arc<str>,
    },
}

/// The resources that a call used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// The guest's peak memory, in bytes.
    pub peak_memory_bytes: u64,
    /// Bytes read from the workspace.
    pub bytes_read: u64,
    /// Bytes written to the workspace.
    pub bytes_written: u64,
    /// Bytes of logs, progress, emitted text and standard output that were dropped.
    pub truncated_bytes: u64,
}

/// A call that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallEnded {
    /// The call.
    pub call: CallFacts,
    /// How it ended.
    pub outcome: Outcome,
    /// The input, if the start of the call has not recorded it.
    pub input: Option<Body>,
    /// The output, or the output before the failure.
    pub output: Body,
    /// The blocks of the output that are no text, as a JSON array of
    /// `{"kind", "media_type", "bytes"}`, if there are any.
    pub other_blocks: Option<Arc<str>>,
    /// The changed files as a JSON array, if there are any.
    pub files_modified: Option<Arc<str>>,
    /// The number of changed files that are not listed.
    pub files_unlisted: u64,
    /// The executed command or its digest, if there is one.
    pub command_executed: Option<Arc<str>>,
    /// The run time, without the time in a queue or a confirmation.
    pub duration: Duration,
    /// The resources.
    pub used: Used,
    /// The time of the end.
    pub at: Timestamp,
}

/// A question about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfirmationRequested {
    /// The call that waits.
    pub call: CallFacts,
    /// The question's id.
    pub request_id: Arc<str>,
    /// The input as JSON text, if it is known.
    pub input: Option<Body>,
    /// The input, escaped and shortened in the middle.
    pub input_summary: Arc<str>,
    /// The paths that the call would change, as a JSON array.
    pub projected_modifications: Arc<str>,
    /// The time.
    pub at: Timestamp,
    /// The time at which the question expires.
    pub expires: Timestamp,
}

/// A settled question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfirmationResolved {
    /// The question's id.
    pub request_id: Arc<str>,
    /// The decision, as the event names it.
    pub resolution: &'static str,
    /// The name of the answerer, if it is known.
    pub answered_by: Option<Arc<str>>,
    /// The time.
    pub at: Timestamp,
}

/// A loaded plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginSeen {
    /// The plugin's name.
    pub name: Arc<str>,
    /// The digest of its bytes.
    pub digest: Arc<str>,
    /// The names of its tools.
    pub tools: Vec<Arc<str>>,
    /// The time.
    pub at: Timestamp,
}

impl Record {
    /// Returns the session that the record belongs to.
    pub(super) fn session(&self) -> Option<Arc<str>> {
        match self {
            Self::Event(event) => event.session_id.clone(),
            Self::SessionOpened(session) => Some(session.id.clone()),
            Self::SessionClosed { id, .. } => Some(id.clone()),
            Self::CallStarted(start) => start.call.session_id.clone(),
            Self::CallEnded(end) => end.call.session_id.clone(),
            Self::ConfirmationRequested(question) => question.call.session_id.clone(),
            Self::ConfirmationResolved(_) | Self::PluginSeen(_) => None,
        }
    }

    /// Returns the memory of the record in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Event(event) => {
                    len(event.session_id.as_ref())
                        + len(event.call_id.as_ref())
                        + event.name.len()
                        + event.line.len()
                }
                Self::SessionOpened(session) => {
                    len(session.client.as_ref())
                        + len(session.title.as_ref())
                        + len(session.workspace.as_ref())
                        + len(session.protocol.as_ref())
                        + session.id.len()
                        + session.origin.len()
                }
                Self::SessionClosed { id, .. } => id.len(),
                Self::CallStarted(start) => {
                    size_of::<CallStarted>() + start.call.text_bytes() + start.input.text_bytes()
                }
                Self::CallEnded(end) => end.bytes(),
                Self::ConfirmationRequested(question) => {
                    size_of::<ConfirmationRequested>()
                        + question.call.text_bytes()
                        + question.input.as_ref().map_or(0, Body::text_bytes)
                        + question.request_id.len()
                        + question.input_summary.len()
                        + question.projected_modifications.len()
                }
                Self::ConfirmationResolved(settled) => {
                    settled.request_id.len() + len(settled.answered_by.as_ref())
                }
                Self::PluginSeen(plugin) => {
                    let tools = plugin.tools.iter().map(|tool| size_of::<Arc<str>>() + tool.len());
                    plugin.name.len() + plugin.digest.len() + tools.sum::<usize>()
                }
            }
    }
}

impl CallFacts {
    fn text_bytes(&self) -> usize {
        let given = [&self.session_id, &self.turn_id, &self.plugin, &self.digest];
        let given = given.into_iter().map(|text| len(text.as_ref()));
        self.id.len() + self.tool.len() + given.sum::<usize>()
    }
}

impl Body {
    fn text_bytes(&self) -> usize {
        len(self.text.as_ref()) + len(self.digest.as_ref())
    }
}

impl CallEnded {
    fn bytes(&self) -> usize {
        let message = match &self.outcome {
            Outcome::Succeeded => 0,
            Outcome::Failed { message, .. } => message.len(),
        };
        size_of::<Self>()
            + self.call.text_bytes()
            + self.input.as_ref().map_or(0, Body::text_bytes)
            + self.output.text_bytes()
            + len(self.other_blocks.as_ref())
            + message
            + len(self.files_modified.as_ref())
            + len(self.command_executed.as_ref())
    }
}

fn len(text: Option<&Arc<str>>) -> usize {
    text.map_or(0, |text| text.len())
}
