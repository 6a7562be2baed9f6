//! The model's messages of a reply, as the next request repeats them: as values for a history, and
//! as text for a program that sends them on.

use super::messages::{joins, key_of_answers};
use super::written::message_of_bare_calls;
use super::{
    Provider, Reading, ReplyError, ToolUse, anthropic, gemini, openai, read_reply, responses, shape,
};
use palisade_schema::budget::{Budget, Exhausted, Purse};
use palisade_schema::json::Json;
use serde_json::Value;

#[cfg(test)]
mod tests;

/// The memory that a message, or a call in it, may take when it gets the members that it lacks, in
/// bytes: two nodes of a map and short strings.
const ADDED: u64 = 1536;
/// The memory of a text in a list of them, beside the text itself, in bytes.
const ENTRY: u64 = 64;

/// A reply that was read within a budget.
#[derive(Debug)]
pub struct ReadReply {
    /// The calls.
    pub calls: Vec<ToolUse>,
    /// The model's messages.
    pub repeated: Repeated,
    /// The number of budget bytes that the calls and the messages keep. The caller releases them.
    pub memory: u64,
}

/// The model's messages of a reply, as text: their values would take up to 90 times the memory.
/// [`Messages::after`](super::Messages::after) writes them before the answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeated {
    pub(super) provider: Provider,
    pub(super) messages: Vec<Json>,
    /// The answers in the last message of a list, which the answers to the other calls join.
    pub(super) answers: Vec<Json>,
}

impl Repeated {
    /// Returns the provider whose format the messages have.
    #[must_use]
    pub fn provider(&self) -> Provider {
        self.provider
    }
}

impl ReadReply {
    /// Reads the calls of a reply, and the messages that a [`History`](super::History) would
    /// append, within a budget. The memory of everything is reserved before it is allocated.
    ///
    /// # Errors
    ///
    /// Those of [`History::append_reply`](super::History::append_reply), and
    /// [`JsonError::Exhausted`](palisade_schema::json::JsonError::Exhausted) in
    /// [`ReplyError::Json`]. Nothing stays reserved then.
    pub fn within(provider: Provider, text: &str, budget: &dyn Budget) -> Result<Self, ReplyError> {
        let mut purse = Purse::new(budget);
        let read = read_values(provider, text, &mut purse)?;
        let ValuesOfReply { calls, mut messages, memory } = read;
        let answers =
            messages.pop_if(|last| joins(provider, last)).map(|last| into_answers(provider, last));
        let answers = texts(answers.unwrap_or_default(), &mut purse)?;
        let messages = texts(messages, &mut purse)?;
        // The values are gone.
        purse.put_back(memory);
        let repeated = Repeated { provider, messages, answers };
        Ok(Self { calls, repeated, memory: purse.keep() })
    }
}

/// A reply that was read, with the messages as values.
pub(super) struct ValuesOfReply {
    pub(super) calls: Vec<ToolUse>,
    pub(super) messages: Vec<Value>,
    /// The most memory that the messages take, which the purse holds.
    pub(super) memory: u64,
}

/// Reads the calls of a reply, and the messages that repeat it.
pub(super) fn read_values(
    provider: Provider,
    text: &str,
    purse: &mut Purse<'_>,
) -> Result<ValuesOfReply, ReplyError> {
    let Reading { calls, reply, memory } =
        read_reply(provider, text, purse, |reply| match shape::other_form(provider, reply) {
            Some(found) => Err(ReplyError::OtherProvider { expected: provider, found }),
            None => Ok(()),
        })?;
    let added = ADDED.saturating_mul(count_messages(&reply));
    purse.take(added)?;
    let mut own = Purse::new(purse.budget());
    let bare = message_of_bare_calls(provider, &reply, &calls, &mut own)?;
    let written = own.keep();
    purse.adopt(written);
    let messages = bare.unwrap_or_else(|| match provider {
        Provider::OpenAi => openai::model_messages(reply),
        Provider::OpenAiResponses => responses::model_items(reply),
        Provider::Anthropic => anthropic::model_messages(reply),
        Provider::Gemini => gemini::model_contents(reply),
    });
    Ok(ValuesOfReply { calls, messages, memory: memory + added + written })
}

/// Returns the number of objects of a reply that may be a message, or a call in a list of calls.
fn count_messages(value: &Value) -> u64 {
    /// The members under which a reply has its messages.
    const WITHIN: [&str; 7] =
        ["choices", "message", "candidates", "content", "response", "output", "parts"];
    match value {
        Value::Array(list) => list.iter().map(count_messages).sum(),
        Value::Object(object) => {
            let within = WITHIN.iter().filter_map(|key| object.get(*key));
            within.map(count_messages).sum::<u64>().saturating_add(1)
        }
        _ => 0,
    }
}

/// Returns the parts of a message of answers.
fn into_answers(provider: Provider, mut message: Value) -> Vec<Value> {
    let key = key_of_answers(provider).unwrap_or_default();
    let list = message.get_mut(key).and_then(Value::as_array_mut);
    list.map(std::mem::take).unwrap_or_default()
}

/// Converts values to texts, one after the other.
fn texts(values: Vec<Value>, purse: &mut Purse<'_>) -> Result<Vec<Json>, Exhausted> {
    purse.take(ENTRY.saturating_mul(values.len() as u64))?;
    values.into_iter().map(|value| Json::of_value_within(value, purse)).collect()
}
