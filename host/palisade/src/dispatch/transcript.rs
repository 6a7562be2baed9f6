//! A conversation that can be stored: the messages for the provider, and every call with its full
//! result.

use super::conversation::Conversation;
use crate::tool::budget::Budget;
use crate::tool::{Call, CallId, CallInput, ToolResult};
use palisade_formats::{History, Provider, ReplyError, ToolUse};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A conversation with a model: the messages in its provider's format, and the executed calls.
///
/// [`Host::dispatch_reply`](crate::Host::dispatch_reply) takes a reply and appends everything that
/// follows from it. Stored as JSON and read back, a transcript continues where it ended. It grows
/// with every call, and keeps each output twice: in a message, and in the result.
///
/// ```
/// use palisade::formats::Provider;
/// use palisade::{Transcript, json};
///
/// let mut transcript = Transcript::new(Provider::OpenAi);
/// transcript.push(json!({"role": "user", "content": "What is 6 * 7?"}));
/// let stored = serde_json::to_string(&transcript)?;
/// assert_eq!(serde_json::from_str::<Transcript>(&stored)?, transcript);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transcript {
    history: History,
    executions: Vec<Execution>,
}

/// A call in a [`Transcript`]. It leaves out the call's context and metadata, which may hold
/// secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Execution {
    /// The call's id, as in its events.
    pub call_id: String,
    /// The requested tool, which need not exist.
    pub tool: String,
    /// The turn of the conversation, if the call named one.
    pub turn_id: Option<String>,
    /// The input: a value, or the JSON text as the model wrote it.
    pub input: Value,
    /// The full result, in the form of [`ToolResult::to_json`]. It has the metadata, the changed
    /// files and the executed command, which the model does not read.
    pub result: Value,
    /// The parts of the output that the provider's message cannot carry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<String>,
}

impl Transcript {
    /// Creates an empty transcript with messages in the provider's format.
    #[must_use]
    pub fn new(provider: Provider) -> Self {
        Self { history: History::new(provider), executions: Vec::new() }
    }

    /// Returns the provider whose format the messages have.
    #[must_use]
    pub fn provider(&self) -> Provider {
        self.history.provider()
    }

    /// Returns the messages, as the next request to the provider takes them.
    #[must_use]
    pub fn messages(&self) -> &[Value] {
        self.history.messages()
    }

    /// Returns the executed calls, in the order in which their results were appended.
    #[must_use]
    pub fn executions(&self) -> &[Execution] {
        &self.executions
    }

    /// Appends a message of the program, such as the user's, in the provider's format.
    pub fn push(&mut self, message: Value) {
        self.history.push(message);
    }

    /// Appends the model's message, which is read within a budget, and returns its calls.
    pub(crate) fn append_reply(
        &mut self,
        reply: &str,
        budget: &dyn Budget,
    ) -> Result<Vec<ToolUse>, ReplyError> {
        self.history.append_reply_within(reply, budget).map(|(calls, _)| calls)
    }

    /// Appends the answer to a call, and the call with its result.
    pub(crate) fn record(&mut self, tool_use: &ToolUse, call: &Call, result: &ToolResult) {
        let omitted = self.history.append_answer(tool_use, result);
        self.executions.push(Execution {
            call_id: call.id().as_str().to_owned(),
            tool: call.tool().to_owned(),
            turn_id: call.turn_id.as_deref().map(str::to_owned),
            input: match call.input() {
                CallInput::Value(value) => value.clone(),
                CallInput::Text(text) => Value::from(text.as_str()),
            },
            result: result.to_json(),
            omitted: omitted.into_iter().map(|part| part.part).collect(),
        });
    }
}

/// Answers calls that came from no reply, under the ids of the calls.
impl Conversation for Transcript {
    /// Appends nothing: the answer follows with the result, which tells a failure from an output.
    fn append_tool(&mut self, _: &CallId, _: &str, _: &str) {}

    fn append_tool_execution(&mut self, call: &Call, result: &ToolResult) {
        self.record(&ToolUse::new(call.id().as_str(), call.tool(), ""), call, result);
    }
}

/// Answers the calls of a reply in the form in which the model asked for them.
pub(crate) struct ReplyAnswers<'a> {
    transcript: &'a mut Transcript,
    /// The calls of the reply that have no answer yet. Results come in their order.
    unanswered: std::vec::IntoIter<ToolUse>,
}

impl<'a> ReplyAnswers<'a> {
    /// Creates the conversation of these calls.
    pub(crate) fn new(transcript: &'a mut Transcript, calls: Vec<ToolUse>) -> Self {
        Self { transcript, unanswered: calls.into_iter() }
    }
}

impl Conversation for ReplyAnswers<'_> {
    fn append_tool(&mut self, _: &CallId, _: &str, _: &str) {}

    fn append_tool_execution(&mut self, call: &Call, result: &ToolResult) {
        if let Some(tool_use) = self.unanswered.next() {
            self.transcript.record(&tool_use, call, result);
        }
    }
}
