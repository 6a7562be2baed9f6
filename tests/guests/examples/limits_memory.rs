//! A guest that allocates a given amount of memory.

use palisade_guest::tool;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The amount, in MiB.
    mib: usize,
}

/// Allocates memory and touches all of it.
#[tool(side_effects = "none")]
fn take(args: Args) -> String {
    let taken = vec![1_u8; args.mib << 20];
    format!("{} bytes", std::hint::black_box(taken).len())
}

/// Tries to allocate memory, and succeeds without it.
#[tool(side_effects = "none")]
fn ask(args: Args) -> String {
    let mut taken: Vec<u8> = Vec::new();
    match taken.try_reserve_exact(args.mib << 20) {
        Ok(()) => "granted".to_owned(),
        Err(_) => "refused, without harm".to_owned(),
    }
}

palisade_guest::export!(take, ask);
