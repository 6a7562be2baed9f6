//! A guest whose prompts differ each time that they are listed.

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
        vec![Prompt::new("p", &format!("Counted {:?}.", [(); 16].map(|()| counted())))]
    }

    fn get(_: &str, _: &[(String, String)]) -> Result<Vec<Message>> {
        Ok(Vec::new())
    }
}

/// Counts the polls until a timer is ready. Sixteen such counts are practically never equal in two
/// runs.
fn counted() -> u32 {
    let timer = wasip2::clocks::monotonic_clock::subscribe_duration(1_000_000);
    let mut asked = 0;
    while !timer.ready() {
        asked += 1;
    }
    asked
}

palisade_guest::export!(there);
palisade_guest::export_prompts!(Mine);
