//! The calls in a provider's reply, and their results as the messages which that provider takes next.
//!
//! Reading is tolerant of shape and strict about size: a whole body, its message, a list of messages, items, blocks or calls, or one call alone.
//! What is wrong with one call (a name that no tool has, arguments that are not JSON, a number out of range) is left to the dispatcher, so that the others still
//! run. Where arguments are an object of the reply, and no string, what breaks the JSON there (a key twice, nesting beyond the bound) breaks the reply.
//!
//! An object that says its type is read by the documented fields of that type, and no others: who looks at a call in between sees what will run. One that does
//! not say it may be in any form, and the documented fields of the provider that was named come first.

mod answer;
mod anthropic;
mod error;
mod fields;
mod found;
mod gemini;
mod numbers;
mod openai;
mod provider;
mod responses;

#[cfg(test)]
mod tests;

use super::json::JsonBounds;
use super::text::{cut, elided};
use super::{Call, CallId, CallInput, ToolResult};
use answer::Answer;
use serde_json::Value;
use std::fmt;

pub use error::ReplyError;
pub use provider::{Provider, UnknownProvider};

use found::{Form, Found};

/// What a reply may be: 8 MiB, depth 96, 250,000 members.
///
/// Eight times the longest input of a call, because a reply carries several of them, each written as a string once more, beside the text and the reasoning.
/// The depth leaves room for the envelope around an input of the depth that is accepted.
pub const REPLY: JsonBounds = JsonBounds { bytes: 8 * 1024 * 1024, depth: 96, members: 250_000 };

/// The most calls in one reply. Providers' models ask for a few at a time; more is a model that repeats itself, or no model.
pub const MAX_CALLS: usize = 128;

/// A name that is longer cannot be a tool's, so that cutting it reaches no other tool.
const MAX_NAME: usize = 256;

/// One call, as a model asked for it.
#[derive(Debug, Clone)]
pub struct ToolUse {
    id: Option<String>,
    call_id: CallId,
    name: String,
    input: CallInput,
    form: Form,
}

impl ToolUse {
    /// The id that the provider gave, word for word. `None` where it gave none, as Gemini may.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The id that the call goes by in the host: the provider's, or `call_1` for the first of a reply, and so on. Unlike the provider's own, it occurs once in
    /// a reply: where ids repeat, later ones get `-2`, `-3` and so on.
    #[must_use]
    pub fn call_id(&self) -> &CallId {
        &self.call_id
    }

    /// The name of the tool asked for; empty where the call has none.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The input, always as text, whichever way the provider wrote it: so the dispatcher's bounds hold for all alike. `{}` where there is none.
    #[must_use]
    pub fn input(&self) -> &CallInput {
        &self.input
    }

    /// The call to dispatch. A `null` stands for what is absent: models write so that were given a strict schema.
    #[must_use]
    pub fn to_call(&self) -> Call {
        Call::new(cut(&self.name, MAX_NAME), self.input.clone()).with_id(self.call_id.as_str()).with_nulls_for_absent()
    }

    /// The id where a message must have one, even if the provider gave none.
    fn required_id(&self) -> &str {
        self.id.as_deref().unwrap_or(self.call_id.as_str())
    }
}

/// Something of a result that a provider's tool messages cannot carry. The model was told as well, in the message itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The call.
    pub call_id: CallId,
    /// The name of the tool asked for.
    pub tool: String,
    /// What is not in the message, with its media type and its size.
    pub what: String,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}): {}, is left out: the provider takes no such part",
            elided(&self.tool, 64),
            self.call_id,
            self.what
        )
    }
}

/// Reads the calls of a provider's reply, in its order. No call is no error.
///
/// Of several choices or candidates the first one counts. Calls that the same text already holds an answer to (in a list of messages) are not read again.
/// Ids that repeat are kept as they are, each call with its own, since the provider wants an answer to each.
///
/// # Errors
///
/// [`ReplyError`]: the text is beyond [`REPLY`] or no reply at all, it is an error of the provider, or it has more than [`MAX_CALLS`] calls.
pub fn read_calls(provider: Provider, text: &str) -> Result<Vec<ToolUse>, ReplyError> {
    if is_stream(text) {
        return Err(ReplyError::Stream);
    }
    let parsed = numbers::parse(text)?;
    let reply = &parsed.value;
    if let Some(message) = error::of_provider(reply) {
        return Err(ReplyError::Provider { message });
    }
    let found = found_in(provider, reply)?;
    if found.is_empty() && !found.has_answered() {
        no_call(provider, reply, &found)?;
    }
    let mut uses = found.into_uses();
    parsed.put_back(&mut uses);
    Ok(uses)
}

/// Writes results as the array of messages that the provider takes next: one message a call for OpenAI, one item a call for its Responses, one user message
/// for Anthropic and one content for Gemini. No results give an empty array.
///
/// A failure is written as its class and message. A result's metadata, which is for the program that embeds the host, is never part of it.
#[must_use]
pub fn write_results(provider: Provider, answered: &[(ToolUse, ToolResult)]) -> (Value, Vec<LeftOut>) {
    let mut left_out = Vec::new();
    let mut answers = Vec::with_capacity(answered.len());
    for (tool_use, result) in answered {
        answers.push(Answer::new(tool_use, result, provider.media(), &mut left_out));
    }
    let messages = match provider {
        _ if answers.is_empty() => Vec::new(),
        Provider::OpenAi => answers.iter().map(openai::message_of).collect(),
        Provider::OpenAiResponses => answers.iter().map(responses::item).collect(),
        Provider::Anthropic => vec![anthropic::message(&answers)],
        Provider::Gemini => vec![gemini::content_of(&answers)],
    };
    (Value::Array(messages), left_out)
}

fn found_in(provider: Provider, reply: &Value) -> Result<Found, ReplyError> {
    let mut found = Found::new(provider);
    match provider {
        Provider::OpenAi => openai::read(reply, &mut found)?,
        Provider::OpenAiResponses => responses::read(reply, &mut found)?,
        Provider::Anthropic => anthropic::read(reply, &mut found)?,
        Provider::Gemini => gemini::read(reply, &mut found)?,
    }
    Ok(found)
}

/// A reply without calls is a common thing, and so is one that was taken for another provider's: silence would hide the calls in it.
fn no_call(asked: Provider, reply: &Value, found: &Found) -> Result<(), ReplyError> {
    let has_calls = |other: &Provider| found_in(*other, reply).is_ok_and(|found| !found.is_empty());
    if let Some(found) = Provider::ALL.into_iter().filter(|other| *other != asked).find(has_calls) {
        return Err(ReplyError::OtherProvider { asked, found });
    }
    if found.is_understood() {
        return Ok(());
    }
    Err(ReplyError::NotAReply { asked, got: error::shape(reply) })
}

/// Server-sent events are lines of `event:` and `data:`.
fn is_stream(text: &str) -> bool {
    let start = text.trim_start();
    start.starts_with("data:") || start.starts_with("event:")
}
