//! Calling tools from a program of one's own: `cargo run --release -p embed`.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use palisade::{Host, json};

#[tokio::main]
async fn main() -> Result<(), palisade::BuildError> {
    // `.plugins("directory")` adds plugins; `.policy(…)`, `.confirmer(…)` and `.limits(…)` change what may run, and how far.
    let host = Host::builder().workspace(".").build()?;
    for (tool, input) in [
        ("calculate", json!({"expression": "2 ^ 10 / 3"})),
        ("read_file", json!({"path": "Cargo.toml", "end_line": 0})),
        ("read_file", json!({"path": "../secret"})),
    ] {
        // Never panics and never returns `Err`: whatever happens inside, there is a result that a model can read.
        let result = host.call(tool, input, json!({})).await;
        println!("{tool}: {result}");
    }
    Ok(())
}
