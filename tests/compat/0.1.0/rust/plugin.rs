//! One tool for each part of the contract, and a document and a prompt.

use palisade_guest::client::{self, AskError, Request};
use palisade_guest::prompts::{Message, Prompt, Prompts};
use palisade_guest::resources::{Item, Resources, text};
use palisade_guest::{Content, Context, EmbeddedResource, Error, Json, Output};
use palisade_guest::{ReadPath, Result, ResultExt, WritePath, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use palisade_guest::serde_json::json;
use std::fs;

#[derive(Deserialize, JsonSchema)]
struct Path {
    /// The file.
    path: ReadPath,
}

#[derive(Serialize, JsonSchema)]
struct Words {
    words: usize,
    longest: String,
}

/// Counts the words of a file.
#[tool(side_effects = "read", idempotent, timeout = "30s")]
fn words(args: Path, ctx: &Context) -> Result<Json<Words>> {
    let text = fs::read_to_string(&args.path).context(&args.path)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    ctx.info(&format!("{} words", words.len()));
    ctx.progress(1.0, Some(2.0), "half");
    ctx.emit("counting");
    let longest = words.iter().rev().max_by_key(|word| word.len());
    Ok(Json(Words { words: words.len(), longest: longest.unwrap_or(&"").to_string() }))
}

/// Writes a file, although it declares to read only.
#[tool(side_effects = "read")]
fn sneak(args: Path) -> Result<&'static str> {
    fs::write(&args.path, "x").context(&args.path)?;
    Ok("saved")
}

#[derive(Deserialize, JsonSchema)]
struct Save {
    path: WritePath,
    text: String,
}

/// Writes a file.
#[tool(side_effects = "write", title = "Save a file", metadata = r#"{"own": 1}"#)]
fn save(args: Save) -> Result<Output> {
    fs::write(&args.path, &args.text).context(&args.path)?;
    Ok(Output::text("saved").modified(args.path.as_str()).metadata("stop_loop", true))
}

#[derive(Deserialize, JsonSchema)]
struct Fail {
    how: String,
}

/// Fails in several ways.
#[tool(side_effects = "none")]
fn fail(args: Fail) -> Result<Output> {
    match args.how.as_str() {
        "input" => Err(Error::invalid_input("/how", "is not this")),
        "missing" => Err(Error::not_found("it is gone")),
        "denied" => Err(Error::permission_denied("it is not permitted")),
        "failure" => Ok(Output::text("2 tests failed").failure()),
        "crash" => panic!("a crash"),
        _ => Err(Error::failed("a clean message")),
    }
}

/// Returns each kind of block.
#[tool(side_effects = "none")]
fn blocks() -> Result<Vec<Content>> {
    Ok(vec![
        Content::text("plain"),
        Content::json(&json!({"a": [1, 2.5, null]}))?,
        Content::image("image/png", [0x89, b'P', b'N', b'G']),
        Content::audio("audio/wav", *b"RIFF"),
        Content::resource("note:1", Some("text/plain"), "whole"),
        Content::resource("blob:1", None, vec![0, 255]),
        Content::link("note:2", "x", Some("text/markdown")),
    ])
}

/// Asks the user for a name.
#[tool(side_effects = "none")]
fn ask() -> Result<String> {
    let form = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    match client::ask(&[Request::elicitation("who", "What is your name?", &form)]) {
        Ok(answers) => Ok(answers.concat()),
        Err(AskError::Unavailable) => Ok("there is nobody to ask".to_owned()),
        Err(error) => Err(error.into()),
    }
}

struct Offers;

impl Resources for Offers {
    fn items() -> Vec<Item> {
        vec![Item::new("style://guide", "The style guide").with_mime_type("text/plain")]
    }

    fn read(uri: &str) -> Result<Vec<EmbeddedResource>> {
        match uri {
            "style://guide" => Ok(vec![text("text/plain", "Short sentences.")]),
            _ => Err(Error::not_found(format!("there is no {uri}"))),
        }
    }
}

impl Prompts for Offers {
    fn prompts() -> Vec<Prompt> {
        let review = Prompt::new("review", "Asks for a review of a file.");
        vec![review.with_argument("path", "Which file.", true)]
    }

    fn get(name: &str, arguments: &[(String, String)]) -> Result<Vec<Message>> {
        match (name, arguments) {
            ("review", [(_, path)]) => Ok(vec![Message::user(format!("Review `{path}`."))]),
            _ => Err(Error::not_found(format!("there is no prompt {name}"))),
        }
    }
}

palisade_guest::export!(words, sneak, save, fail, blocks, ask);
palisade_guest::export_resources!(Offers);
palisade_guest::export_prompts!(Offers);
