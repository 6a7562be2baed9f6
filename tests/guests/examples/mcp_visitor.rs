//! A guest with one tool, one resource and one prompt, to be added and removed while a server runs.

use palisade_guest::prompts::{Message, Prompt, Prompts, Role};
use palisade_guest::resources::{Item, Resources, text};
use palisade_guest::{Content, EmbeddedResource, Error, Result, tool};

/// Does nothing.
#[tool(side_effects = "none")]
fn visit() -> &'static str {
    "here"
}

enum Visit {}

impl Resources for Visit {
    fn items() -> Vec<Item> {
        vec![Item::new("visit://card", "card")]
    }

    fn read(uri: &str) -> Result<Vec<EmbeddedResource>> {
        match uri {
            "visit://card" => Ok(vec![text("text/plain", "a card")]),
            _ => Err(Error::not_found("there is nothing else")),
        }
    }
}

impl Prompts for Visit {
    fn prompts() -> Vec<Prompt> {
        vec![Prompt::new("greet_the_visitor", "Greets the visitor.")]
    }

    fn get(_: &str, _: &[(String, String)]) -> Result<Vec<Message>> {
        Ok(vec![Message { role: Role::User, content: Content::text("Good day.") }])
    }
}

palisade_guest::export!(visit);
palisade_guest::export_resources!(Visit);
palisade_guest::export_prompts!(Visit);
