//! OpenAI's Responses: `function_call` items, answered by `function_call_output` items.

use super::ReplyError;
use super::answer::{Answer, Encoded, JoinedText, Part};
use super::collector::{CallCollector, Form, type_of};
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::fmt;

#[cfg(test)]
mod tests;

/// Reads a body, an item, or a list of them.
pub(super) fn read(value: &Value, calls: &mut CallCollector<'_>) -> Result<(), ReplyError> {
    calls.read_each_object(value, read_body)
}

/// Reads a body or an item. `output` is the list of items in a body, but the answer in an item,
/// which has a type.
fn read_body(object: &Map<String, Value>, calls: &mut CallCollector<'_>) -> Result<(), ReplyError> {
    let output = object.get("output").filter(|_| type_of(object).is_none());
    match object.get("response").filter(|response| response.is_object()).or(output) {
        Some(within) => {
            calls.mark_recognized();
            read(within, calls)
        }
        None => calls.read_item(object),
    }
}

/// The item that answers one call.
#[derive(serde::Serialize)]
pub(super) struct ResultItem<'a> {
    call_id: &'a str,
    output: Output<'a>,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(serde::Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(JoinedText<'a>),
    Parts(ContentParts<'a>),
}

/// Returns the item that answers one call.
pub(super) fn result_item<'a>(answer: &'a Answer<'_>) -> ResultItem<'a> {
    let output = match answer.has_media() {
        true => Output::Parts(ContentParts(&answer.parts)),
        false => Output::Text(answer.text()),
    };
    let kind = match answer.tool_use.form {
        Form::Custom => "custom_tool_call_output",
        Form::Function | Form::Legacy => "function_call_output",
    };
    ResultItem { call_id: answer.tool_use.required_id(), output, kind }
}

/// The parts of an output with media.
struct ContentParts<'a>(&'a [Part<'a>]);

#[derive(serde::Serialize)]
#[serde(tag = "type")]
enum ContentPart<'a> {
    #[serde(rename = "input_text")]
    Text { text: &'a str },
    #[serde(rename = "input_image")]
    Image { image_url: DataUrl<'a> },
}

impl Serialize for ContentParts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().filter_map(content_part))
    }
}

fn content_part<'a>(part: &'a Part<'_>) -> Option<ContentPart<'a>> {
    match part {
        Part::Text(text) if text.is_empty() => None,
        Part::Text(text) => Some(ContentPart::Text { text }),
        Part::Media { mime, data } => {
            Some(ContentPart::Image { image_url: DataUrl { mime, data: Encoded(data) } })
        }
    }
}

/// A `data:` URL.
struct DataUrl<'a> {
    mime: &'a str,
    data: Encoded<'a>,
}

impl fmt::Display for DataUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "data:{};base64,{}", self.mime, self.data)
    }
}

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Returns the items of a reply, as a request repeats them.
pub(super) fn model_items(reply: Value) -> Vec<Value> {
    match reply {
        Value::Array(list) => list.into_iter().flat_map(model_items).collect(),
        Value::Object(mut body) => match body.remove("response") {
            Some(response @ Value::Object(_)) => model_items(response),
            _ if type_of(&body).is_none() && body.get("output").is_some_and(Value::is_array) => {
                body.remove("output").map(model_items).unwrap_or_default()
            }
            _ => vec![Value::Object(body)],
        },
        _ => Vec::new(),
    }
}
