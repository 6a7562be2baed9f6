//! A minimal program that embeds Palisade: `cargo run --release -p embed`.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use palisade::{Host, json};

#[tokio::main]
async fn main() -> Result<(), palisade::BuildError> {
    // `.plugins(…)` adds plugins; `.policy(…)`, `.confirmer(…)` and `.limits(…)` set their bounds.
    let host = Host::builder().workspace(".").build()?;
    for (tool, input) in [
        ("calculate", json!({"expression": "2 ^ 10 / 3"})),
        ("read_file", json!({"path": "Cargo.toml", "end_line": 0})), // the first line
        ("read_file", json!({"path": "../secret"})),
    ] {
        // Never an `Err`: a model can read every result. The last argument is passed to the tool.
        let result = host.call(tool, input, json!({})).await;
        println!("{tool}: {result}");
    }
    Ok(())
}
