//! A guest that returns all information about its call.

use palisade_guest::{Context, Json, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// Whether to return the call's id, which differs from call to call.
    #[serde(default)]
    with_id: bool,
    /// The upper bound of the remaining time, in milliseconds.
    #[serde(default)]
    at_most_ms: u64,
}

#[derive(Serialize, JsonSchema)]
struct Seen {
    call_id: Option<String>,
    session_id: Option<String>,
    turn_id: Option<String>,
    caller: Value,
    metadata: Value,
    time_is_left: bool,
    time_is_bounded: bool,
}

/// Returns the context of the call.
#[tool(side_effects = "none")]
fn see(args: Args, ctx: &Context) -> Json<Seen> {
    let left = ctx.remaining().as_millis();
    Json(Seen {
        call_id: args.with_id.then(|| ctx.call_id().to_owned()),
        session_id: ctx.session_id().map(str::to_owned),
        turn_id: ctx.turn_id().map(str::to_owned),
        caller: ctx.caller().clone(),
        metadata: ctx.metadata().clone(),
        time_is_left: left > 0,
        time_is_bounded: left <= u128::from(args.at_most_ms),
    })
}

/// Returns its input as received from the host.
#[tool(side_effects = "none")]
fn input(args: Value) -> String {
    args.to_string()
}

palisade_guest::export!(see, input);
