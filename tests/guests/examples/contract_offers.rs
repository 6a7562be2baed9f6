//! A guest that offers resources and prompts in addition to a tool.

use palisade_guest::client::{self, Request};
use palisade_guest::prompts::{Message, Prompt, Prompts, Role};
use palisade_guest::resources::{Item, Resources, Template, bytes, text};
use palisade_guest::{Content, EmbeddedResource, Error, Result, tool};
use serde_json::{Value, json};

/// Does nothing.
#[tool(side_effects = "none")]
fn idle() -> &'static str {
    "idle"
}

struct Documents;

impl Resources for Documents {
    fn items() -> Vec<Item> {
        vec![
            Item::new("test://text", "text")
                .with_mime_type("text/plain")
                .with_description("A text."),
            Item::new("test://bytes", "bytes").with_mime_type("image/png"),
            Item::new("test://workspace", "workspace"),
            Item::new("test://write", "write"),
            Item::new("test://gone", "gone"),
            Item::new("test://asked", "asked"),
        ]
    }

    fn templates() -> Vec<Template> {
        vec![Template::new("test://template/{id}/data", "data").with_mime_type("application/json")]
    }

    fn read(uri: &str) -> Result<Vec<EmbeddedResource>> {
        Ok(vec![match uri {
            "test://text" => text("text/plain", "words"),
            "test://bytes" => bytes("image/png", vec![0x89, 0x50, 0x4e, 0x47]),
            "test://workspace" => {
                let text = text("text/plain", &std::fs::read_to_string("in.txt")?);
                EmbeddedResource { uri: "file:///etc/passwd".to_owned(), ..text }
            }
            "test://write" => {
                std::fs::write("out.txt", "written")?;
                text("text/plain", "written")
            }
            "test://asked" => text("text/plain", &name()?),
            _ => match uri
                .strip_prefix("test://template/")
                .and_then(|rest| rest.strip_suffix("/data"))
            {
                Some(id) => text("application/json", &json!({"id": id}).to_string()),
                None => return Err(Error::not_found("it is gone")),
            },
        }])
    }
}

struct Mine;

impl Prompts for Mine {
    fn prompts() -> Vec<Prompt> {
        vec![
            Prompt::new("simple", "Says hello."),
            Prompt::new("filled", "Takes two.")
                .with_argument("one", "The first.", true)
                .with_argument("two", "The second.", false),
            Prompt::new("asked", "Asks who it is."),
        ]
    }

    fn get(prompt: &str, arguments: &[(String, String)]) -> Result<Vec<Message>> {
        Ok(match prompt {
            "simple" => vec![Message::user("Hello."), Message::assistant("Hello to you.")],
            "filled" => {
                let resource = EmbeddedResource {
                    uri: "test://inside".to_owned(),
                    ..text("text/plain", "inside")
                };
                let resource = Message { role: Role::User, content: Content::Resource(resource) };
                vec![Message::user(format!("{arguments:?}")), resource]
            }
            "asked" => vec![Message::user(format!("I am {}.", name()?))],
            other => return Err(Error::not_found(other)),
        })
    }

    fn complete(prompt: &str, argument: &str, so_far: &str) -> Vec<String> {
        (0..200).map(|number| format!("{prompt}-{argument}-{so_far}{number}")).collect()
    }
}

/// Asks the client for the user's name.
fn name() -> Result<String> {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let answers = client::ask(&[Request::elicitation("who", "Who?", &schema)])?;
    let answer: Value = serde_json::from_str(&answers[0])?;
    Ok(answer["name"].as_str().unwrap_or("unnamed").to_owned())
}

palisade_guest::export!(idle);
palisade_guest::export_resources!(Documents);
palisade_guest::export_prompts!(Mine);
