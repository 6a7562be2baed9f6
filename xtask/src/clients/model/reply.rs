//! The replies of the model in each wire format.

use super::anthropic;
use super::script::{self, Call};
use serde_json::{Value, json};

/// The wire format of a request and its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    Chat,
    Responses,
    /// Anthropic's.
    Messages,
}

/// The body of a response.
#[derive(Debug, PartialEq)]
pub(super) enum Reply {
    Whole(Value),
    /// Server-sent events.
    Stream(String),
}

/// The content of the model's reply: calls, or its last words.
pub(super) enum Said {
    Calls(Vec<Call>),
    Text(String),
}

/// Returns the reply that the script in a request asks for.
pub(super) fn make(wire: Wire, request: &Value) -> anyhow::Result<Reply> {
    let messages = list(request, wire.messages());
    let script = script::find(messages.iter().copied().flat_map(texts))?;
    let made = messages.iter().map(|message| wire.calls(message)).sum();
    let calls = script::next(&script, made)?;
    let said = if calls.is_empty() {
        let tools = list(request, "tools");
        Said::Text(json!({ "tools": tools, "messages": messages }).to_string())
    } else {
        Said::Calls(calls)
    };
    Ok(match (wire, request.get("stream") == Some(&json!(true))) {
        (Wire::Chat, false) => Reply::Whole(chat(request, &said)),
        (Wire::Chat, true) => Reply::Stream(chat_stream(request, &said)),
        (Wire::Responses, false) => Reply::Whole(responses(request, &said)),
        (Wire::Messages, false) => Reply::Whole(anthropic::whole(request, &said)),
        (Wire::Messages, true) => Reply::Stream(anthropic::stream(request, &said)),
        (Wire::Responses, true) => anyhow::bail!("/v1/responses is not served as a stream"),
    })
}

impl Wire {
    /// Returns the key of the messages in a request.
    fn messages(self) -> &'static str {
        match self {
            Self::Chat | Self::Messages => "messages",
            Self::Responses => "input",
        }
    }

    /// Returns the number of calls that a message of the conversation has.
    fn calls(self, message: &Value) -> usize {
        match self {
            Self::Chat => list(message, "tool_calls").len(),
            Self::Responses => usize::from(message["type"] == "function_call"),
            Self::Messages => {
                list(message, "content").iter().filter(|part| part["type"] == "tool_use").count()
            }
        }
    }
}

fn list<'a>(value: &'a Value, key: &str) -> Vec<&'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten().collect()
}

/// Returns the texts of a message, whose content is a text or a list of parts.
fn texts(message: &Value) -> Vec<&str> {
    match &message["content"] {
        Value::String(text) => vec![text],
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => Vec::new(),
    }
}

fn chat(request: &Value, said: &Said) -> Value {
    let (message, reason) = message(said);
    json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": request["model"],
        "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": reason }],
        "usage": { "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 },
    })
}

/// Returns the message of the model and the reason for its end.
fn message(said: &Said) -> (Value, &'static str) {
    match said {
        Said::Text(text) => {
            (json!({ "role": "assistant", "content": text, "refusal": null }), "stop")
        }
        Said::Calls(calls) => {
            let called = |(index, call): (usize, &Call)| {
                let function =
                    json!({ "name": call.name, "arguments": call.arguments.to_string() });
                json!({ "index": index, "id": call.id, "type": "function", "function": function })
            };
            let calls: Vec<Value> = calls.iter().enumerate().map(called).collect();
            let message = json!({
                "role": "assistant",
                "content": null,
                "refusal": null,
                "tool_calls": calls,
            });
            (message, "tool_calls")
        }
    }
}

/// Returns the same reply as a stream: a piece for each call, as OpenAI sends it, or one for the
/// text; the reason for the end, and the end.
fn chat_stream(request: &Value, said: &Said) -> String {
    let (message, reason) = message(said);
    let piece = |delta: Value, reason: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
        let piece = json!({
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": request["model"],
            "choices": [choice],
        });
        format!("data: {piece}\n\n")
    };
    let mut stream = String::new();
    for call in list(&message, "tool_calls") {
        let delta = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
        stream += &piece(delta, Value::Null);
    }
    if message["content"].is_string() {
        stream += &piece(message, Value::Null);
    }
    stream + &piece(json!({}), json!(reason)) + "data: [DONE]\n\n"
}

fn responses(request: &Value, said: &Said) -> Value {
    let output = match said {
        Said::Text(text) => {
            let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
            vec![json!({
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": content,
            })]
        }
        Said::Calls(calls) => calls.iter().map(function_call).collect(),
    };
    let usage = json!({
        "input_tokens": 1,
        "input_tokens_details": { "cached_tokens": 0 },
        "output_tokens": 1,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": 2,
    });
    json!({
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": request["model"],
        "output": output,
        "usage": usage,
        "error": null,
        "incomplete_details": null,
        "instructions": null,
        "metadata": {},
        "parallel_tool_calls": true,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": request["tools"],
        "top_p": 1.0,
    })
}

fn function_call(call: &Call) -> Value {
    json!({
        "id": format!("fc_{}", call.id),
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments.to_string(),
        "status": "completed",
    })
}
