//! The messages that answer a reply. Serializing them converts one result at a time: a copy of all
//! results at once would take several times their memory.

use super::answer::{self, Answer};
use super::{Outcome, Provider, ToolUse, anthropic, gemini, openai, responses};
use palisade_schema::text::elided;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
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
}

impl<'a, R: Outcome> Messages<'a, R> {
    /// Creates the messages for these calls and their results.
    #[must_use]
    pub fn new(provider: Provider, answered: &'a [(ToolUse, R)]) -> Self {
        Self { provider, answered }
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

    fn answers(&self, convert: fn(&Answer<'_>) -> Value) -> Answers<'_, R> {
        Answers { messages: self, convert }
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

/// The array of all answers, each converted by `convert`.
struct Answers<'a, R> {
    messages: &'a Messages<'a, R>,
    convert: fn(&Answer<'_>) -> Value,
}

/// A single message with the answers to all calls under one key.
struct JointMessage<'a, R> {
    key: &'static str,
    answers: Answers<'a, R>,
}

impl<R: Outcome> Serialize for Messages<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.provider {
            _ if self.answered.is_empty() => serializer.collect_seq([(); 0]),
            Provider::OpenAi => self.answers(openai::result_message).serialize(serializer),
            Provider::OpenAiResponses => self.answers(responses::result_item).serialize(serializer),
            Provider::Anthropic => serializer.collect_seq([JointMessage {
                key: "content",
                answers: self.answers(anthropic::result_block),
            }]),
            Provider::Gemini => serializer.collect_seq([JointMessage {
                key: "parts",
                answers: self.answers(gemini::result_part),
            }]),
        }
    }
}

impl<R: Outcome> Serialize for Answers<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let accepted = self.messages.provider.accepted_media();
        let answers = self.messages.answered.iter();
        serializer.collect_seq(
            answers
                .map(|(tool_use, result)| (self.convert)(&Answer::new(tool_use, result, accepted))),
        )
    }
}

impl<R: Outcome> Serialize for JointMessage<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut message = serializer.serialize_map(Some(2))?;
        message.serialize_entry(self.key, &self.answers)?;
        message.serialize_entry("role", "user")?;
        message.end()
    }
}
