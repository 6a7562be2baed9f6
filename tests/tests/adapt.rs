//! Tests components of other worlds: their functions are tools with schemas that hold, under the
//! class that the operator gives.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "adapt/depot.rs"]
mod adapt_depot;
#[path = "adapt/limits.rs"]
mod limits;
#[path = "adapt/loading.rs"]
mod loading;
#[path = "adapt/program.rs"]
mod program;
#[path = "adapt/schemas.rs"]
mod schemas;

use palisade::SideEffects;
use palisade_tests::case::Plugins;
use palisade_tests::guest::ADAPT_DEPOT;
use palisade_tests::{Case, is_tested};

palisade_tests::foreach_adapt!(is_tested);

/// Returns a call of a function of the depot, as a tool of this class.
fn depot(class: SideEffects, tool: &str) -> Case {
    Case::new(Plugins::Adapted(ADAPT_DEPOT, class), tool)
}
