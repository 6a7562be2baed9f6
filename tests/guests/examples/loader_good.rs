//! A valid guest, for directories in which all other plugins are invalid.

use palisade_guest::tool;

/// Is there.
#[tool(side_effects = "none")]
fn good() -> &'static str {
    "good"
}

/// Is there, too.
#[tool(side_effects = "none")]
fn better() -> &'static str {
    "better"
}

palisade_guest::export!(good, better);
