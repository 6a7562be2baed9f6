//! Replies that are refused: other formats, errors of the provider, and replies beyond a bound.

use super::{one_call, read};
use crate::conversation::{MAX_CALLS, Provider, REPLY_BOUNDS, ReplyError, read_calls};
use serde_json::{Value, json};

fn refusal(provider: Provider, text: &str) -> ReplyError {
    read_calls(provider, text).unwrap_err()
}

#[test]
fn unknown_forms_are_refused_with_the_accepted_ones() {
    for provider in Provider::ALL {
        for text in ["", "I call read_file.", "{", "{\"a\":1,\"a\":2}"] {
            assert!(matches!(refusal(provider, text), ReplyError::Json(_)), "{text}");
        }
        for text in ["5", "\"read_file\"", "null", "{}", "{\"price\":\"secret\"}", "[1]"] {
            let error = refusal(provider, text);
            assert!(matches!(error, ReplyError::NotAReply { .. }), "{text}: {error}");
            let said = error.to_string();
            assert!(
                said.contains("accepted are")
                    && said.contains(provider.as_str())
                    && !said.contains("secret"),
                "{said}"
            );
        }
    }
}

#[test]
fn provider_errors_are_passed_on() {
    let errors = [
        json!({"error": {"message": "overloaded", "type": "server_error"}}),
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "overloaded"}}),
        json!({"object": "response", "status": "failed", "output": [], "error": {"code": "x", "message": "overloaded"}}),
        json!([{"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}]),
        json!({"error": "overloaded"}),
    ];
    for error in errors {
        let expected = ReplyError::Provider { message: "overloaded".to_owned() };
        assert_eq!(refusal(Provider::OpenAi, &error.to_string()), expected);
    }
    assert!(read(Provider::OpenAi, &json!({"choices": [], "error": null})).is_empty());
}

#[test]
fn reply_of_another_provider_names_it() {
    let whole = |provider| match provider {
        Provider::OpenAi => {
            json!({"choices": [{"message": {"role": "assistant", "tool_calls": [one_call(provider, "a")]}}]})
        }
        Provider::OpenAiResponses => {
            json!({"object": "response", "output": [one_call(provider, "a")]})
        }
        Provider::Anthropic => {
            json!({"type": "message", "role": "assistant", "content": [one_call(provider, "a")]})
        }
        Provider::Gemini => {
            json!({"candidates": [{"content": {"role": "model", "parts": [one_call(provider, "a")]}}]})
        }
    };
    for found in Provider::ALL {
        for expected in Provider::ALL.into_iter().filter(|expected| *expected != found) {
            assert_eq!(
                refusal(expected, &whole(found).to_string()),
                ReplyError::OtherProvider { expected, found }
            );
        }
    }
}

#[test]
fn call_of_another_provider_names_it() {
    for found in Provider::ALL {
        for expected in Provider::ALL.into_iter().filter(|expected| *expected != found) {
            let (own, other) = (one_call(expected, "a"), one_call(found, "b"));
            for reply in [other.clone(), json!([other]), json!([own, other])] {
                assert_eq!(
                    refusal(expected, &reply.to_string()),
                    ReplyError::OtherProvider { expected, found },
                    "{reply}"
                );
            }
        }
    }
}

#[test]
fn older_forms_of_a_call_are_told_apart() {
    let call = |key: &str| json!({"function_call": {"name": "echo", key: {}}});
    for (key, found) in [("arguments", Provider::OpenAi), ("args", Provider::Gemini)] {
        for expected in Provider::ALL {
            let read = read_calls(expected, &call(key).to_string());
            if expected == found {
                assert_eq!(read.unwrap().len(), 1, "{expected} {key}");
            } else {
                let refused = ReplyError::OtherProvider { expected, found };
                assert_eq!(read.unwrap_err(), refused, "{expected} {key}");
            }
        }
    }
    // A message of the model's role is read as such.
    let message = json!({"role": "assistant", "function_call": {"name": "echo", "args": {}}});
    assert_eq!(read(Provider::OpenAi, &message).len(), 1);
}

#[test]
fn event_streams_are_refused() {
    assert_eq!(refusal(Provider::OpenAi, "data: {\"choices\":[]}\n\n"), ReplyError::Stream);
    assert_eq!(
        refusal(Provider::Anthropic, "\nevent: message_start\ndata: {}\n"),
        ReplyError::Stream
    );
}

#[test]
fn number_of_calls_is_bounded() {
    for provider in Provider::ALL {
        let calls = |count: usize| Value::from(vec![one_call(provider, "a"); count]).to_string();
        assert_eq!(read_calls(provider, &calls(MAX_CALLS)).unwrap().len(), MAX_CALLS);
        assert_eq!(refusal(provider, &calls(MAX_CALLS + 1)), ReplyError::TooManyCalls);
        assert_eq!(refusal(provider, &calls(10_000)), ReplyError::TooManyCalls);
    }
}

/// The nesting constructs that a reader recurses into.
const NESTS: [(&str, &str); 6] = [
    ("[", "]"),
    ("{\"response\":", "}"),
    ("{\"message\":", "}"),
    ("{\"content\":[", "]}"),
    ("{\"choices\":[", "]}"),
    ("{\"parts\":[", "]}"),
];

#[test]
fn hostile_replies_end_at_a_bound() {
    for provider in Provider::ALL {
        for (opening, closing) in NESTS {
            assert!(
                matches!(refusal(provider, &opening.repeat(100_000)), ReplyError::Json(_)),
                "{opening}"
            );
            let deep = format!(
                "{}{{}}{}",
                opening.repeat(REPLY_BOUNDS.depth / 2 - 1),
                closing.repeat(REPLY_BOUNDS.depth / 2 - 1)
            );
            assert!(
                read_calls(provider, &deep).is_ok_and(|calls| calls.is_empty())
                    || matches!(refusal(provider, &deep), ReplyError::NotAReply { .. }),
                "{opening}"
            );
        }
        assert!(matches!(
            refusal(provider, &"x".repeat(REPLY_BOUNDS.bytes + 1)),
            ReplyError::Json(_)
        ));
        assert!(matches!(
            refusal(provider, &format!("[{}0]", "0,".repeat(REPLY_BOUNDS.members))),
            ReplyError::Json(_)
        ));
    }
}
