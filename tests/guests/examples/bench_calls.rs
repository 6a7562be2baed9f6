//! The guest of the call benchmarks: one tool that returns its input, and one that reads a file. It
//! implements the interface without the SDK, so that the benchmark measures the host and not the
//! guest.

use palisade_guest::__private::{Call, Guest, ToolError, WitOutput};
use palisade_guest::{Content, Definition, SideEffects};

struct Plugin;

impl Guest for Plugin {
    fn definitions() -> Vec<Definition> {
        vec![
            tool(
                "echo",
                r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#,
                SideEffects::None,
            ),
            tool(
                "read",
                r#"{"type":"object","properties":{"path":{"type":"string","format":"workspace-path"}},"required":["path"]}"#,
                SideEffects::Read,
            ),
        ]
    }

    fn execute(call: Call) -> Result<WitOutput, ToolError> {
        let failed = |error: String| ToolError::Failed(error);
        if call.tool == "echo" {
            return Ok(text(call.input));
        }
        let input: serde_json::Value =
            serde_json::from_str(&call.input).map_err(|error| failed(error.to_string()))?;
        let path = input["path"].as_str().unwrap_or_default();
        std::fs::read_to_string(path).map(text).map_err(|error| failed(error.to_string()))
    }
}

fn text(text: String) -> WitOutput {
    WitOutput {
        content: vec![Content::Text(text)],
        success: true,
        metadata: String::new(),
        files_modified: Vec::new(),
        command_executed: None,
    }
}

fn tool(name: &str, input_schema: &str, side_effects: SideEffects) -> Definition {
    Definition {
        name: name.to_owned(),
        title: None,
        description: "For the benchmark.".to_owned(),
        input_schema: input_schema.to_owned(),
        output_schema: None,
        side_effects,
        idempotent: true,
        timeout_ms: None,
        metadata: String::new(),
    }
}

#[cfg(target_family = "wasm")]
palisade_guest::bindings::export!(Plugin with_types_in palisade_guest::bindings);
