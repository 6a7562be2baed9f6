//! A tool call as requested by the caller.

use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Identifies one call in its result, its events and the log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallId(Arc<str>);

impl CallId {
    /// Takes the caller's id. An id that is longer than 256 bytes, or that could break a log line,
    /// is changed, and ends with a hash of the original.
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self(super::text::sanitize_id(id).into())
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if both are clones of one id, and so belong to one call. Equal ids can belong
    /// to different calls, because callers choose them.
    #[must_use]
    pub fn is_clone_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The input of a call: a value or unparsed JSON text.
#[derive(Debug, Clone)]
pub enum CallInput {
    /// A parsed value.
    Value(Value),
    /// JSON text. Dispatch parses it within bounds, so that a syntax error becomes a result like
    /// every other failure.
    Text(String),
}

impl From<Value> for CallInput {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

impl From<&str> for CallInput {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for CallInput {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// The meaning of `null` in an input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Nulls {
    /// `null` is a value like any other.
    #[default]
    AsGiven,
    /// `null` means an absent member, where the schema knows the member, does not require it and
    /// does not accept `null`.
    StandForAbsent,
}

/// One call of one tool.
///
/// ```
/// use palisade::{Call, json};
///
/// let call = Call::new("read_file", json!({"path": "README.md"})).with_id("tu_01");
/// assert_eq!(call.tool(), "read_file");
/// ```
#[derive(Debug, Clone)]
pub struct Call {
    pub(crate) id: CallId,
    pub(crate) tool: String,
    pub(crate) input: CallInput,
    pub(crate) nulls: Nulls,
    pub(crate) turn_id: Option<Arc<str>>,
    pub(crate) context: Value,
    pub(crate) metadata: Map<String, Value>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) cancel: CancellationToken,
}

impl Call {
    /// Creates a call of `tool` with `input` and a generated id.
    #[must_use]
    pub fn new(tool: impl Into<String>, input: impl Into<CallInput>) -> Self {
        Self::known_as(fresh_id(), tool, input, CancellationToken::new())
    }

    /// Returns the input.
    #[must_use]
    pub fn input(&self) -> &CallInput {
        &self.input
    }

    /// Returns the timeout of this call, if it has its own.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Creates a call with the caller's id and cancellation token.
    #[doc(hidden)]
    pub fn known_as(
        id: CallId,
        tool: impl Into<String>,
        input: impl Into<CallInput>,
        cancel: CancellationToken,
    ) -> Self {
        Self {
            id,
            tool: tool.into(),
            input: input.into(),
            nulls: Nulls::default(),
            turn_id: None,
            context: Value::Object(Map::new()),
            metadata: Map::new(),
            timeout: None,
            cancel,
        }
    }

    /// Sets the caller's own id.
    #[must_use]
    pub fn with_id(mut self, id: &str) -> Self {
        self.id = CallId::new(id);
        self
    }

    /// Treats a `null` member as absent where the tool's schema neither requires the member nor
    /// accepts `null`. Models that were given a strict schema, in which no member may be omitted,
    /// write `null` in its place.
    #[must_use]
    pub fn with_nulls_for_absent(mut self) -> Self {
        self.nulls = Nulls::StandForAbsent;
        self
    }

    /// Sets the id of the conversation turn that the call belongs to.
    #[must_use]
    pub fn with_turn(mut self, turn_id: &str) -> Self {
        self.turn_id = Some(super::text::elided(turn_id, 256).into());
        self
    }

    /// Passes an opaque value to the tool; the host does not read it.
    #[must_use]
    pub fn with_context(mut self, context: Value) -> Self {
        self.context = context;
        self
    }

    /// Passes a JSON object to the tool along with the input.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Map<String, Value>) -> Self {
        self.metadata = metadata;
        self
    }

    /// Sets the call's timeout in place of the tool's own, at most 600 s.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Ties the call to a token: cancelling the token ends the call, whether it is queued or
    /// running.
    #[must_use]
    pub fn with_cancellation(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// Returns the token that cancels the call.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Returns the call's id.
    #[must_use]
    pub fn id(&self) -> &CallId {
        &self.id
    }

    /// Returns the name of the requested tool, which need not exist.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }
}

/// Returns an id that is unique within the process. A caller with stricter needs sets its own.
fn fresh_id() -> CallId {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    CallId(format!("call_{}", NEXT.fetch_add(1, Ordering::Relaxed)).into())
}
