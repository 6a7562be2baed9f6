//! The two tools of the comparison with other servers (`cargo xtask rivals`), written with the SDK
//! like any plugin.

use palisade_guest::tool;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// A text.
    text: String,
}

/// Returns the text.
#[tool(side_effects = "none")]
fn echo(args: Args) -> String {
    args.text
}

/// Returns the checksum of the text's bytes: 32-bit FNV-1a.
#[tool(side_effects = "none")]
fn checksum(args: Args) -> String {
    let fold = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    format!("{:08x}", args.text.bytes().fold(0x811c_9dc5, fold))
}

palisade_guest::export!(echo, checksum);
