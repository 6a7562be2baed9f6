//! Replies and answers in a history, in each provider's form.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use super::*;
use crate::conversation::Provider::{Anthropic, Gemini, OpenAi, OpenAiResponses};
use serde_json::json;

/// Appends a reply to an empty history, and returns the messages.
#[track_caller]
fn appended(provider: Provider, reply: &Value) -> Vec<Value> {
    let mut history = History::new(provider);
    let _ = history.append_reply(&reply.to_string()).unwrap();
    history.messages
}

/// Checks that each form of a reply leaves these messages.
#[track_caller]
fn leaves(provider: Provider, forms: &[Value], messages: &[Value]) {
    for form in forms {
        assert_eq!(appended(provider, form), messages, "{form}");
    }
}

#[test]
fn openai_reply_is_repeated_as_its_message() {
    let call = json!({"id": "a", "type": "function", "function": {"name": "t", "arguments": "{}"}});
    let message = json!({"role": "assistant", "content": "I try.", "tool_calls": [call]});
    let body = json!({"id": "x", "choices": [{"index": 0, "message": message}], "usage": {}});
    leaves(OpenAi, &[body, message.clone(), json!([message])], &[message]);
    let made = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let untyped = json!({"id": "a", "function": {"name": "t", "arguments": "{}"}});
    leaves(OpenAi, &[json!([call]), call, untyped.clone(), json!([untyped])], &[made]);
    let text = json!({"role": "assistant", "content": "Done."});
    leaves(OpenAi, &[json!({"choices": [{"message": text}]})], &[text]);
}

#[test]
fn responses_reply_is_repeated_as_its_items() {
    let thought = json!({"type": "reasoning", "id": "r", "encrypted_content": "x"});
    let call = json!({"type": "function_call", "call_id": "a", "name": "t", "arguments": "{}"});
    let items = json!([thought, call]);
    let body = json!({"object": "response", "output": items});
    let streamed = json!({"response": body});
    leaves(OpenAiResponses, &[body, streamed, items], &[thought, call.clone()]);
    let alone = std::slice::from_ref(&call);
    leaves(OpenAiResponses, alone, alone);
}

#[test]
fn anthropic_reply_is_repeated_with_its_role_and_content() {
    let thought = json!({"type": "thinking", "thinking": "…", "signature": "x"});
    let call = json!({"type": "tool_use", "id": "a", "name": "t", "input": {}});
    let blocks = json!([thought, call]);
    let message = json!({"role": "assistant", "content": blocks});
    let body = json!({"id": "m", "type": "message", "role": "assistant", "content": blocks, "stop_reason": "tool_use", "usage": {}});
    leaves(Anthropic, &[body, message.clone(), json!([message]), blocks], &[message]);
    let alone = std::slice::from_ref(&call);
    leaves(Anthropic, alone, &[json!({"role": "assistant", "content": [call]})]);
    leaves(Anthropic, &[json!({"role": "assistant", "content": []})], &[]);
}

#[test]
fn gemini_reply_is_repeated_as_one_content() {
    let call = json!({"functionCall": {"name": "t", "args": {}}, "thoughtSignature": "x"});
    let content = json!({"role": "model", "parts": [{"text": "I try."}, call]});
    let body = json!({"candidates": [{"content": content, "finishReason": "STOP"}]});
    let forms = [body, content.clone(), content["parts"].clone()];
    leaves(Gemini, &forms, std::slice::from_ref(&content));
    let chunk =
        |part: Value| json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]});
    let end = json!({"usageMetadata": {}, "candidates": [{"finishReason": "STOP"}]});
    leaves(
        Gemini,
        &[json!([chunk(json!({"text": "I try."})), chunk(call.clone()), end])],
        &[content],
    );
    let bare = json!({"role": "model", "parts": [{"functionCall": {"name": "t", "args": {}}}]});
    leaves(Gemini, &[json!({"name": "t", "args": {}})], &[bare]);
}

#[test]
fn refused_reply_appends_nothing() {
    for provider in Provider::ALL {
        let mut history = History::new(provider);
        for reply in ["not JSON", r#"{"error": {"message": "quota"}}"#, "7"] {
            assert!(history.append_reply(reply).is_err(), "{provider}: {reply}");
        }
        assert!(history.messages().is_empty());
    }
}

#[test]
fn number_out_of_range_is_repeated_as_a_string() {
    let mut history = History::new(Anthropic);
    let reply =
        r#"{"content": [{"type": "tool_use", "id": "a", "name": "t", "input": {"n": 1e400}}]}"#;
    let calls = history.append_reply(reply).unwrap();
    assert_eq!(calls[0].input(), r#"{"n":1e400}"#);
    assert_eq!(history.messages()[0]["content"][0]["input"], json!({"n": "1e400"}));
}

/// Returns the reply of a provider with two calls.
fn two_calls(provider: Provider) -> Value {
    match provider {
        OpenAi => {
            json!([{"id": "a", "function": {"name": "t"}}, {"id": "b", "function": {"name": "t"}}])
        }
        OpenAiResponses => json!([
            {"type": "function_call", "call_id": "a", "name": "t"},
            {"type": "function_call", "call_id": "b", "name": "t"},
        ]),
        Anthropic => json!([
            {"type": "tool_use", "id": "a", "name": "t", "input": {}},
            {"type": "tool_use", "id": "b", "name": "t", "input": {}},
        ]),
        Gemini => json!([{"functionCall": {"name": "t"}}, {"functionCall": {"name": "t"}}]),
    }
}

#[test]
fn answers_one_by_one_are_the_messages_of_all_at_once() {
    for provider in Provider::ALL {
        let mut history = History::new(provider);
        let calls = history.append_reply(&two_calls(provider).to_string()).unwrap();
        let own = history.messages().len();
        let outcomes = [Ok("fine"), Err("failed")];
        for (call, outcome) in calls.iter().zip(&outcomes) {
            assert!(history.append_answer(call, outcome).is_empty());
        }
        let answered: Vec<_> = calls.into_iter().zip(outcomes).collect();
        let (messages, _) = crate::write_results(provider, &answered);
        assert_eq!(Value::from(history.messages()[own..].to_vec()), messages, "{provider}");
    }
}

#[test]
fn answers_do_not_join_a_message_of_the_user() {
    for provider in [Anthropic, Gemini] {
        let mut history = History::new(provider);
        let key = if provider == Gemini { "parts" } else { "content" };
        let user = json!({"role": "user", key: [{"type": "text", "text": "Go on."}]});
        history.push(user.clone());
        let _ = history.append_answer(&ToolUse::new("a", "t", "{}"), &Ok::<_, String>("done"));
        assert_eq!((history.messages().len(), &history.messages()[0]), (2, &user), "{provider}");
    }
}

#[test]
fn stored_history_continues() {
    for provider in Provider::ALL {
        let mut history = History::new(provider);
        let calls = history.append_reply(&two_calls(provider).to_string()).unwrap();
        let _ = history.append_answer(&calls[0], &Ok::<_, String>("one"));
        let stored = serde_json::to_string(&history).unwrap();
        assert!(stored.starts_with(&format!(r#"{{"provider":"{provider}","#)), "{stored}");
        let mut restored: History = serde_json::from_str(&stored).unwrap();
        assert_eq!(restored, history);
        for history in [&mut history, &mut restored] {
            let _ = history.append_answer(&calls[1], &Ok::<_, String>("two"));
        }
        assert_eq!(restored, history);
    }
}

/// Returns the replies of a provider that ask for no tool: the whole reply, and its message.
fn replies_without_calls(provider: Provider) -> Vec<Value> {
    let text = |kind: &str| json!([{"type": kind, "text": "Done."}]);
    match provider {
        OpenAi => {
            let message = json!({"role": "assistant", "content": "Done."});
            vec![json!({"object": "chat.completion", "choices": [{"message": message}]}), message]
        }
        OpenAiResponses => {
            let item =
                json!({"type": "message", "role": "assistant", "content": text("output_text")});
            vec![json!({"object": "response", "output": [item]}), json!([item]), item]
        }
        Anthropic => vec![
            json!({"type": "message", "role": "assistant", "content": text("text"), "stop_reason": "end_turn"}),
        ],
        Gemini => {
            let content = json!({"role": "model", "parts": [{"text": "Done."}]});
            vec![json!({"candidates": [{"content": content, "finishReason": "STOP"}]}), content]
        }
    }
}

/// Returns true if this form of a message is the expected provider's as well: a role with a text.
fn is_shared(expected: Provider, reply: &Value) -> bool {
    expected != Gemini && reply["content"].is_string()
}

#[test]
fn reply_in_the_form_of_another_provider_is_refused_and_names_both() {
    for found in Provider::ALL {
        for reply in replies_without_calls(found) {
            assert!(!appended(found, &reply).is_empty(), "{reply}");
            let others = Provider::ALL.into_iter().filter(|other| *other != found);
            for expected in others.filter(|other| !is_shared(*other, &reply)) {
                let mut history = History::new(expected);
                let refused = history.append_reply(&reply.to_string());
                let error = ReplyError::OtherProvider { expected, found };
                assert_eq!(refused.unwrap_err(), error, "{reply}");
                assert!(history.messages().is_empty());
            }
        }
    }
}

#[test]
fn reply_with_a_message_of_another_provider_is_refused() {
    let own = json!({"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "t", "arguments": "{}"}}]});
    let other = json!({"role": "model", "parts": [{"functionCall": {"name": "t", "args": {}}}]});
    let refused = History::new(OpenAi).append_reply(&json!([own, other]).to_string());
    let error = ReplyError::OtherProvider { expected: OpenAi, found: Gemini };
    assert_eq!(refused.unwrap_err(), error);
}

#[test]
fn call_in_nobodys_form_is_appended_with_the_id_of_its_answer() {
    for input in ["args", "arguments", "input"] {
        for provider in Provider::ALL {
            let mut history = History::new(provider);
            let reply = json!([{"name": "t", input: {"a": 1}}, {"name": "u", input: {}}]);
            let calls = history.append_reply(&reply.to_string()).unwrap();
            let own = json!({"a": 1});
            let message = history.messages()[0].clone();
            let (id, written) = match provider {
                OpenAi => {
                    let call = &message["tool_calls"][0];
                    (&call["id"], &call["function"]["arguments"])
                }
                OpenAiResponses => (&message["call_id"], &message["arguments"]),
                Anthropic => (&message["content"][0]["id"], &message["content"][0]["input"]),
                Gemini => (&Value::Null, &message["parts"][0]["functionCall"]["args"]),
            };
            let text = Value::from(own.to_string());
            assert!([&own, &text].contains(&written), "{provider} {input}: {message}");
            let _ = history.append_answer(&calls[0], &Ok::<_, String>("done"));
            let answer = history.messages().last().unwrap();
            let named = match provider {
                OpenAi => &answer["tool_call_id"],
                OpenAiResponses => &answer["call_id"],
                Anthropic => &answer["content"][0]["tool_use_id"],
                Gemini => &Value::Null,
            };
            assert_eq!(named, id, "{provider}: {answer}");
        }
    }
}
