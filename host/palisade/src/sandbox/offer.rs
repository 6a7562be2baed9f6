//! The resources and prompts of a plugin: listed when the plugin is described, and read in calls
//! that run as those of tools do.

use super::Sandbox;
use super::bindings::exports::palisade::tool::tool as wit;
use super::bindings::offering::prompting::exports::palisade::tool::prompts;
use super::bindings::offering::resourceful::exports::palisade::tool::resources;
use super::bindings::offering::{prompting, resourceful};
use super::bindings::palisade::tool::types::{Content, EmbeddedResource};
use super::describe::OtherTypes;
use super::state::State;
use super::wasm_tool::{Entry, WasmTool};
use super::{Limits, Prepared, limits};
use crate::execution::{Factory, Tool};
use crate::tool::offer::{Argument, Documents, Item, Offer, Prompt, Template};
use crate::tool::schema::Schema;
use crate::tool::{Definition, SideEffects};
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use wasmtime::Store;
use wasmtime::component::{Instance, InstancePre};

/// The key in the metadata of an output under which the roles of a prompt's messages are listed.
pub const ROLES: &str = "roles";

/// A kind of request to a plugin with resources or prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    /// Reads a resource: `{"uri"}`. Its contents are the blocks of the output.
    Read,
    /// Gets a prompt: `{"name", "arguments"}`. Its messages are the blocks of the output, and their
    /// roles are in the metadata.
    Get,
    /// Completes an argument: `{"prompt", "argument", "so_far"}`. The output is one JSON block with
    /// a list of texts.
    Complete,
}

impl Offered {
    /// Returns the schema of the input, which is built once for all plugins.
    fn schema(self) -> Option<Schema> {
        static SCHEMAS: [OnceLock<Option<Schema>>; 3] = [const { OnceLock::new() }; 3];
        SCHEMAS.get(self as usize)?.get_or_init(|| Schema::input(self.described()).ok()).clone()
    }

    fn described(self) -> Value {
        let (properties, required) = match self {
            Self::Read => (json!({"uri": {"type": "string"}}), json!(["uri"])),
            Self::Get => {
                let arguments =
                    json!({"type": "object", "additionalProperties": {"type": "string"}});
                (
                    json!({"name": {"type": "string"}, "arguments": arguments}),
                    json!(["name", "arguments"]),
                )
            }
            Self::Complete => {
                let text = json!({"type": "string"});
                (
                    json!({"prompt": text, "argument": text, "so_far": text}),
                    json!(["prompt", "argument", "so_far"]),
                )
            }
        };
        json!({"type": "object", "properties": properties, "required": required})
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Read => "resources",
            Self::Get => "prompts",
            Self::Complete => "completions",
        }
    }
}

impl Sandbox {
    /// Returns a tool of class `read` for one kind of request to a plugin with this name. No client
    /// can call the tool by name. Returns `None` if no tool name can be derived.
    pub(crate) fn offering(
        &self,
        name: &str,
        plugin: &Arc<Prepared>,
        offered: Offered,
        limits: Limits,
    ) -> Option<(Definition, Factory)> {
        let plain = |character: char| {
            if character.is_ascii_alphanumeric() { character.to_ascii_lowercase() } else { '_' }
        };
        let plain: String = name.chars().take(40).map(plain).collect();
        let name = format!("of_{plain}_{}", offered.suffix());
        let description = "What a plugin offers besides its tools.";
        let definition =
            Definition::with_schema(&name, description, SideEffects::Read, offered.schema()?)
                .ok()?;
        let sandbox = self.clone();
        let plugin = plugin.clone();
        let own = definition.clone();
        let make = move || {
            let entry = Entry::Offered(offered);
            Box::new(WasmTool::new(&sandbox, &plugin, &own, entry, limits)) as Box<dyn Tool>
        };
        Some((definition, Arc::new(make)))
    }
}

/// Asks the plugin for its resources and prompts.
pub(super) async fn described(
    pre: &InstancePre<State>,
    instance: &Instance,
    store: &mut Store<State>,
) -> wasmtime::Result<Offer> {
    let other_types = |error: wasmtime::Error| OtherTypes::error(&error);
    let has = |name: &str| pre.component().get_export_index(None, name).is_some();
    let mut offer = Offer::default();
    if has("palisade:tool/resources@0.1.0") {
        let guest = resourceful::ResourcefulIndices::new(pre)
            .and_then(|indices| indices.load(&mut *store, instance));
        let guest = guest.map_err(other_types)?;
        let (items, templates) = guest.palisade_tool_resources().call_describe(&mut *store).await?;
        offer.documents = Some(documents(items, templates));
    }
    if has("palisade:tool/prompts@0.1.0") {
        let guest = prompting::PromptingIndices::new(pre)
            .and_then(|indices| indices.load(&mut *store, instance));
        let guest = guest.map_err(other_types)?;
        let described = guest.palisade_tool_prompts().call_describe(&mut *store).await?;
        offer.prompts = Some(described.into_iter().map(prompt).collect());
    }
    Ok(offer)
}

/// Sends one request to the plugin, and returns its answer in the form of a tool's output.
pub(super) async fn called(
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
        let going_on = guest
            .call_complete(&mut *store, text("prompt"), text("argument"), text("so_far"))
            .await?;
        return Ok(Ok(output(vec![Content::Json(Value::from(going_on).to_string())], "")));
    }
    let arguments = input["arguments"].as_object().into_iter().flatten();
    let arguments: Vec<(String, String)> = arguments
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    let got = guest.call_get(&mut *store, text("name"), &arguments).await?;
    Ok(got.map(messages))
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

fn documents(items: Vec<resources::Item>, templates: Vec<resources::Template>) -> Documents {
    let item = |it: resources::Item| Item {
        uri: it.uri,
        name: it.name,
        title: it.title,
        description: it.description,
        mime: it.mime_type,
        size: it.size,
    };
    let template = |it: resources::Template| Template {
        uri: it.uri_template,
        name: it.name,
        title: it.title,
        description: it.description,
        mime: it.mime_type,
    };
    Documents {
        items: items.into_iter().map(item).collect(),
        templates: templates.into_iter().map(template).collect(),
    }
}

fn prompt(prompt: prompts::Prompt) -> Prompt {
    let argument = |it: prompts::Argument| Argument {
        name: it.name,
        description: it.description,
        required: it.required,
    };
    let arguments = prompt.arguments.into_iter().map(argument).collect();
    Prompt { name: prompt.name, title: prompt.title, description: prompt.description, arguments }
}

#[cfg(test)]
mod tests {
    use super::super::bindings::palisade::tool::types::ResourceBody;
    use super::*;

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
}
