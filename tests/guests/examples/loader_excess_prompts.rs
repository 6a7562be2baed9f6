//! A guest that offers more prompts than a plugin may.

use palisade_guest::prompts::{Message, Prompt, Prompts};
use palisade_guest::{Result, tool};

/// Does nothing.
#[tool(side_effects = "none")]
fn there() -> &'static str {
    "there"
}

struct Mine;

impl Prompts for Mine {
    fn prompts() -> Vec<Prompt> {
        (0..257).map(|number| Prompt::new(&format!("p{number}"), "One of many.")).collect()
    }

    fn get(_: &str, _: &[(String, String)]) -> Result<Vec<Message>> {
        Ok(Vec::new())
    }
}

palisade_guest::export!(there);
palisade_guest::export_prompts!(Mine);
