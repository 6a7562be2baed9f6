//! The plugin for the public conformance suite: loaded unchanged and shown to clients in full.
//! `cargo xtask conformance` runs the suite.

use super::{call, plain, text};
use palisade_tests::World;
use palisade_tests::guest::MCP_CONFORMANCE;
use serde_json::{Value, json};

#[test]
fn unneeded_schema_keywords_reach_the_client() {
    let world = World::new();
    let mut client = plain(&world, MCP_CONFORMANCE);
    let listed = client.request("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let schema =
        |name: &str| &tools.iter().find(|tool| tool["name"] == name).unwrap()["inputSchema"];
    let whole = schema("json_schema_2020_12_tool");
    assert_eq!(whole["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(whole["$defs"]["address"]["$anchor"], "addressDef");
    assert!(whole["allOf"][0]["anyOf"].is_array());
    assert!(["if", "then", "else"].iter().all(|keyword| whole[*keyword].is_object()), "{whole}");
    assert_eq!(whole["additionalProperties"], json!(false));
    assert_eq!(
        schema("test_mirrored_argument")["properties"]["greeting"]["x-mcp-header"],
        "Greeting"
    );
}

#[test]
fn fixture_blocks_keep_order_and_form() {
    let world = World::new();
    let mut client = plain(&world, MCP_CONFORMANCE);
    let given = client.request("tools/call", &call("test_multiple_content_types", json!({})));
    let blocks = given["result"]["content"].as_array().unwrap();
    assert_eq!(
        blocks.iter().map(|block| block["type"].clone()).collect::<Vec<_>>(),
        ["text", "image", "resource"]
    );
    assert_eq!(blocks[2]["resource"]["text"], r#"{"test":"data","value":123}"#);
    let sound = client.request("tools/call", &call("test_audio_content", json!({})));
    assert_eq!(sound["result"]["content"][0]["mimeType"], "audio/wav");
    let failed = client.request("tools/call", &call("test_error_handling", json!({})));
    assert_eq!(failed["result"]["isError"], json!(true));
    assert!(text(&failed).contains("intentionally"), "{failed}");
}

#[test]
fn fixture_reports_progress_in_three_steps() {
    let world = World::new();
    let mut client = plain(&world, MCP_CONFORMANCE);
    let mut params = call("test_tool_with_progress", json!({}));
    params["_meta"] = json!({"progressToken": "progress-test-1"});
    client.request("tools/call", &params);
    let told = client.received("notifications/progress");
    let steps: Vec<Option<f64>> =
        told.iter().map(|message| message["params"]["progress"].as_f64()).collect();
    assert_eq!(steps, [Some(0.0), Some(50.0), Some(100.0)]);
    let is_ours = |message: &&Value| message["params"]["progressToken"] == "progress-test-1";
    assert!(told.iter().all(is_ours), "{told:?}");
}
