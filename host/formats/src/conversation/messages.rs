//! The messages that answer a reply. Serializing them converts one result at a time: a copy of all
//! results at once would take several times their memory.

use super::answer::{self, Answer};
use super::{LeftOut, Outcome, Provider, ToolUse, anthropic, gemini, openai, responses};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;

/// The array of messages that a provider takes after its reply: one message per call for OpenAI,
/// one item per call for its Responses, one user message for Anthropic and one content for Gemini.
/// Without results the array is empty.
///
/// A failure is written as its class and message. A result's metadata is for the embedder and is
/// never written.
#[derive(Debug, Clone)]
pub struct Messages<'a, R> {
    provider: Provider,
    answered: &'a [(ToolUse, R)],
}

/// The answers to some calls, as an array of what `form` makes of each.
struct Answers<'a, R> {
    messages: &'a Messages<'a, R>,
    form: fn(&Answer<'_>) -> Value,
}

/// A single message with the answers to all calls under one key.
struct Joint<'a, R> {
    key: &'static str,
    answers: Answers<'a, R>,
}

impl<'a, R: Outcome> Messages<'a, R> {
    /// Creates the messages for these calls and their results.
    #[must_use]
    pub fn new(provider: Provider, answered: &'a [(ToolUse, R)]) -> Self {
        Self { provider, answered }
    }

    /// Returns the parts of the results that the messages cannot carry.
    #[must_use]
    pub fn left_out(&self) -> Vec<LeftOut> {
        let accepted = self.provider.media();
        self.answered
            .iter()
            .flat_map(|(tool_use, result)| answer::left_out(tool_use, result, accepted))
            .collect()
    }

    fn answers(&self, form: fn(&Answer<'_>) -> Value) -> Answers<'_, R> {
        Answers { messages: self, form }
    }
}

impl<R: Outcome> Serialize for Messages<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.provider {
            _ if self.answered.is_empty() => serializer.collect_seq([(); 0]),
            Provider::OpenAi => self.answers(openai::message_of).serialize(serializer),
            Provider::OpenAiResponses => self.answers(responses::item).serialize(serializer),
            Provider::Anthropic => serializer
                .collect_seq([Joint { key: "content", answers: self.answers(anthropic::result) }]),
            Provider::Gemini => serializer
                .collect_seq([Joint { key: "parts", answers: self.answers(gemini::answer_part) }]),
        }
    }
}

impl<R: Outcome> Serialize for Answers<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let accepted = self.messages.provider.media();
        let answers = self.messages.answered.iter();
        serializer.collect_seq(
            answers.map(|(tool_use, result)| (self.form)(&Answer::new(tool_use, result, accepted))),
        )
    }
}

impl<R: Outcome> Serialize for Joint<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut message = serializer.serialize_map(Some(2))?;
        message.serialize_entry(self.key, &self.answers)?;
        message.serialize_entry("role", "user")?;
        message.end()
    }
}
