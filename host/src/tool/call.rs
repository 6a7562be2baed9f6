//! A call of a tool, as it is asked for.

use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Identifies one call in its result, its events and the log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallId(Arc<str>);

impl CallId {
    /// Takes the id that the caller uses; at most 256 bytes of it, with nothing in it that could break a line of the log.
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self(super::text::visible(super::text::cut(id, 256)).replace(['\n', '\t'], " ").into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The input of a call: a value, or JSON text that has not been looked at.
#[derive(Debug, Clone)]
pub enum CallInput {
    /// A parsed value.
    Value(Value),
    /// JSON text; parsed with bounds when the call is dispatched, so that bad text becomes a result like every other failure.
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

/// What `null` means in an input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Nulls {
    /// Itself.
    #[default]
    AsGiven,
    /// That the member is absent, where the schema knows it, does not require it, and would not accept `null`.
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
    /// A call of `tool` with `input`, under an id made up for it.
    #[must_use]
    pub fn new(tool: impl Into<String>, input: impl Into<CallInput>) -> Self {
        Self::known_as(fresh_id(), (tool, input), CancellationToken::new())
    }

    /// A call under the caller's own id, tied to this token.
    pub(crate) fn known_as(
        id: CallId,
        (tool, input): (impl Into<String>, impl Into<CallInput>),
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

    /// Uses the caller's own id.
    #[must_use]
    pub fn with_id(mut self, id: &str) -> Self {
        self.id = CallId::new(id);
        self
    }

    /// Takes `null` for what is absent, where the tool's schema would accept neither `null` nor asks for the member. Models write so that were given a strict
    /// schema, in which nothing may be left out.
    #[must_use]
    pub fn with_nulls_for_absent(mut self) -> Self {
        self.nulls = Nulls::StandForAbsent;
        self
    }

    /// Names the turn of the conversation that the call belongs to.
    #[must_use]
    pub fn with_turn(mut self, turn_id: &str) -> Self {
        self.turn_id = Some(super::text::elided(turn_id, 256).into());
        self
    }

    /// Passes a value to the tool that the host does not look at.
    #[must_use]
    pub fn with_context(mut self, context: Value) -> Self {
        self.context = context;
        self
    }

    /// Passes a JSON object to the tool beside the input.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Map<String, Value>) -> Self {
        self.metadata = metadata;
        self
    }

    /// Gives the call this much time instead of what the tool would get, at most 600 s.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Ties the call to a token: cancelling it ends the call, before its start or while it runs.
    #[must_use]
    pub fn with_cancellation(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// The token that ends the call.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    /// The call's id.
    #[must_use]
    pub fn id(&self) -> &CallId {
        &self.id
    }

    /// The name of the tool asked for, which need not exist.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }
}

/// Ids that are unique within the process: the caller that needs more brings its own.
fn fresh_id() -> CallId {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    CallId(format!("call_{}", NEXT.fetch_add(1, Ordering::Relaxed)).into())
}
