//! The resources and prompts that the conformance suite reads.

use palisade_guest::prompts::{Argument, Message, Prompt, Prompts, Role};
use palisade_guest::resources::{Item, Resources, Template};
use palisade_guest::{Content, EmbeddedResource, Error, ResourceBody, Result};
use serde_json::json;

use crate::RED_POINT;
use crate::asking::{answer, form};

/// The resources and prompts of the guest.
pub(crate) enum Offers {}

/// The prefix and the suffix of the number in the resource template.
const AROUND: (&str, &str) = ("test://template/", "/data");

impl Resources for Offers {
    fn items() -> Vec<Item> {
        vec![
            item("static-text", "A text that never changes", "text/plain"),
            item("static-binary", "A picture that never changes", "image/png"),
            item("watched-resource", "A text that clients can subscribe to", "text/plain"),
        ]
    }

    fn templates() -> Vec<Template> {
        vec![Template {
            uri_template: format!("{}{{id}}{}", AROUND.0, AROUND.1),
            name: "template".to_owned(),
            title: None,
            description: Some("Data about a number".to_owned()),
            mime_type: Some("application/json".to_owned()),
        }]
    }

    fn read(uri: &str) -> Result<Vec<EmbeddedResource>> {
        let (mime, body) = match uri {
            "test://static-text" => {
                ("text/plain", text("This is the content of the static text resource."))
            }
            "test://static-binary" => ("image/png", ResourceBody::Bytes(RED_POINT.to_vec())),
            "test://watched-resource" => ("text/plain", text("Nothing has happened yet.")),
            _ => ("application/json", data(uri)?),
        };
        Ok(vec![EmbeddedResource { uri: uri.to_owned(), mime: Some(mime.to_owned()), body }])
    }
}

fn item(name: &str, description: &str, mime: &str) -> Item {
    Item {
        uri: format!("test://{name}"),
        name: name.to_owned(),
        title: None,
        description: Some(description.to_owned()),
        mime_type: Some(mime.to_owned()),
        size: None,
    }
}

fn text(text: &str) -> ResourceBody {
    ResourceBody::Text(text.to_owned())
}

/// Returns the resource that matches the template.
fn data(uri: &str) -> Result<ResourceBody> {
    let id = uri.strip_prefix(AROUND.0).and_then(|rest| rest.strip_suffix(AROUND.1));
    let id = id.ok_or_else(|| Error::not_found(format!("there is no resource {uri}")))?;
    let value = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
    Ok(ResourceBody::Text(value.to_string()))
}

impl Prompts for Offers {
    fn prompts() -> Vec<Prompt> {
        vec![
            prompt("test_simple_prompt", "Says one sentence", &[]),
            prompt("test_prompt_with_arguments", "Repeats its arguments", &["arg1", "arg2"]),
            prompt("test_prompt_with_embedded_resource", "Hands out a document", &["resourceUri"]),
            prompt("test_prompt_with_image", "Shows a picture", &[]),
            prompt(
                "test_input_required_result_prompt",
                "Asks the client before it says anything",
                &[],
            ),
        ]
    }

    fn get(name: &str, arguments: &[(String, String)]) -> Result<Vec<Message>> {
        let argument = |name: &str| argument(arguments, name);
        let contents = match name {
            "test_simple_prompt" => vec![Content::text("This is a simple prompt for testing.")],
            "test_prompt_with_arguments" => vec![Content::text(format!(
                "Prompt with arguments: arg1='{}', arg2='{}'",
                argument("arg1")?,
                argument("arg2")?
            ))],
            "test_prompt_with_embedded_resource" => document(argument("resourceUri")?),
            "test_prompt_with_image" => {
                vec![
                    Content::image("image/png", RED_POINT),
                    Content::text("Please analyze the image above."),
                ]
            }
            "test_input_required_result_prompt" => vec![Content::text(context()?)],
            _ => return Err(Error::not_found(format!("there is no prompt {name}"))),
        };
        Ok(contents.into_iter().map(|content| Message { role: Role::User, content }).collect())
    }

    fn complete(prompt: &str, argument: &str, so_far: &str) -> Vec<String> {
        if prompt != "test_prompt_with_arguments" || argument != "arg1" {
            return Vec::new();
        }
        let known = ["park", "party", "test", "testing"];
        known
            .iter()
            .filter(|word| word.starts_with(so_far))
            .map(|word| (*word).to_owned())
            .collect()
    }
}

fn prompt(name: &str, description: &str, arguments: &[&str]) -> Prompt {
    let argument =
        |name: &&str| Argument { name: (*name).to_owned(), description: None, required: true };
    Prompt {
        name: name.to_owned(),
        title: None,
        description: description.to_owned(),
        arguments: arguments.iter().map(argument).collect(),
    }
}

/// Returns a required argument.
fn argument<'a>(arguments: &'a [(String, String)], name: &str) -> Result<&'a str> {
    let found = arguments.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    found.ok_or_else(|| Error::invalid_input(name, "it is missing; a text is expected"))
}

fn document(uri: &str) -> Vec<Content> {
    vec![
        Content::resource(uri, Some("text/plain"), "Embedded resource content for testing."),
        Content::text("Please process the embedded resource above."),
    ]
}

/// Asks the client for the context of the prompt.
fn context() -> Result<String> {
    let fields = json!({ "context": { "type": "string" } });
    let said = answer(form("user_context", "What context should the prompt use?", &fields))?;
    Ok(format!("The context is: {}", said["context"]))
}
