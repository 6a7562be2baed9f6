//! A guest that allocates a given amount of memory.

use palisade_guest::tool;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// How much, in MiB.
    mib: usize,
}

/// Takes memory and touches all of it.
#[tool(side_effects = "none")]
fn take(args: Args) -> String {
    let taken = vec![1_u8; args.mib << 20];
    format!("{} bytes", std::hint::black_box(taken).len())
}

/// Asks for memory, and makes do without it.
#[tool(side_effects = "none")]
fn ask(args: Args) -> String {
    let mut taken: Vec<u8> = Vec::new();
    match taken.try_reserve_exact(args.mib << 20) {
        Ok(()) => "granted".to_owned(),
        Err(_) => "refused, and none the worse for it".to_owned(),
    }
}

palisade_guest::export!(take, ask);
