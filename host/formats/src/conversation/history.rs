//! The messages of a conversation in a provider's format: replies go in as they come, and the
//! answers to their calls one by one.

use super::answer::{Answer, omitted_parts};
use super::messages::{ProviderAnswer, joins, key_of_answers};
use super::repeated::{ValuesOfReply, read_values};
use super::written::message;
use super::{OmittedPart, Outcome, Provider, ReplyError, ToolUse};
use palisade_schema::budget::{Budget, Purse, Unlimited};
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
        self.append_reply_within(reply, &Unlimited).map(|(calls, _)| calls)
    }

    /// Appends a reply as [`append_reply`](Self::append_reply), within a budget. The memory of
    /// everything is reserved before it is allocated. Also returns the number of budget bytes that
    /// the calls and the appended messages keep, which the caller must release.
    ///
    /// # Errors
    ///
    /// As [`append_reply`](Self::append_reply), and
    /// [`JsonError::Exhausted`](palisade_schema::json::JsonError::Exhausted) in
    /// [`ReplyError::Json`]. Nothing stays reserved then.
    pub fn append_reply_within(
        &mut self,
        reply: &str,
        budget: &dyn Budget,
    ) -> Result<(Vec<ToolUse>, u64), ReplyError> {
        let mut purse = Purse::new(budget);
        let ValuesOfReply { calls, messages, .. } = read_values(self.provider, reply, &mut purse)?;
        self.messages.extend(messages);
        Ok((calls, purse.keep()))
    }

    /// Appends the answer to one call. Anthropic and Gemini take all answers to a reply in one
    /// message, so the answers that follow each other join. Returns the parts of the outcome that
    /// the answer does not carry.
    pub fn append_answer(&mut self, call: &ToolUse, outcome: &impl Outcome) -> Vec<OmittedPart> {
        let accepted = self.provider.accepted_media();
        let answer = Answer::new(call, outcome, accepted);
        let written = ProviderAnswer { provider: self.provider, answer: &answer };
        // Serialization cannot fail: an answer always maps to JSON.
        let written = serde_json::to_value(written).unwrap_or_default();
        match key_of_answers(self.provider) {
            None => self.messages.push(written),
            Some(key) => self.join(key, written),
        }
        omitted_parts(call, outcome, accepted).collect()
    }

    /// Appends an answer to the last message if that consists of answers, or else in a new one.
    fn join(&mut self, key: &str, answer: Value) {
        let provider = self.provider;
        let last = self.messages.last_mut().filter(|last| joins(provider, last));
        match last.and_then(|last| last.get_mut(key)?.as_array_mut()) {
            Some(parts) => parts.push(answer),
            None => self.messages.push(message(key, vec![answer], [("role", "user".into())])),
        }
    }
}
