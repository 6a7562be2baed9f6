//! A valid guest, for directories in which all other plugins are invalid.

use palisade_guest::tool;

/// Does nothing.
#[tool(side_effects = "none")]
fn good() -> &'static str {
    "good"
}

/// Does nothing, either.
#[tool(side_effects = "none")]
fn better() -> &'static str {
    "better"
}

palisade_guest::export!(good, better);
