//! The ids of calls: missing, repeated and long ones.

use super::{answered, one_call, uses};
use crate::tool::conversation::Provider;
use serde_json::json;

#[test]
fn missing_id_is_generated_uniquely() {
    let reply = json!([{"name": "a"}, {"name": "b", "id": "call_1"}, {"name": "c", "id": ""}, {"name": "d"}]);
    let ids: Vec<String> =
        uses(Provider::Gemini, &reply).iter().map(|one| one.call_id().to_string()).collect();
    assert_eq!(ids, ["call_1-2", "call_1", "call_3", "call_4"]);
    assert_eq!(uses(Provider::Gemini, &reply)[2].to_call().id().as_str(), "call_3");
}

#[test]
fn duplicate_ids_are_distinguished_inside() {
    for provider in Provider::ALL {
        let reply = json!([
            one_call(provider, "a"),
            one_call(provider, "a"),
            one_call(provider, "a-2"),
            one_call(provider, "a")
        ]);
        let ids: Vec<String> =
            uses(provider, &reply).iter().map(|one| one.call_id().to_string()).collect();
        assert_eq!(ids, ["a", "a-3", "a-2", "a-4"]);
        let (messages, _) = answered(provider, &reply, vec![vec![]; 4]);
        assert_eq!(messages.to_string().matches("\"a\"").count(), 3, "{messages}");
    }
}

#[test]
fn long_ids_are_distinguished_and_restored() {
    let one = format!("{}1", "x".repeat(300));
    let other = format!("{}2", "x".repeat(300));
    let reply = json!([one_call(Provider::OpenAi, &one), one_call(Provider::OpenAi, &other)]);
    let uses = uses(Provider::OpenAi, &reply);
    assert_ne!(uses[0].call_id(), uses[1].call_id());
    assert_eq!(uses[0].to_call().id(), uses[0].call_id());
    let (messages, _) = answered(Provider::OpenAi, &reply, vec![vec![]; 2]);
    assert_eq!(
        (&messages[0]["tool_call_id"], &messages[1]["tool_call_id"]),
        (&json!(one), &json!(other))
    );
}
