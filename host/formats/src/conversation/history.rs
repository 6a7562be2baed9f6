//! The messages of a conversation in a provider's format: replies go in as they come, and the
//! answers to their calls one by one.

use super::answer::{Answer, omitted_parts};
use super::{
    OmittedPart, Outcome, Provider, ReplyError, ToolUse, anthropic, gemini, openai, read_reply,
    responses, shape, written,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(test)]
mod tests;

/// The messages of a conversation so far, as the next request to the provider takes them.
///
/// ```
/// use palisade_formats::{History, Provider, ReplyError};
/// use serde_json::json;
///
/// let mut history = History::new(Provider::Anthropic);
/// history.push(json!({"role": "user", "content": "Say hello."}));
/// let reply = r#"{"content": [{"type": "tool_use", "id": "a", "name": "echo", "input": {}}]}"#;
/// for call in history.append_reply(reply)? {
///     let omitted = history.append_answer(&call, &Ok::<_, String>("hello"));
///     assert!(omitted.is_empty());
/// }
/// let roles: Vec<_> = history.messages().iter().map(|message| &message["role"]).collect();
/// assert_eq!(roles, ["user", "assistant", "user"]);
/// # Ok::<(), ReplyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct History {
    provider: Provider,
    messages: Vec<Value>,
}

impl History {
    /// Creates a history without messages.
    #[must_use]
    pub fn new(provider: Provider) -> Self {
        Self { provider, messages: Vec::new() }
    }

    /// Returns the provider whose format the messages have.
    #[must_use]
    pub fn provider(&self) -> Provider {
        self.provider
    }

    /// Returns the messages: `messages` of OpenAI's Chat Completions and of Anthropic, `input` of
    /// OpenAI's Responses, `contents` of Gemini.
    #[must_use]
    pub fn messages(&self) -> &[Value] {
        &self.messages
    }

    /// Appends a message of the program, such as the user's, in the provider's format.
    pub fn push(&mut self, message: Value) {
        self.messages.push(message);
    }

    /// Reads the calls of a reply, in any form that [`read_calls`](super::read_calls) accepts, and
    /// appends the model's message. A reply without content appends nothing. Calls in nobody's own
    /// form, which have only a name and an input, are appended in this provider's form, with the
    /// ids by which their answers name them.
    ///
    /// A number in the reply that does not fit 64 bits is appended in the precision of a `double`,
    /// or as a string if it is out of range.
    ///
    /// # Errors
    ///
    /// Those of [`read_calls`](super::read_calls), such as [`ReplyError::OtherProvider`] for a
    /// reply in another provider's form. Nothing is appended then.
    pub fn append_reply(&mut self, reply: &str) -> Result<Vec<ToolUse>, ReplyError> {
        let (calls, reply) = read_reply(self.provider, reply, |reply| {
            match shape::other_form(self.provider, reply) {
                Some(found) => Err(ReplyError::OtherProvider { expected: self.provider, found }),
                None => Ok(()),
            }
        })?;
        let bare = written::message_of_bare_calls(self.provider, &reply, &calls);
        let messages = bare.unwrap_or_else(|| match self.provider {
            Provider::OpenAi => openai::model_messages(reply),
            Provider::OpenAiResponses => responses::model_items(reply),
            Provider::Anthropic => anthropic::model_messages(reply),
            Provider::Gemini => gemini::model_contents(reply),
        });
        self.messages.extend(messages);
        Ok(calls)
    }

    /// Appends the answer to one call. Anthropic and Gemini take all answers to a reply in one
    /// message, so the answers that follow each other join. Returns the parts of the outcome that
    /// the answer does not carry.
    pub fn append_answer(&mut self, call: &ToolUse, outcome: &impl Outcome) -> Vec<OmittedPart> {
        let accepted = self.provider.accepted_media();
        let answer = Answer::new(call, outcome, accepted);
        match self.provider {
            Provider::OpenAi => self.messages.push(openai::result_message(&answer)),
            Provider::OpenAiResponses => self.messages.push(responses::result_item(&answer)),
            Provider::Anthropic => self.join("content", anthropic::result_block(&answer)),
            Provider::Gemini => self.join("parts", gemini::result_part(&answer)),
        }
        omitted_parts(call, outcome, accepted).collect()
    }

    /// Appends an answer to the last message if that consists of answers, or else in a new one.
    fn join(&mut self, key: &str, answer: Value) {
        let open = self.messages.last_mut().and_then(|last| last.get_mut(key)?.as_array_mut());
        match open.filter(|parts| !parts.is_empty() && parts.iter().all(is_answer)) {
            Some(parts) => parts.push(answer),
            None => self.messages.push(serde_json::json!({"role": "user", key: [answer]})),
        }
    }
}

fn is_answer(part: &Value) -> bool {
    part["type"] == "tool_result" || part.get("functionResponse").is_some()
}
