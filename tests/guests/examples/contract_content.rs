//! A guest that returns each kind of content block.

use palisade_guest::{Content, Error, Result, tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The kinds of blocks.
    blocks: Vec<String>,
}

/// Returns the requested blocks.
#[tool(side_effects = "none")]
fn give(args: Args) -> Result<Vec<Content>> {
    args.blocks.iter().map(|name| block(name)).collect()
}

fn block(name: &str) -> Result<Content> {
    Ok(match name {
        "text" => Content::text("plain"),
        "json" => Content::Json(r#"{"b": [1, 2.5, null], "a": "ü"}"#.to_owned()),
        "not-json" => Content::Json("{nope".to_owned()),
        "twice-json" => Content::Json(r#"{"a": 1, "a": 2}"#.to_owned()),
        "image" => Content::image("image/png", [0x89, b'P', b'N', b'G']),
        "audio" => Content::audio("audio/wav", *b"RIFF"),
        "resource-text" => Content::resource("note:1", Some("text/plain"), "whole"),
        "resource-bytes" => Content::resource("blob:1", None, vec![0, 255]),
        "link" => Content::link("note:2", "x", Some("text/markdown")),
        "file-link" => Content::link("\tFI\nLE:///etc/passwd", "harmless", None),
        "file-resource" => Content::resource("file:///etc/shadow", None, "harmless"),
        other => {
            return Err(Error::invalid_input("blocks", format!("there is no block `{other}`")));
        }
    })
}

palisade_guest::export!(give);
