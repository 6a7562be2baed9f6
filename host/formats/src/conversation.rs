//! Reads tool calls from a provider's reply and writes their results as that provider's messages.
//!
//! The reader is tolerant of shape and strict about size. It accepts a whole body, its message, a
//! list of messages, items, blocks or calls, or a single call. An error in one call (an unknown
//! tool name, arguments that are not JSON, a number out of range) is left to the dispatcher, so
//! that the other calls still run. Where arguments are a JSON object in the reply rather than a
//! string, an error in their JSON (a duplicate key, nesting beyond the bound) fails the whole
//! reply.
//!
//! For an object with a known type, only the documented fields of that type are read, so that a
//! proxy that inspects a call sees the call that will run. An object without a type may be in any
//! form; the documented fields of the named provider take precedence.

mod answer;
mod anthropic;
mod collector;
mod error;
mod fields;
mod gemini;
mod messages;
mod numbers;
mod openai;
mod outcome;
mod provider;
mod responses;

#[cfg(test)]
mod tests;

use palisade_schema::json::JsonBounds;
use palisade_schema::text::elided;
use serde_json::Value;
use std::fmt;

pub use error::ReplyError;
pub use messages::Messages;
pub use outcome::{Block, Outcome};
pub use provider::{Provider, UnknownProvider};

use collector::{Form, Found};

/// The bounds of a reply: 8 MiB, depth 96, 250,000 members.
///
/// The size is eight times the longest input of a call: a reply carries several inputs, each
/// escaped as a string, plus text and reasoning. The depth leaves room for the envelope around an
/// input of the accepted depth.
pub const REPLY: JsonBounds = JsonBounds { bytes: 8 * 1024 * 1024, depth: 96, members: 250_000 };

/// The most calls in one reply. Models request a few at a time; more calls suggest a model that
/// loops or a reply that no model wrote.
pub const MAX_CALLS: usize = 128;

/// One call as requested by a model.
#[derive(Debug, Clone)]
pub struct ToolUse {
    id: Option<String>,
    call_id: String,
    name: String,
    input: String,
    form: Form,
}

impl ToolUse {
    /// Returns the provider's id unchanged, or `None` if there is none, as in some replies of
    /// Gemini.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Returns the program's id of the call: the provider's id, or `call_1` for the first call of a
    /// reply and so on. Unlike the provider's ids, it is unique in a reply: repeated ids get the
    /// suffix `-2`, `-3` and so on. It is cut to 256 bytes and fits a line of a log.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// Returns the name of the requested tool, or an empty string if the call has none.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the input as unparsed JSON text, so that one parser with one set of bounds reads the
    /// inputs of all providers. A missing input is `{}`.
    ///
    /// A model that was given a strict schema writes `null` for an absent member;
    /// [`drop_absent`](palisade_schema::schema::drop_absent) removes it from the parsed input.
    #[must_use]
    pub fn input(&self) -> &str {
        &self.input
    }

    /// Returns the id for messages that require one: the provider's, or else the program's.
    fn required_id(&self) -> &str {
        self.id.as_deref().unwrap_or(&self.call_id)
    }
}

/// A part of a result that a provider's tool messages cannot carry. The message itself tells the
/// model about the omission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The call.
    pub call_id: String,
    /// The requested tool's name.
    pub tool: String,
    /// The omitted part, with its media type and size.
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

/// Reads the calls of a provider's reply, in order. A reply without calls is not an error.
///
/// Of several choices or candidates, only the first is read. In a list of messages, calls that are
/// already answered are skipped. Repeated ids are kept, because the provider expects an answer to
/// each call.
///
/// # Errors
///
/// [`ReplyError`] if the text exceeds [`REPLY`], is not a reply, is the provider's error, or has
/// more than [`MAX_CALLS`] calls.
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

/// Writes results as the array of [`Messages`], with the parts that it cannot carry.
#[must_use]
pub fn write_results<R: Outcome>(
    provider: Provider,
    answered: &[(ToolUse, R)],
) -> (Value, Vec<LeftOut>) {
    let messages = Messages::new(provider, answered);
    // Serialization cannot fail: results always map to JSON.
    (serde_json::to_value(&messages).unwrap_or_default(), messages.left_out())
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

/// Decides whether a reply without calls is an error. A reply in another provider's form is one,
/// because silence would hide its calls.
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

/// Returns true if the text looks like server-sent events, which are lines of `event:` and `data:`.
fn is_stream(text: &str) -> bool {
    let start = text.trim_start();
    start.starts_with("data:") || start.starts_with("event:")
}
