//! A request for a resource, a prompt or a completion, which runs as the call of a tool does.

use super::offered::{Offered, ROLES};
use crate::sandbox::bindings::exports::palisade::tool::tool as wit;
use crate::sandbox::bindings::offering::prompting::exports::palisade::tool::prompts;
use crate::sandbox::bindings::offering::{prompting, resourceful};
use crate::sandbox::bindings::palisade::tool::types::{Content, EmbeddedResource};
use crate::sandbox::limits;
use crate::sandbox::run::State;
use serde_json::{Value, json};
use wasmtime::Store;
use wasmtime::component::InstancePre;

/// The longest list in JSON that is built, in bytes.
const MOST_JSON: usize = limits::RESULT as usize;

/// Sends one request to the plugin, and returns its answer in the form of a tool's output.
pub(super) async fn send(
    offered: Offered,
    pre: &InstancePre<State>,
    store: &mut Store<State>,
    input: &Value,
) -> wasmtime::Result<Result<wit::Output, wit::ToolError>> {
    let text = |name: &str| input[name].as_str().unwrap_or_default();
    let instance = pre.instantiate_async(&mut *store).await?;
    store.data_mut().limiter.begin();
    if offered == Offered::Read {
        let guest = resourceful::ResourcefulIndices::new(pre)?.load(&mut *store, &instance)?;
        let uri = text("uri");
        let read = guest.palisade_tool_resources().call_read(&mut *store, uri).await?;
        return Ok(read.map(|parts| output(document(uri, parts), "")));
    }
    let guest = prompting::PromptingIndices::new(pre)?.load(&mut *store, &instance)?;
    let guest = guest.palisade_tool_prompts();
    if offered == Offered::Complete {
        let completions = guest
            .call_complete(&mut *store, text("prompt"), text("argument"), text("so_far"))
            .await?;
        return Ok(Ok(output(vec![json_list(completions)], "")));
    }
    let arguments = input["arguments"].as_object().into_iter().flatten();
    let arguments: Vec<(String, String)> = arguments
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    let got = guest.call_get(&mut *store, text("name"), &arguments).await?;
    Ok(got.map(messages))
}

/// Converts texts to a list in JSON. A list that is longer than a result is not built, since each
/// character can take six times its length: its place takes a block that is refused for its length.
fn json_list(texts: Vec<String>) -> Content {
    let length = |byte: u8| match byte {
        0..0x20 => r"\u0000".len(),
        b'"' | b'\\' => 2,
        _ => 1,
    };
    let lengths = texts.iter().map(|text| text.bytes().map(length).sum::<usize>() + "\"\",".len());
    match lengths.sum::<usize>() {
        0..=MOST_JSON => Content::Json(Value::from(texts).to_string()),
        _ => Content::Text(" ".repeat(MOST_JSON + 1)),
    }
}

/// Converts the parts of a resource. Each gets the requested URI, whatever the plugin calls it. If
/// the URIs alone exceed the size of a result, only as many parts are converted as are needed to
/// exceed it.
fn document(uri: &str, parts: Vec<EmbeddedResource>) -> Vec<Content> {
    let most = limits::RESULT as usize / uri.len().max(1) + 1;
    let named = |part| Content::Resource(EmbeddedResource { uri: uri.to_owned(), ..part });
    parts.into_iter().take(most).map(named).collect()
}

fn messages(messages: Vec<prompts::Message>) -> wit::Output {
    let role = |message: &prompts::Message| match message.role {
        prompts::Role::User => "user",
        prompts::Role::Assistant => "assistant",
    };
    let roles: Vec<&str> = messages.iter().map(role).collect();
    let metadata = json!({ROLES: roles}).to_string();
    output(messages.into_iter().map(|message| message.content).collect(), &metadata)
}

fn output(content: Vec<Content>, metadata: &str) -> wit::Output {
    let metadata = metadata.to_owned();
    wit::Output {
        content,
        success: true,
        metadata,
        files_modified: Vec::new(),
        command_executed: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::bindings::palisade::tool::types::ResourceBody;

    fn parts(count: usize) -> Vec<EmbeddedResource> {
        let part = EmbeddedResource {
            uri: "of:guest".to_owned(),
            mime: None,
            body: ResourceBody::Text(String::new()),
        };
        vec![part; count]
    }

    #[test]
    fn document_parts_have_the_requested_uri() {
        let named = document("of:caller", parts(3));
        assert_eq!(named.len(), 3);
        let is_asked_for =
            |part: &Content| matches!(part, Content::Resource(part) if part.uri == "of:caller");
        assert!(named.iter().all(is_asked_for), "{named:?}");
    }

    #[test]
    fn excessive_completions_are_not_created() {
        let uri = "a".repeat(1 << 20);
        let bytes = document(&uri, parts(1_000)).len() * uri.len();
        let most = limits::RESULT as usize;
        assert!(
            most < bytes && bytes <= most + 2 * uri.len(),
            "{bytes} bytes of names for a result of {most}"
        );
    }

    #[test]
    fn list_that_is_too_long_in_json_is_not_built() {
        let texts = |letter: &str| vec![letter.repeat(MOST_JSON / 3), "b".to_owned()];
        assert!(matches!(json_list(texts("a")), Content::Json(list) if list.len() < MOST_JSON));
        for long in ["\u{1b}", "\\\\"] {
            let Content::Text(text) = json_list(texts(long)) else { panic!("{long:?} is built") };
            assert_eq!(text.len(), MOST_JSON + 1);
        }
    }
}
