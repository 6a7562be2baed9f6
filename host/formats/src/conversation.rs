//! Reads tool calls from a provider's reply and writes their results as that provider's messages.
//!
//! The reader is tolerant of shape and strict about size. It accepts a whole body, its message, a
//! list of messages, items, blocks or calls, or a single call. An error in one call (an unknown
//! tool name, arguments that are not JSON, a number out of range) is left to the program, so that
//! the other calls still run. Where arguments are a JSON object in the reply rather than a
//! string, an error in their JSON (a duplicate key, nesting beyond the bound) fails the whole
//! reply.
//!
//! For an object with a known type, only the documented fields of that type are read, so that a
//! proxy that inspects a call sees the call that will run. An object with only a name and an input
//! may have any names for its fields; the documented ones of the named provider take precedence.
//! A call in the form of another provider refuses the whole reply, before any call runs: its answer
//! would be in a form that the other provider does not take. A [`History`] refuses every message in
//! such a form, because it repeats the messages.

mod answer;
mod anthropic;
mod collector;
mod error;
mod fields;
mod gemini;
mod history;
mod messages;
mod numbers;
mod openai;
mod outcome;
mod provider;
mod repeated;
mod responses;
mod shape;
mod written;

#[cfg(test)]
mod tests;

use palisade_schema::budget::{Budget, Purse, Unlimited};
use palisade_schema::json::JsonBounds;
use palisade_schema::text::sanitize_id;
use serde_json::Value;

pub use error::ReplyError;
pub use history::History;
pub use messages::{Messages, OmittedPart, answer_length, write_results};
pub use outcome::{Block, Outcome};
pub use provider::{Provider, UnknownProvider};
pub use repeated::{ReadReply, Repeated};

use collector::{CallCollector, Form};

/// The bounds of a reply: 8 MiB, depth 96, 250,000 members.
///
/// The size is eight times the longest input of a call: a reply carries several inputs, each
/// escaped as a string, plus text and reasoning. The depth leaves room for the envelope around an
/// input of the accepted depth.
pub const REPLY_BOUNDS: JsonBounds =
    JsonBounds { bytes: 8 * 1024 * 1024, depth: 96, members: 250_000 };

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
    /// Creates a call that came from no reply of a provider.
    #[must_use]
    pub fn new(id: &str, name: &str, input: &str) -> Self {
        Self {
            id: Some(id.to_owned()),
            call_id: sanitize_id(id),
            name: name.to_owned(),
            input: input.to_owned(),
            form: Form::Function,
        }
    }

    /// Returns the provider's id unchanged, or `None` if there is none, as in some replies of
    /// Gemini.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Returns the program's id of the call: the provider's id, or `call_1` for the first call of a
    /// reply and so on. Unlike the provider's ids, it is unique in a reply: repeated ids get the
    /// suffix `-2`, `-3` and so on. A long id is cut, and characters that could break a line of a
    /// log are replaced.
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

    /// Copies the call without its input, which no answer repeats.
    #[must_use]
    pub fn without_input(&self) -> Self {
        let (id, call_id, name) = (self.id.clone(), self.call_id.clone(), self.name.clone());
        Self { id, call_id, name, input: String::new(), form: self.form }
    }

    /// Returns the id for messages that require one: the provider's, or else the program's.
    fn required_id(&self) -> &str {
        self.id.as_deref().unwrap_or(&self.call_id)
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
/// [`ReplyError`] if the text exceeds [`REPLY_BOUNDS`], is not a reply, is the provider's error, or
/// has more than [`MAX_CALLS`] calls.
pub fn read_calls(provider: Provider, text: &str) -> Result<Vec<ToolUse>, ReplyError> {
    read_reply(provider, text, &mut Purse::new(&Unlimited), |_| Ok(())).map(|read| read.calls)
}

/// A reply that was read, and whose memory a purse holds.
struct Reading {
    calls: Vec<ToolUse>,
    reply: Value,
    /// The memory of `reply`, in bytes.
    memory: u64,
}

/// Reads the calls of a reply that passes a check, and returns the reply as well.
fn read_reply(
    provider: Provider,
    text: &str,
    purse: &mut Purse<'_>,
    check: impl FnOnce(&Value) -> Result<(), ReplyError>,
) -> Result<Reading, ReplyError> {
    if is_stream(text) {
        return Err(ReplyError::Stream);
    }
    let parsed = numbers::parse(text, purse)?;
    let reply = &parsed.value;
    if let Some(message) = error::provider_error(reply) {
        return Err(ReplyError::Provider { message });
    }
    check(reply)?;
    let calls = collect_calls(provider, reply, purse.budget())?;
    if calls.is_empty() && !calls.has_dropped_calls() {
        check_reply_without_calls(provider, reply, &calls, purse.budget())?;
    }
    let (mut calls, kept) = calls.into_tool_uses();
    purse.adopt(kept);
    parsed.restore(&mut calls, purse)?;
    let memory = parsed.memory;
    Ok(Reading { calls, reply: parsed.into_value(), memory })
}

fn collect_calls<'b>(
    provider: Provider,
    reply: &Value,
    budget: &'b dyn Budget,
) -> Result<CallCollector<'b>, ReplyError> {
    let mut calls = CallCollector::new(provider, budget);
    match provider {
        Provider::OpenAi => openai::read(reply, &mut calls)?,
        Provider::OpenAiResponses => responses::read(reply, &mut calls)?,
        Provider::Anthropic => anthropic::read(reply, &mut calls)?,
        Provider::Gemini => gemini::read(reply, &mut calls)?,
    }
    Ok(calls)
}

/// Returns an error if a reply without calls is in another provider's form, because silence would
/// hide its calls, or in no known form.
fn check_reply_without_calls(
    expected: Provider,
    reply: &Value,
    calls: &CallCollector<'_>,
    budget: &dyn Budget,
) -> Result<(), ReplyError> {
    let has_calls = |other: &Provider| {
        collect_calls(*other, reply, budget).is_ok_and(|calls| !calls.is_empty())
    };
    let mut others = Provider::ALL.into_iter().filter(|other| *other != expected);
    if let Some(found) = others.find(has_calls) {
        return Err(ReplyError::OtherProvider { expected, found });
    }
    if calls.is_recognized() {
        return Ok(());
    }
    Err(ReplyError::NotAReply { expected, found: error::describe(reply) })
}

/// Returns true if the text looks like server-sent events, which are lines of `event:` and `data:`.
fn is_stream(text: &str) -> bool {
    let start = text.trim_start();
    start.starts_with("data:") || start.starts_with("event:")
}
