//! A plugin without fault, for the directories in which all others have one.

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
