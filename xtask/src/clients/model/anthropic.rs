//! The replies of the model as Anthropic's messages, whole or as a stream.

use super::reply::Said;
use super::script::Call;
use serde_json::{Value, json};

/// Returns the message.
pub(super) fn whole(request: &Value, said: &Said) -> Value {
    let mut message = begun(request);
    message["content"] = blocks(said).into();
    message["stop_reason"] = json!(reason(said));
    message
}

/// Returns the same message as a stream of events.
pub(super) fn stream(request: &Value, said: &Said) -> String {
    let mut events = vec![json!({ "type": "message_start", "message": begun(request) })];
    for (index, block) in blocks(said).into_iter().enumerate() {
        let (start, delta) = parts(block);
        events.extend([
            json!({ "type": "content_block_start", "index": index, "content_block": start }),
            json!({ "type": "content_block_delta", "index": index, "delta": delta }),
            json!({ "type": "content_block_stop", "index": index }),
        ]);
    }
    let delta = json!({ "stop_reason": reason(said), "stop_sequence": null });
    let usage = json!({ "output_tokens": 1 });
    events.push(json!({ "type": "message_delta", "delta": delta, "usage": usage }));
    events.push(json!({ "type": "message_stop" }));
    let line = |event: &Value| {
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
    };
    events.iter().map(line).collect()
}

/// Returns the message before its first content.
fn begun(request: &Value) -> Value {
    json!({
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": { "input_tokens": 1, "output_tokens": 1 },
    })
}

fn reason(said: &Said) -> &'static str {
    match said {
        Said::Text(_) => "end_turn",
        Said::Calls(_) => "tool_use",
    }
}

fn blocks(said: &Said) -> Vec<Value> {
    match said {
        Said::Text(text) => vec![json!({ "type": "text", "text": text })],
        Said::Calls(calls) => calls.iter().map(block).collect(),
    }
}

fn block(call: &Call) -> Value {
    let Call { id, name, arguments } = call;
    json!({ "type": "tool_use", "id": id, "name": name, "input": arguments })
}

/// Splits a block into its beginning and its content, as they are streamed.
fn parts(mut block: Value) -> (Value, Value) {
    if block["type"] == "text" {
        let text = block["text"].take();
        block["text"] = json!("");
        return (block, json!({ "type": "text_delta", "text": text }));
    }
    let input = block["input"].take().to_string();
    block["input"] = json!({});
    (block, json!({ "type": "input_json_delta", "partial_json": input }))
}
