//! A guest that sends a request to the client while it is described.
#![allow(unsafe_code, reason = "exporting by hand, below the SDK, is what this guest is about")]

use palisade_guest::__private::{Call, Guest, ToolError, WitOutput};
use palisade_guest::client::{self, Request};
use palisade_guest::{Definition, SideEffects};

struct Plugin;

impl Guest for Plugin {
    fn definitions() -> Vec<Definition> {
        let (can, answer) = (client::supported().len(), client::ask(&[Request::roots("r")]));
        vec![Definition {
            name: "asking".to_owned(),
            title: None,
            description: format!("{can} kinds, {answer:?}"),
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
