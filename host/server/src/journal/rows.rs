//! The rows that are read from a journal.

use super::ids::{CallKey, Cursor, EventId, SessionKey};
use super::record::{Body, Used};
use super::time::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// A committed event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// The number.
    pub id: EventId,
    /// The time of the event.
    pub time: Timestamp,
    /// The name, such as `tool.called`.
    pub name: Arc<str>,
    /// The session, if there is one.
    pub session_id: Option<Arc<str>>,
    /// The client that opened the session.
    pub client: Option<Arc<str>>,
    /// The call's id, if the event is about a call.
    pub call_id: Option<Arc<str>>,
    /// The call's number, if the event is about a call.
    pub call: Option<CallKey>,
    /// The event as one line of JSON, without a line end.
    pub line: Arc<str>,
}

/// A part of the events after a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Events {
    /// The events that pass the filter, oldest first.
    pub events: Vec<Arc<StoredEvent>>,
    /// The position after which to read next: everything up to it was looked at.
    pub scanned_to: EventId,
    /// If events after the given position were lost for the reader, because they are no longer kept
    /// or the position is not one of this journal: the first number that it did not miss.
    pub gap: Option<EventId>,
}

/// The state of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallState {
    /// It waits: for an answer, or for its turn after one.
    Waiting,
    /// It runs.
    Running,
    /// It succeeded.
    Succeeded,
    /// It failed, or was refused.
    Failed,
    /// It is not known how it ended, because the process ended before.
    Unknown,
}

impl CallState {
    /// All states.
    pub const ALL: [Self; 5] =
        [Self::Waiting, Self::Running, Self::Succeeded, Self::Failed, Self::Unknown];

    /// Returns the name of the state.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for CallState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that names no state of a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is no state of a call; the states are waiting, running, succeeded, failed and unknown"
)]
pub struct NoCallState;

impl FromStr for CallState {
    type Err = NoCallState;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or(NoCallState)
    }
}

/// A page of rows, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing<T> {
    /// The rows. There may be fewer than asked for, even none, before the last page: a page looks
    /// at a bounded number of rows.
    pub rows: Vec<T>,
    /// Where the next page begins. `None`: this is the last one.
    pub next: Option<Cursor>,
}

/// A call in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRow {
    /// The journal's number of the call.
    pub key: CallKey,
    /// The caller's id.
    pub id: String,
    /// The session, if there is one.
    pub session_id: Option<String>,
    /// The client that opened the session.
    pub client: Option<String>,
    /// How the client of the session names itself, if it does. Nothing verifies it.
    pub client_name: Option<String>,
    /// The turn, if there is one.
    pub turn_id: Option<String>,
    /// The tool's name, as requested.
    pub tool: String,
    /// The tool's class of side effects.
    pub class: Option<String>,
    /// The tool's plugin.
    pub plugin: Option<String>,
    /// The digest of the plugin.
    pub digest: Option<String>,
    /// The state.
    pub state: CallState,
    /// The class of the error of a failed call.
    pub error_class: Option<String>,
    /// The message of a failed call; the first 1,024 characters in a listing.
    pub message: Option<String>,
    /// When the journal has seen the call first.
    pub created: Timestamp,
    /// When the tool was about to run.
    pub started: Option<Timestamp>,
    /// When the call ended. `None`: it has not ended, or nobody knows when.
    pub ended: Option<Timestamp>,
    /// The run time, without the time in a queue or a confirmation.
    pub duration: Option<Duration>,
    /// The first 256 characters of the input, if it is kept.
    pub input_start: Option<String>,
}

/// A call with everything that is known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPage {
    /// The call, with its whole message.
    pub call: CallRow,
    /// The number of the call that made it, if a running tool did.
    pub parent: Option<CallKey>,
    /// The calls that it made, oldest first; 256 at most.
    pub nested: Vec<CallRow>,
    /// The input. `None`: it is not known yet, or not at all.
    pub input: Option<Body>,
    /// The output, or the output before the failure. `None`: the call has not ended.
    pub output: Option<Body>,
    /// The blocks of the output that are no text; 64 at most.
    pub other_blocks: Vec<OtherBlock>,
    /// The changed files. Each is a string, or an object with `path` and `bytes`, see
    /// [`ToolResult::to_json`](palisade::ToolResult::to_json).
    pub files_modified: Vec<Value>,
    /// The number of changed files that are not listed.
    pub files_unlisted: u64,
    /// The executed command or its digest, if there is one.
    pub command_executed: Option<String>,
    /// The resources that an ended call has used.
    pub used: Option<Used>,
    /// Its questions, oldest first; 32 at most.
    pub confirmations: Vec<ConfirmationRow>,
    /// Its first events; 256 and 1 MiB at most.
    pub events: Vec<Arc<StoredEvent>>,
    /// Whether there are more events, from [`Journal::events_after`](super::Journal::events_after)
    /// with the call's number.
    pub more_events: More,
}

/// A block of an output that is no text. The journal describes it only.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct OtherBlock {
    /// `image`, `audio` or `resource`.
    pub kind: String,
    /// The media type.
    pub media_type: String,
    /// The length in bytes.
    pub bytes: u64,
}

/// Whether there is more than was returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum More {
    /// There may be.
    Yes,
    /// This is all.
    No,
}

/// A question in the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfirmationRow {
    /// The question's id.
    pub request_id: String,
    /// The number of the call.
    pub call: CallKey,
    /// The id of the call.
    pub call_id: String,
    /// The session, if there is one.
    pub session_id: Option<String>,
    /// The turn, if there is one.
    pub turn_id: Option<String>,
    /// The tool's name.
    pub tool: String,
    /// The tool's class of side effects.
    pub class: Option<String>,
    /// The input, escaped and shortened in the middle.
    pub input_summary: String,
    /// The paths that the call would change.
    pub projected_modifications: Vec<String>,
    /// When the question was asked.
    pub asked: Timestamp,
    /// When it expires.
    pub expires: Timestamp,
    /// When it was settled. `None`: it is open.
    pub resolved: Option<Timestamp>,
    /// The decision, as the event names it; `unknown` if the process ended before.
    pub resolution: Option<String>,
    /// The name of the answerer, if it is known.
    pub answered_by: Option<String>,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The journal's number of the session.
    pub key: SessionKey,
    /// The session's id.
    pub id: String,
    /// The client that opened it.
    pub client: Option<String>,
    /// How the client names itself.
    pub title: Option<String>,
    /// The way by which its calls come. [`UNKNOWN`] for a session that only its calls tell of.
    pub origin: String,
    /// The revision of the client's protocol, if it has any.
    pub protocol: Option<String>,
    /// The directory that its calls see.
    pub workspace: Option<String>,
    /// When it was opened.
    pub opened: Timestamp,
    /// When it was closed, or found to be of a process that has ended. `None`: it is open.
    pub closed: Option<Timestamp>,
    /// The number of its calls, including those that are no longer kept.
    pub calls: u64,
    /// When its last call was seen first.
    pub last_call: Option<Timestamp>,
}

/// The origin of a session that only its calls tell of.
pub const UNKNOWN: &str = "unknown";

/// A plugin that was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginRow {
    /// The plugin's name.
    pub name: String,
    /// The digest of its bytes.
    pub digest: String,
    /// The names of its tools.
    pub tools: Vec<String>,
    /// When it was loaded first.
    pub first_seen: Timestamp,
    /// When it was loaded last.
    pub last_seen: Timestamp,
}

/// The calls of a time, by tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The beginning of the time: the requested one, or a later one if there are too many calls to
    /// look at.
    pub since: Timestamp,
    /// The tools in alphabetical order.
    pub tools: Vec<ToolSummary>,
}

/// The calls of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolSummary {
    /// The tool's name, as requested.
    pub tool: String,
    /// The number of calls in each state.
    pub states: BTreeMap<CallState, u64>,
    /// The number of failed calls by class of error.
    pub errors: BTreeMap<String, u64>,
    /// The run time of calls that ran and ended. `None` if there are none.
    pub latency: Option<Latency>,
}

/// The distribution of run times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Latency {
    /// Half of the calls took no longer.
    pub p50: Duration,
    /// Nine of ten calls took no longer.
    pub p90: Duration,
    /// 99 of 100 calls took no longer.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

/// The health of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Whether records are stored.
    pub state: HealthState,
    /// The number of events that were lost since the journal was opened.
    pub lost_events: u64,
    /// The number of other records that were lost, wholly or in part.
    pub lost_records: u64,
    /// The number of records that wait to be written.
    pub waiting: usize,
    /// The used bytes of the file.
    pub bytes: u64,
}

/// Whether a journal stores records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HealthState {
    /// It does.
    Storing,
    /// The last write failed, and records are lost until one succeeds.
    Failing {
        /// The time of the first failure.
        since: Timestamp,
        /// The reason.
        reason: Arc<str>,
    },
    /// It was closed, or opened for reading only.
    Closed,
}
