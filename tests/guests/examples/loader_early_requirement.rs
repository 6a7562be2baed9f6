//! A guest that requires a client capability while it is described.
#![allow(unsafe_code, reason = "exporting by hand, below the SDK, is what this guest is about")]

use palisade_guest::__private::{Call, Guest, ToolError, WitOutput};
use palisade_guest::client::{self, Kind};
use palisade_guest::{Definition, SideEffects};

struct Plugin;

impl Guest for Plugin {
    fn definitions() -> Vec<Definition> {
        client::need(&[Kind::Roots]);
        vec![Definition {
            name: "needing".to_owned(),
            title: None,
            description: "It requires a client.".to_owned(),
            input_schema: r#"{"type": "object"}"#.to_owned(),
            output_schema: None,
            side_effects: SideEffects::None,
            idempotent: false,
            timeout_ms: None,
            metadata: String::new(),
        }]
    }

    fn execute(_: Call) -> Result<WitOutput, ToolError> {
        Err(ToolError::Failed("it is never called".to_owned()))
    }
}

palisade_guest::bindings::export!(Plugin with_types_in palisade_guest::bindings);
