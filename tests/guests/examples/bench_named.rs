//! The guest of the benchmark with a thousand plugins: the benchmark replaces the digits in the
//! tool's name within the component, which yields a different plugin each time.

use palisade_guest::__private::{Call, Guest, ToolError, WitOutput};
use palisade_guest::{Content, Definition, SideEffects};

struct Plugin;

impl Guest for Plugin {
    fn definitions() -> Vec<Definition> {
        vec![Definition {
            name: "bench_named_0000".to_owned(),
            title: None,
            description: "For the benchmark.".to_owned(),
            input_schema: r#"{"type":"object"}"#.to_owned(),
            output_schema: None,
            side_effects: SideEffects::None,
            idempotent: true,
            timeout_ms: None,
            metadata: String::new(),
        }]
    }

    fn execute(call: Call) -> Result<WitOutput, ToolError> {
        Ok(WitOutput {
            content: vec![Content::Text(call.input)],
            success: true,
            metadata: String::new(),
            files_modified: Vec::new(),
            command_executed: None,
        })
    }
}

#[cfg(target_family = "wasm")]
palisade_guest::bindings::export!(Plugin with_types_in palisade_guest::bindings);
