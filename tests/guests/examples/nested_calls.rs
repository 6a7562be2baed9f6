//! A guest that calls other tools as its input says.

use palisade_guest::tools::{self, Failure, Reply, Request};
use palisade_guest::{Json, Result, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The calls.
    calls: Vec<Planned>,
    /// How they are made.
    #[serde(default)]
    order: Order,
    /// How often they are made.
    #[serde(default = "once")]
    times: usize,
}

#[derive(Deserialize, JsonSchema)]
struct Planned {
    tool: String,
    #[serde(default)]
    input: Value,
    #[serde(default)]
    place: Option<String>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Order {
    /// One after the other.
    #[default]
    Sequence,
    /// All at once.
    AtOnce,
}

fn once() -> usize {
    1
}

/// The class of a failure and its reason, or the text of an output.
#[derive(Serialize, JsonSchema)]
struct Told {
    class: Option<String>,
    text: String,
}

fn told(result: std::result::Result<Reply, Failure>) -> Told {
    match result {
        Ok(reply) => Told { class: None, text: reply.text() },
        Err(Failure { class, message, .. }) => Told { class: Some(class), text: message },
    }
}

fn run(args: &Args) -> Json<Vec<Told>> {
    let request = |planned: &Planned| {
        let request = Request::new(&planned.tool, &planned.input);
        match &planned.place {
            Some(place) => request.at(place),
            None => request,
        }
    };
    let mut results = Vec::new();
    for _ in 0..args.times {
        match args.order {
            Order::Sequence => results.extend(args.calls.iter().map(|planned| {
                let alone = tools::call_all(vec![request(planned)]).pop();
                told(alone.unwrap_or_else(|| tools::call(&planned.tool, &planned.input)))
            })),
            Order::AtOnce => {
                let requests = args.calls.iter().map(request).collect();
                results.extend(tools::call_all(requests).into_iter().map(told));
            }
        }
    }
    // Only the last results, so that many calls have a small output.
    let skipped = results.len().saturating_sub(64);
    Json(results.into_iter().skip(skipped).collect())
}

/// Calls other tools.
#[tool(side_effects = "none")]
fn nested_run(args: Args) -> Json<Vec<Told>> {
    run(&args)
}

/// Calls other tools, in class read.
#[tool(side_effects = "read")]
fn nested_read(args: Args) -> Json<Vec<Told>> {
    run(&args)
}

/// Lists the tools that it may call.
#[tool(side_effects = "none")]
fn nested_list() -> Json<Vec<String>> {
    Json(tools::list().into_iter().map(|tool| tool.name).collect())
}

/// Allocates this many MiB.
#[derive(Deserialize, JsonSchema)]
struct Size {
    mib: usize,
}

/// Holds memory, in class none.
#[tool(side_effects = "none")]
fn nested_hold(size: Size) -> String {
    let held = vec![1_u8; size.mib << 20];
    format!("{} bytes", std::hint::black_box(&held).len())
}

/// Computes for ever.
#[tool(side_effects = "none")]
fn nested_spin() -> String {
    let mut number = 0_u64;
    loop {
        number = std::hint::black_box(number.wrapping_add(1));
        if number == u64::MAX {
            return String::new();
        }
    }
}

palisade_guest::export!(nested_run, nested_read, nested_list, nested_hold, nested_spin);
