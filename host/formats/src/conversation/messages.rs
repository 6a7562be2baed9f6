//! The messages that answer a reply. They are written from the results without a copy of any: a
//! copy of all results at once would take several times their memory.

use super::answer::{self, Answer};
use super::{Outcome, Provider, Repeated, ToolUse, anthropic, gemini, openai, responses};
use palisade_schema::json::Json;
use palisade_schema::text::elided;
use serde::ser::{Serialize, SerializeMap as _, SerializeSeq as _, Serializer};
use serde_json::Value;
use std::fmt;

/// The array of messages that a provider takes after its reply: one message per call for OpenAI,
/// one item per call for its Responses, one user message for Anthropic and one content for Gemini.
/// Without results the array is empty.
///
/// A failed call is answered by its error message, followed by its output.
#[derive(Debug, Clone)]
pub struct Messages<'a, R> {
    provider: Provider,
    answered: &'a [(ToolUse, R)],
    repeated: Option<&'a Repeated>,
}

impl<'a, R: Outcome> Messages<'a, R> {
    /// Creates the messages for these calls and their results.
    #[must_use]
    pub fn new(provider: Provider, answered: &'a [(ToolUse, R)]) -> Self {
        Self { provider, answered, repeated: None }
    }

    /// Creates the messages that a history would append for a reply: the model's, and those of
    /// the answers to its calls.
    #[must_use]
    pub fn after(repeated: &'a Repeated, answered: &'a [(ToolUse, R)]) -> Self {
        Self { provider: repeated.provider, answered, repeated: Some(repeated) }
    }

    /// Returns the parts of the results that the messages cannot carry.
    #[must_use]
    pub fn omitted_parts(&self) -> Vec<OmittedPart> {
        let accepted = self.provider.accepted_media();
        self.answered
            .iter()
            .flat_map(|(tool_use, result)| answer::omitted_parts(tool_use, result, accepted))
            .collect()
    }

    /// Returns the answers to the calls, in order.
    fn answers(&self) -> impl Iterator<Item = (Provider, &'a ToolUse, &'a R)> {
        let provider = self.provider;
        self.answered.iter().map(move |(tool_use, result)| (provider, tool_use, result))
    }
}

/// A part of a result that a provider's tool messages cannot carry. The message itself tells the
/// model about the omission.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OmittedPart {
    /// The call.
    pub call_id: String,
    /// The requested tool's name.
    pub tool: String,
    /// The omitted part, with its media type and size.
    pub part: String,
}

impl fmt::Display for OmittedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}): {}, is left out: the provider takes no such part",
            elided(&self.tool, 64),
            self.call_id,
            self.part
        )
    }
}

/// Writes results as the array of [`Messages`], with the parts that it cannot carry.
#[must_use]
pub fn write_results<R: Outcome>(
    provider: Provider,
    answered: &[(ToolUse, R)],
) -> (Value, Vec<OmittedPart>) {
    let messages = Messages::new(provider, answered);
    // Serialization cannot fail: results always map to JSON.
    (serde_json::to_value(&messages).unwrap_or_default(), messages.omitted_parts())
}

/// An answer to one call, in the form of its provider.
pub(super) struct ProviderAnswer<'a, 'o> {
    pub(super) provider: Provider,
    pub(super) answer: &'a Answer<'o>,
}

impl Serialize for ProviderAnswer<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.provider {
            Provider::OpenAi => openai::result_message(self.answer).serialize(serializer),
            Provider::OpenAiResponses => responses::result_item(self.answer).serialize(serializer),
            Provider::Anthropic => anthropic::result_block(self.answer).serialize(serializer),
            Provider::Gemini => gemini::result_part(self.answer).serialize(serializer),
        }
    }
}

/// Returns the member that has the answers to all calls, for a provider that takes them in one
/// message.
pub(super) fn key_of_answers(provider: Provider) -> Option<&'static str> {
    match provider {
        Provider::OpenAi | Provider::OpenAiResponses => None,
        Provider::Anthropic => Some("content"),
        Provider::Gemini => Some("parts"),
    }
}

/// Returns true if a message consists of answers, which further ones join.
pub(super) fn joins(provider: Provider, message: &Value) -> bool {
    let is_answer =
        |part: &Value| part["type"] == "tool_result" || part.get("functionResponse").is_some();
    let parts = key_of_answers(provider).and_then(|key| message.get(key)?.as_array());
    parts.is_some_and(|parts| !parts.is_empty() && parts.iter().all(is_answer))
}

/// One result as the answer to its call.
struct OneAnswer<'a, R>(Provider, &'a ToolUse, &'a R);

impl<R: Outcome> Serialize for OneAnswer<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(provider, tool_use, result) = *self;
        let answer = Answer::new(tool_use, result, provider.accepted_media());
        ProviderAnswer { provider, answer: &answer }.serialize(serializer)
    }
}

/// Texts that were written before, and the answers after them.
struct Joined<'a, R> {
    texts: &'a [Json],
    messages: &'a Messages<'a, R>,
}

impl<R: Outcome> Serialize for Joined<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for text in self.texts {
            list.serialize_element(text)?;
        }
        for (provider, tool_use, result) in self.messages.answers() {
            list.serialize_element(&OneAnswer(provider, tool_use, result))?;
        }
        list.end()
    }
}

/// A single message with the answers to all calls under one key.
struct JointMessage<'a, R> {
    key: &'static str,
    answers: Joined<'a, R>,
}

impl<R: Outcome> Serialize for JointMessage<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut message = serializer.serialize_map(Some(2))?;
        message.serialize_entry(self.key, &self.answers)?;
        message.serialize_entry("role", "user")?;
        message.end()
    }
}

impl<R: Outcome> Serialize for Messages<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let texts = self.repeated.map_or(&[][..], |repeated| &repeated.messages[..]);
        let Some(key) = key_of_answers(self.provider) else {
            return Joined { texts, messages: self }.serialize(serializer);
        };
        let earlier = self.repeated.map_or(&[][..], |repeated| &repeated.answers[..]);
        let mut list = serializer.serialize_seq(None)?;
        for text in texts {
            list.serialize_element(text)?;
        }
        if !earlier.is_empty() || !self.answered.is_empty() {
            let answers = Joined { texts: earlier, messages: self };
            list.serialize_element(&JointMessage { key, answers })?;
        }
        list.end()
    }
}

/// Returns the length of the answer to one call as JSON, in bytes.
#[must_use]
pub fn answer_length<R: Outcome>(provider: Provider, tool_use: &ToolUse, result: &R) -> usize {
    palisade_schema::json::text_length(&OneAnswer(provider, tool_use, result))
}
