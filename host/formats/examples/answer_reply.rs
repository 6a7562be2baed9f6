//! One step of an agent loop: reads the calls of a model's reply, runs them, and prints the
//! messages to send back.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example shows its result")]

use palisade_formats::{Provider, ReplyError, ToolUse, read_calls, write_results};
use serde_json::Value;

/// A reply of Anthropic's Messages with two calls.
const REPLY: &str = r#"{"role": "assistant", "content": [
    {"type": "tool_use", "id": "tu_1", "name": "add", "input": {"numbers": [40, 2]}},
    {"type": "tool_use", "id": "tu_2", "name": "guess", "input": {}}
]}"#;

fn main() -> Result<(), ReplyError> {
    println!("{:#}", answer(Provider::Anthropic, REPLY)?);
    Ok(())
}

/// Runs the calls of a reply and returns the messages that answer them.
fn answer(provider: Provider, reply: &str) -> Result<Value, ReplyError> {
    let mut answered = Vec::new();
    for call in read_calls(provider, reply)? {
        let result = run(&call);
        answered.push((call, result));
    }
    let (messages, omitted) = write_results(provider, &answered);
    omitted.iter().for_each(|part| eprintln!("{part}"));
    Ok(messages)
}

/// Runs one call. The model reads the error, so that it can correct the call.
fn run(call: &ToolUse) -> Result<String, String> {
    let input: Value = serde_json::from_str(call.input()).map_err(|error| error.to_string())?;
    match call.name() {
        "add" => {
            let numbers = input["numbers"].as_array().ok_or("`numbers` must be an array")?;
            Ok(numbers.iter().filter_map(Value::as_i64).sum::<i64>().to_string())
        }
        other => Err(format!("there is no tool `{other}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_call_is_answered() -> Result<(), ReplyError> {
        main()?;
        let messages = answer(Provider::Anthropic, REPLY)?;
        let result = |index: usize| {
            let block = &messages[0]["content"][index];
            (&block["tool_use_id"], &block["content"][0]["text"], &block["is_error"])
        };
        assert_eq!(result(0), (&json!("tu_1"), &json!("42"), &json!(false)));
        let error = "there is no tool `guess`";
        assert_eq!(result(1), (&json!("tu_2"), &json!(error), &json!(true)));
        Ok(())
    }
}
