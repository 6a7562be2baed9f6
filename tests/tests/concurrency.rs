//! Tests that concurrent calls share no state, that registry reads take no lock, and that each call
//! has its own instance.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "concurrency/calls.rs"]
mod concurrency_count;
#[path = "concurrency/factories.rs"]
mod factories;
#[path = "concurrency/flood.rs"]
mod flood;
#[path = "concurrency/nested_shares.rs"]
mod nested_shares;
#[path = "concurrency/readers.rs"]
mod readers;
#[path = "concurrency/shares.rs"]
mod shares;

use palisade_tests::is_tested;

palisade_tests::foreach_concurrency!(is_tested);
