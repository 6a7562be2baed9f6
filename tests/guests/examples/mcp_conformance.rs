//! A guest with the tools that the MCP conformance suite calls by name.
//!
//! The names and most texts are given by the suite: each scenario describes its tool. No tool has
//! side effects, so that none needs permission. `cargo xtask conformance` starts a server with this
//! plugin and runs the suite.

#[path = "../mcp_conformance/asking.rs"]
mod asking;
#[path = "../mcp_conformance/offers.rs"]
mod offers;

use std::time::Duration;

use palisade_guest::{
    Content, Context, Definition, Error, Output, Result, SideEffects, Tool, tool,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// The pause between two messages of a tool, so that the suite observes them one by one.
const PAUSE: Duration = Duration::from_millis(50);
/// The duration of the tool whose stream may break meanwhile.
const LONG: Duration = Duration::from_millis(500);

/// A PNG image of one red pixel: signature, header, data and end.
const RED_POINT: [u8; 69] = [
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52,
    0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00, 0x00, 0x90, 0x77, 0x53,
    0xde, 0x00, 0x00, 0x00, 0x0c, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0xf8, 0xcf, 0xc0, 0x00,
    0x00, 0x03, 0x01, 0x01, 0x00, 0xf7, 0x03, 0x41, 0x43, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e,
    0x44, 0xae, 0x42, 0x60, 0x82,
];
/// A WAV file with two samples of silence, one byte each, at 8,000 Hz.
const SILENCE: [u8; 46] = [
    0x52, 0x49, 0x46, 0x46, 0x26, 0x00, 0x00, 0x00, 0x57, 0x41, 0x56, 0x45, 0x66, 0x6d, 0x74, 0x20,
    0x10, 0x00, 0x00, 0x00, 0x01, 0x00, 0x01, 0x00, 0x40, 0x1f, 0x00, 0x00, 0x40, 0x1f, 0x00, 0x00,
    0x01, 0x00, 0x08, 0x00, 0x64, 0x61, 0x74, 0x61, 0x02, 0x00, 0x00, 0x00, 0x80, 0x80,
];

/// A schema with keywords of JSON Schema 2020-12 that implementations may strip: a listing must
/// contain all of them.
const DRAFT_2020_12: &str = r##"{
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": { "street": { "type": "string" }, "city": { "type": "string" } }
        }
    },
    "properties": {
        "name": { "type": "string" },
        "address": { "$ref": "#/$defs/address" },
        "contactMethod": { "type": "string", "enum": ["phone", "email"] },
        "phone": { "type": "string" },
        "email": { "type": "string" }
    },
    "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
    "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
    "then": { "required": ["phone"] },
    "else": { "required": ["email"] },
    "additionalProperties": false
}"##;

/// Returns one sentence.
#[tool(side_effects = "none")]
fn test_simple_text() -> &'static str {
    "This is a simple text response for testing."
}

/// Returns an image.
#[tool(side_effects = "none")]
fn test_image_content() -> Content {
    Content::image("image/png", RED_POINT)
}

/// Returns audio.
#[tool(side_effects = "none")]
fn test_audio_content() -> Content {
    Content::audio("audio/wav", SILENCE)
}

/// Returns a document.
#[tool(side_effects = "none")]
fn test_embedded_resource() -> Content {
    Content::resource(
        "test://embedded-resource",
        Some("text/plain"),
        "This is an embedded resource content.",
    )
}

/// Returns a text, an image and a document.
#[tool(side_effects = "none")]
fn test_multiple_content_types() -> Vec<Content> {
    let document = r#"{"test":"data","value":123}"#;
    vec![
        Content::text("Multiple content types test:"),
        Content::image("image/png", RED_POINT),
        Content::resource("test://mixed-content-resource", Some("application/json"), document),
    ]
}

/// Always fails.
#[tool(side_effects = "none")]
fn test_error_handling() -> Result<String> {
    Err(Error::failed("This tool intentionally returns an error for testing"))
}

/// Logs three messages, with a pause between them.
#[tool(side_effects = "none")]
fn test_tool_with_logging(ctx: &Context) -> &'static str {
    ctx.info("Tool execution started");
    std::thread::sleep(PAUSE);
    ctx.info("Tool processing data");
    std::thread::sleep(PAUSE);
    ctx.info("Tool execution completed");
    "Three messages were logged."
}

/// Logs one message.
#[tool(side_effects = "none")]
fn test_logging_tool(ctx: &Context) -> &'static str {
    ctx.info("This message is only for clients that enabled log messages.");
    "One message was logged."
}

/// Reports progress three times, with pauses.
#[tool(side_effects = "none")]
fn test_tool_with_progress(ctx: &Context) -> &'static str {
    ctx.progress(0.0, Some(100.0), "begun");
    std::thread::sleep(PAUSE);
    ctx.progress(50.0, Some(100.0), "half way");
    std::thread::sleep(PAUSE);
    ctx.progress(100.0, Some(100.0), "done");
    "Progress was reported three times."
}

/// Works for a while, so that a client can lose its stream and reconnect.
#[tool(side_effects = "none")]
fn test_reconnection() -> &'static str {
    std::thread::sleep(LONG);
    "The client has reconnected, or was never disconnected."
}

/// Signals the suite to change the list of tools, which a plugin cannot do itself.
#[tool(side_effects = "none")]
fn test_trigger_tool_change() -> &'static str {
    "The tools are about to change."
}

/// Signals the suite to change the list of prompts, which a plugin cannot do itself.
#[tool(side_effects = "none")]
fn test_trigger_prompt_change() -> &'static str {
    "The prompts are about to change."
}

#[derive(Deserialize, JsonSchema)]
struct Greeting {
    /// The greeting, in the arguments and in a header of the request.
    #[schemars(extend("x-mcp-header" = "Greeting"))]
    greeting: String,
}

/// Returns a greeting that an HTTP request has to repeat in the header `Mcp-Param-Greeting`.
#[tool(side_effects = "none")]
fn test_mirrored_argument(args: Greeting) -> String {
    args.greeting
}

/// A tool with a handwritten schema, since Rust types cannot express most of it.
enum Draft2020 {}

impl Tool for Draft2020 {
    const NAME: &'static str = "json_schema_2020_12_tool";

    fn definition() -> Definition {
        Definition {
            name: Self::NAME.to_owned(),
            title: None,
            description: "Takes a name, an address, and a contact method.".to_owned(),
            input_schema: DRAFT_2020_12.to_owned(),
            output_schema: None,
            side_effects: SideEffects::None,
            idempotent: true,
            timeout_ms: None,
            metadata: String::new(),
        }
    }

    fn execute(input: &str, _: &Context) -> Result<Output> {
        Ok(Output::text(format!("Called with {input}")))
    }
}

palisade_guest::export!(
    test_simple_text,
    test_image_content,
    test_audio_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_error_handling,
    test_tool_with_logging,
    test_logging_tool,
    test_tool_with_progress,
    test_reconnection,
    test_trigger_tool_change,
    test_trigger_prompt_change,
    test_mirrored_argument,
    Draft2020,
    asking::test_sampling,
    asking::test_elicitation,
    asking::test_elicitation_sep1034_defaults,
    asking::test_elicitation_sep1330_enums,
    asking::test_missing_capability,
    asking::test_streaming_elicitation,
    asking::test_input_required_result_elicitation,
    asking::test_input_required_result_sampling,
    asking::test_input_required_result_list_roots,
    asking::test_input_required_result_request_state,
    asking::test_input_required_result_tampered_state,
    asking::test_input_required_result_multiple_inputs,
    asking::test_input_required_result_multi_round,
    asking::test_input_required_result_capabilities,
);
palisade_guest::export_resources!(offers::Offers);
palisade_guest::export_prompts!(offers::Offers);
