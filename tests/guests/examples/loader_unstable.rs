//! A guest whose description differs each time. It uses the only difference between two
//! descriptions: their speed.
#![allow(unsafe_code, reason = "exporting by hand, below the SDK, is what this guest is about")]

use palisade_guest::__private::{Call, Guest, ToolError, WitOutput};
use palisade_guest::{Definition, SideEffects};

struct Unstable;

impl Guest for Unstable {
    fn definitions() -> Vec<Definition> {
        vec![Definition {
            name: "unstable".to_owned(),
            title: None,
            description: format!("Counted {:?}.", [(); 16].map(|()| counted())),
            input_schema: r#"{"type": "object"}"#.to_owned(),
            output_schema: None,
            side_effects: SideEffects::None,
            idempotent: false,
            timeout_ms: None,
            metadata: String::new(),
        }]
    }

    fn execute(_: Call) -> Result<WitOutput, ToolError> {
        Err(ToolError::Failed("it is never loaded".to_owned()))
    }
}

/// Counts the polls until a timer is ready. Sixteen such counts are practically never equal in two
/// runs.
fn counted() -> u32 {
    let timer = wasip2::clocks::monotonic_clock::subscribe_duration(1_000_000);
    let mut asked = 0;
    while !timer.ready() {
        asked += 1;
    }
    asked
}

palisade_guest::bindings::export!(Unstable with_types_in palisade_guest::bindings);
