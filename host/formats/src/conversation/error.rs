//! The reasons why a text cannot be read as a provider's reply.

use super::{MAX_CALLS, Provider};
use palisade_schema::budget::Exhausted;
use palisade_schema::json::{JsonError, type_name};
use palisade_schema::text::elided;
use serde_json::Value;

/// The reason why the calls of a reply could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplyError {
    /// The text is not JSON or exceeds the bounds of a reply.
    #[error(
        "the reply cannot be read: {0}; one JSON value is accepted: a whole reply, its message, a list of messages or calls, or one call"
    )]
    Json(#[from] JsonError),
    /// The text is a stream of server-sent events.
    #[error(
        "the reply is a stream of events; accepted is the whole reply as one JSON value, which the provider sends when streaming is off"
    )]
    Stream,
    /// The provider answered with an error.
    #[error("the provider answered with an error, and not with a reply: {message}")]
    Provider {
        /// The provider's message, at most 300 characters.
        message: String,
    },
    /// The text is JSON with calls or messages in another provider's form.
    #[error(
        "this is not a reply of {expected}: it has the form of {found}; name {found} as the provider"
    )]
    OtherProvider {
        /// The named provider.
        expected: Provider,
        /// The provider whose form the reply has, the first one if several write it.
        found: Provider,
    },
    /// The text is JSON of an unknown form.
    #[error(
        "this is not a reply of {expected}: it is {found}; accepted are {}",
        accepted_forms(*.expected)
    )]
    NotAReply {
        /// The named provider.
        expected: Provider,
        /// A description of the value.
        found: String,
    },
    /// The reply has more than [`MAX_CALLS`] calls.
    #[error("the reply asks for more than {MAX_CALLS} calls; at most {MAX_CALLS} are accepted")]
    TooManyCalls,
}

impl From<Exhausted> for ReplyError {
    fn from(exhausted: Exhausted) -> Self {
        Self::Json(JsonError::Exhausted(exhausted))
    }
}

/// Returns the provider's error message: `{"error": {"message": …}}`, alone or first in a list.
pub(super) fn provider_error(reply: &Value) -> Option<String> {
    let reply = reply.as_array().and_then(|list| list.first()).unwrap_or(reply);
    let message = match reply.get("error")? {
        Value::String(message) => message.as_str(),
        Value::Object(error) if !error.is_empty() => {
            let known = ["message", "code", "type", "status"]
                .into_iter()
                .find_map(|key| error.get(key)?.as_str());
            known.unwrap_or("it does not say which")
        }
        _ => return None,
    };
    (!message.is_empty()).then(|| elided(message, 300))
}

/// Describes a value briefly. An object is described by its first keys, never by its values, which
/// may be secret.
pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Object(object) if object.is_empty() => "an empty object".to_owned(),
        Value::Object(object) => {
            let keys: Vec<String> =
                object.keys().take(4).map(|key| format!("`{}`", elided(key, 32))).collect();
            let more = if object.len() > keys.len() { " and others" } else { "" };
            format!("an object with {}{more}", keys.join(", "))
        }
        Value::Array(_) => "an array without an object in it".to_owned(),
        other => format!("a value of type {}", type_name(other)),
    }
}

fn accepted_forms(provider: Provider) -> &'static str {
    match provider {
        Provider::OpenAi => {
            "a body with `choices`, a message with `tool_calls`, a list of messages or calls, and one call"
        }
        Provider::OpenAiResponses => {
            "a body with `output`, a list of items, and one item of type `function_call`"
        }
        Provider::Anthropic => {
            "a message with `content`, a list of messages or blocks, and one block of type `tool_use`"
        }
        Provider::Gemini => {
            "a body with `candidates`, a content with `parts`, a list of either or of parts, and one `functionCall`"
        }
    }
}
