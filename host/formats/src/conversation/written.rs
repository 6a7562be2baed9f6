//! The model's message for calls that came without one, in nobody's own form: written from what was
//! read, so that each call has the id by which its answer names it.

use super::fields::forms_of_call;
use super::{Provider, ToolUse};
use serde_json::{Map, Value, json};

/// Returns the message of the calls of a reply that consists of nothing but a name and an input for
/// each. `None` for any other reply, which is repeated as it is.
pub(super) fn message_of_bare_calls(
    provider: Provider,
    reply: &Value,
    calls: &[ToolUse],
) -> Option<Vec<Value>> {
    let elements = match reply {
        Value::Array(list) => list.as_slice(),
        alone => std::slice::from_ref(alone),
    };
    let are_bare = elements.iter().all(|call| call.as_object().is_some_and(is_bare));
    (are_bare && !calls.is_empty() && elements.len() == calls.len())
        .then(|| messages(provider, calls))
}

/// Returns true if an object has a name and no form of a provider.
fn is_bare(object: &Map<String, Value>) -> bool {
    object.get("name").is_some_and(Value::is_string)
        && !object.contains_key("type")
        && !object.contains_key("role")
        && forms_of_call(object).is_empty()
}

fn messages(provider: Provider, calls: &[ToolUse]) -> Vec<Value> {
    let written = calls.iter().map(|call| written(provider, call));
    match provider {
        Provider::OpenAi => {
            let calls: Vec<_> = written.collect();
            vec![json!({"role": "assistant", "content": null, "tool_calls": calls})]
        }
        Provider::OpenAiResponses => written.collect(),
        Provider::Anthropic => {
            vec![json!({"role": "assistant", "content": written.collect::<Vec<_>>()})]
        }
        Provider::Gemini => vec![json!({"role": "model", "parts": written.collect::<Vec<_>>()})],
    }
}

fn written(provider: Provider, call: &ToolUse) -> Value {
    let (id, name) = (call.required_id(), call.name());
    match provider {
        Provider::OpenAi => {
            json!({"id": id, "type": "function", "function": {"name": name, "arguments": call.input()}})
        }
        Provider::OpenAiResponses => {
            json!({"type": "function_call", "call_id": id, "name": name, "arguments": call.input()})
        }
        Provider::Anthropic => {
            json!({"type": "tool_use", "id": id, "name": name, "input": value(call)})
        }
        Provider::Gemini => {
            let mut function = json!({"name": name, "args": value(call)});
            if let Some(id) = call.id() {
                function["id"] = json!(id);
            }
            json!({"functionCall": function})
        }
    }
}

/// Returns an input as a value, or as its text if it is not JSON of this program's numbers.
fn value(call: &ToolUse) -> Value {
    serde_json::from_str(call.input()).unwrap_or_else(|_| Value::from(call.input()))
}
