//! A guest that recurses to a given depth.

use palisade_guest::tool;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The depth.
    depth: u64,
}

/// Recurses to the depth.
#[tool(side_effects = "none")]
fn recurse(args: Args) -> String {
    down(args.depth).to_string()
}

fn down(left: u64) -> u64 {
    let frame = std::hint::black_box([left; 8]);
    if left == 0 { 0 } else { down(frame[0] - 1) + u64::from(frame[1] > 0) }
}

palisade_guest::export!(recurse);
