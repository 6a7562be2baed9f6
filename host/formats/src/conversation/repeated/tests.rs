//! A reply as text is the reply of a history, and takes no memory that is not in its budget.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use super::*;
use crate::conversation::{History, Messages};
use palisade_schema::budget::Unlimited;
use palisade_schema::json::JsonError;
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};

/// A budget that is exhausted beyond a number of bytes.
#[derive(Debug)]
struct Bounded {
    held: AtomicU64,
    most: u64,
}

impl Bounded {
    fn new(most: u64) -> Self {
        Self { held: AtomicU64::new(0), most }
    }

    fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }
}

impl Budget for Bounded {
    fn reserve(&self, bytes: u64) -> Result<(), Exhausted> {
        if self.held() + bytes > self.most {
            return Err(Exhausted::CallMemory { limit: self.most });
        }
        self.held.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn release(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn check(&self) -> Result<(), Exhausted> {
        Ok(())
    }
}

/// Returns replies with two calls in the forms that a provider's reader accepts.
fn replies(provider: Provider) -> Vec<Value> {
    let bare = json!([{"name": "a", "arguments": {"n": 1}}, {"name": "b", "arguments": "{"}]);
    let own = match provider {
        Provider::OpenAi => {
            let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "a", "arguments": "{}"}});
            let message =
                json!({"role": "assistant", "content": "x", "tool_calls": [call("1"), call("2")]});
            let answer = json!({"role": "tool", "tool_call_id": "1", "content": "done"});
            vec![
                json!({"choices": [{"message": message}]}),
                json!([message, answer]),
                json!([call("1"), call("2")]),
            ]
        }
        Provider::OpenAiResponses => {
            let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "a", "arguments": "{}"});
            let answer = json!({"type": "function_call_output", "call_id": "1", "output": "done"});
            vec![json!({"output": [call("1"), call("2")]}), json!([call("1"), call("2"), answer])]
        }
        Provider::Anthropic => {
            let call =
                |id: &str| json!({"type": "tool_use", "id": id, "name": "a", "input": {"n": 5.5}});
            let message = json!({"role": "assistant", "content": [call("1"), call("2")]});
            let answer = json!({"type": "tool_result", "tool_use_id": "1", "content": "done"});
            vec![message.clone(), json!([message, {"role": "user", "content": [answer]}])]
        }
        Provider::Gemini => {
            let call = |id: &str| json!({"functionCall": {"id": id, "name": "a", "args": {}}});
            let content = json!({"role": "model", "parts": [call("1"), call("2")]});
            let answer = json!({"functionResponse": {"id": "1", "name": "a", "response": {}}});
            vec![
                json!({"candidates": [{"content": content}]}),
                json!([content, {"role": "user", "parts": [answer]}]),
            ]
        }
    };
    own.into_iter().chain([bare]).collect()
}

#[test]
fn messages_after_a_reply_are_those_of_a_history() {
    for provider in Provider::ALL {
        for reply in replies(provider) {
            let text = reply.to_string();
            let mut history = History::new(provider);
            let calls = history.append_reply(&text).unwrap();
            let results: Vec<_> =
                (0..calls.len()).map(|at| if at == 0 { Ok("fine") } else { Err("no") }).collect();
            for (call, result) in calls.iter().zip(&results) {
                history.append_answer(call, result);
            }
            let read = ReadReply::within(provider, &text, &Unlimited).unwrap();
            let ids = |calls: &[ToolUse]| -> Vec<_> {
                calls.iter().map(|call| (call.call_id.clone(), call.input.clone())).collect()
            };
            assert_eq!(ids(&read.calls), ids(&calls), "{reply}");
            let answered: Vec<_> = read.calls.into_iter().zip(results).collect();
            let messages = Messages::after(&read.repeated, &answered);
            assert_eq!(serde_json::to_value(messages).unwrap(), json!(history.messages()));
        }
    }
}

#[test]
fn reply_without_calls_is_repeated_alone() {
    for provider in Provider::ALL {
        let reply = json!({"role": "assistant", "content": "Done."}).to_string();
        let Ok(read) = ReadReply::within(provider, &reply, &Unlimited) else { continue };
        let mut history = History::new(provider);
        history.append_reply(&reply).unwrap();
        let messages = Messages::<Result<String, String>>::after(&read.repeated, &[]);
        assert_eq!(serde_json::to_value(messages).unwrap(), json!(history.messages()));
    }
}

/// Returns replies whose values take far more memory than their texts, each with its provider.
fn expanding() -> Vec<(Provider, String)> {
    let many = |one: &str, count: usize| vec![one; count].join(",");
    let nested = format!("{}0{}", r#"{"":"#.repeat(60), "}".repeat(60));
    let items = format!("[{}]", many(&nested, 200));
    vec![
        (
            Provider::OpenAi,
            format!(
                r#"{{"choices":[{{"message":{{"role":"assistant","content":"x","x":{items}}}}}]}}"#
            ),
        ),
        (Provider::OpenAi, format!("[{}]", many(r#"{"role":"assistant"}"#, 4_000))),
        (Provider::OpenAi, format!("[{}]", many(r#"{"content":""}"#, 4_000))),
        (
            Provider::OpenAiResponses,
            format!(r#"{{"output":[{{"type":"message","content":{items}}}]}}"#),
        ),
        (
            Provider::Anthropic,
            format!(
                r#"{{"content":[{{"type":"tool_use","id":"a","name":"a","input":{{"x":{items}}}}}]}}"#
            ),
        ),
        (Provider::Anthropic, format!(r#"[{{"name":"a","input":{{"x":{items}}}}}]"#)),
        (
            Provider::Gemini,
            format!(
                r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"name":"a","args":{{"x":{items},"n":1e400}}}}}}]}}}}]}}"#
            ),
        ),
        (Provider::Gemini, format!(r#"[{{"name":"a","args":{{"x":{items}}}}}]"#)),
    ]
}

#[test]
fn expanding_reply_is_refused_beyond_its_budget() {
    for (provider, reply) in expanding() {
        let small = Bounded::new(1 << 20);
        let read = ReadReply::within(provider, &reply, &small).map(|_| ());
        let exhausted = Exhausted::CallMemory { limit: 1 << 20 };
        assert_eq!(read, Err(exhausted.into()), "{provider} {reply:.80}");
        let mut history = History::new(provider);
        let read = history.append_reply_within(&reply, &small);
        assert!(matches!(read, Err(ReplyError::Json(JsonError::Exhausted(_)))), "{reply:.80}");
        assert_eq!((small.held(), history.messages().len()), (0, 0), "{reply:.80}");
    }
}

#[test]
fn reply_keeps_no_more_than_its_texts() {
    for (provider, reply) in expanding() {
        let large = Bounded::new(1 << 30);
        let read = ReadReply::within(provider, &reply, &large).unwrap();
        assert_eq!(large.held(), read.memory, "{reply:.80}");
        let entries = 8_000 * ENTRY;
        let most = 3 * reply.len() as u64 + entries;
        assert!(read.memory < most, "{provider}: {} of {most}, {reply:.80}", read.memory);
        let mut history = History::new(provider);
        let (_, kept) = history.append_reply_within(&reply, &large).unwrap();
        assert_eq!(large.held(), read.memory + kept, "{reply:.80}");
    }
}
