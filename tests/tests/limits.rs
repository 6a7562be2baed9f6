//! Tests the limits on guests: every resource is bounded, an error names the limit, and use below
//! it succeeds.
//!
//! Each limit has a pair of tests, `…_obeyed` and `…_violated`.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "limits/files.rs"]
mod limits_files;
#[path = "limits/handles.rs"]
mod limits_handles;
#[path = "limits/memory.rs"]
mod limits_memory;
#[path = "limits/output.rs"]
mod limits_output;
#[path = "limits/raw.rs"]
mod limits_raw;
#[path = "limits/recursion.rs"]
mod limits_recursion;
#[path = "limits/time.rs"]
mod limits_time;
#[path = "limits/of_plugin.rs"]
mod of_plugin;

use palisade_tests::is_tested;

palisade_tests::foreach_limits!(is_tested);
