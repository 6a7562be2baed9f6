//! Google's Gemini: `functionCall` parts, answered by one content of `functionResponse` parts.

use super::ReplyError;
use super::answer::{Answer, Encoded, JoinedText, Part};
use super::collector::{CallCollector, first_choice, is_from_model, take_first};
use super::written::{message, object};
use palisade_schema::json::Json;
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

#[cfg(test)]
mod tests;

/// The keys of objects without a call.
const KEYS_WITHOUT_CALL: [&str; 6] =
    ["text", "thought", "inlineData", "promptFeedback", "usageMetadata", "finishReason"];

/// The keys by which a part is told from a body without content.
const PART_KEYS: [&str; 6] = [
    "text",
    "inlineData",
    "functionCall",
    "function_call",
    "functionResponse",
    "function_response",
];

/// Reads a body, a content, a part, a call, or a list of them. A streamed reply without server-sent
/// events is a list of bodies.
pub(super) fn read(value: &Value, calls: &mut CallCollector<'_>) -> Result<(), ReplyError> {
    calls.read_each_object(value, read_body)
}

fn read_body(object: &Map<String, Value>, calls: &mut CallCollector<'_>) -> Result<(), ReplyError> {
    match first_choice(object, "candidates")
        .or_else(|| object.get("content").filter(|content| content.is_object()))
    {
        Some(within) => {
            calls.mark_recognized();
            read(within, calls)
        }
        None => read_content(object, calls),
    }
}

fn read_content(
    object: &Map<String, Value>,
    calls: &mut CallCollector<'_>,
) -> Result<(), ReplyError> {
    let Some(parts) = object.get("parts").and_then(Value::as_array) else {
        return read_part(object, calls);
    };
    calls.mark_recognized();
    let may_request = is_from_model(object);
    let parts = parts.iter().filter_map(Value::as_object);
    parts
        .filter(|part| may_request || function_response(part).is_some())
        .try_for_each(|object| read_part(object, calls))
}

fn read_part(object: &Map<String, Value>, calls: &mut CallCollector<'_>) -> Result<(), ReplyError> {
    if let Some(answer) = function_response(object) {
        calls.drop_answered(answer);
        return Ok(());
    }
    match get_either(object, "functionCall", "function_call") {
        Some(call) => {
            if !object.contains_key("functionCall") {
                calls.check_form(object)?;
            }
            calls.add_call(call)
        }
        None if KEYS_WITHOUT_CALL.iter().any(|key| object.contains_key(*key)) => {
            calls.mark_recognized();
            Ok(())
        }
        None => calls.read_item(object),
    }
}

fn function_response(part: &Map<String, Value>) -> Option<&Map<String, Value>> {
    get_either(part, "functionResponse", "function_response")
}

/// Returns the object under either spelling of a key: the API accepts both and some libraries print
/// the second.
fn get_either<'v>(
    object: &'v Map<String, Value>,
    one: &str,
    other: &str,
) -> Option<&'v Map<String, Value>> {
    object.get(one).or_else(|| object.get(other))?.as_object()
}

/// The part that answers a call. The API requires the parts of all calls in a single content.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResultPart<'a> {
    function_response: FunctionResponse<'a>,
}

#[derive(serde::Serialize)]
struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<InlineParts<'a>>,
    response: Response<'a>,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Response<'a> {
    Error(JoinedText<'a>),
    Output(Output<'a>),
}

#[derive(serde::Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Value(&'a Json),
    Text(JoinedText<'a>),
}

/// Returns the part that answers a call.
pub(super) fn result_part<'a>(answer: &'a Answer<'_>) -> ResultPart<'a> {
    let response = match (answer.failed, answer.value()) {
        (true, _) => Response::Error(answer.text()),
        (false, Some(value)) => Response::Output(Output::Value(value)),
        (false, None) => Response::Output(Output::Text(answer.text())),
    };
    let function_response = FunctionResponse {
        id: answer.tool_use.id(),
        name: &answer.tool_use.name,
        parts: answer.has_media().then_some(InlineParts(&answer.parts)),
        response,
    };
    ResultPart { function_response }
}

/// The media of an output.
struct InlineParts<'a>(&'a [Part<'a>]);

impl Serialize for InlineParts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().filter_map(inline_part))
    }
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct InlinePart<'a> {
    inline_data: InlineData<'a>,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    data: Encoded<'a>,
    mime_type: &'a str,
}

fn inline_part<'a>(part: &'a Part<'_>) -> Option<InlinePart<'a>> {
    match part {
        Part::Media { mime, data } => {
            Some(InlinePart { inline_data: InlineData { data: Encoded(data), mime_type: mime } })
        }
        Part::Text(_) => None,
    }
}

/// Returns the model's contents of a reply, as a request repeats them. The bodies of a streamed
/// reply make one content, and so do parts without a content.
pub(super) fn model_contents(reply: Value) -> Vec<Value> {
    let mut contents: Vec<Value> = Vec::new();
    for (role, parts) in contents_of(reply) {
        match contents.last_mut().filter(|last| last["role"] == role) {
            Some(last) => {
                if let Some(earlier) = last["parts"].as_array_mut() {
                    earlier.extend(parts);
                }
            }
            None => contents.push(message("parts", parts, [("role", role)])),
        }
    }
    contents
}

/// Returns the role and the parts of each content, but no content without parts, which the API
/// rejects.
fn contents_of(reply: Value) -> Vec<(Value, Vec<Value>)> {
    match reply {
        Value::Array(list) => list.into_iter().flat_map(contents_of).collect(),
        Value::Object(mut body) => {
            if let Some(candidate) = take_first(&mut body, "candidates") {
                return contents_of(candidate);
            }
            if let Some(content @ Value::Object(_)) = body.remove("content") {
                return contents_of(content);
            }
            let role = body.remove("role").unwrap_or_else(|| "model".into());
            match body.remove("parts") {
                Some(Value::Array(parts)) if parts.is_empty() => Vec::new(),
                Some(Value::Array(parts)) => vec![(role, parts)],
                _ if body.contains_key("name") => {
                    vec![(role, vec![object([("functionCall", Value::Object(body))])])]
                }
                _ if PART_KEYS.iter().any(|key| body.contains_key(*key)) => {
                    vec![(role, vec![Value::Object(body)])]
                }
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}
