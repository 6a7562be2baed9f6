//! The resources and prompts of a plugin, as its description lists them.

use super::types_error::TypeMismatch;
use crate::sandbox::bindings::offering::prompting::exports::palisade::tool::prompts;
use crate::sandbox::bindings::offering::resourceful::exports::palisade::tool::resources;
use crate::sandbox::bindings::offering::{prompting, resourceful};
use crate::sandbox::run::State;
use crate::tool::offer::{Argument, Documents, Item, Offer, Prompt, Template};
use wasmtime::Store;
use wasmtime::component::{Instance, InstancePre};

/// Asks the plugin for its resources and prompts.
pub(super) async fn describe_offer(
    pre: &InstancePre<State>,
    instance: &Instance,
    store: &mut Store<State>,
) -> wasmtime::Result<Offer> {
    let mismatch = |error: wasmtime::Error| TypeMismatch::wrap(&error);
    let has = |name: &str| pre.component().get_export_index(None, name).is_some();
    let mut offer = Offer::default();
    if has("palisade:tool/resources@0.1.0") {
        let guest = resourceful::ResourcefulIndices::new(pre)
            .and_then(|indices| indices.load(&mut *store, instance));
        let guest = guest.map_err(mismatch)?;
        let (items, templates) = guest.palisade_tool_resources().call_describe(&mut *store).await?;
        offer.documents = Some(documents(items, templates));
    }
    if has("palisade:tool/prompts@0.1.0") {
        let guest = prompting::PromptingIndices::new(pre)
            .and_then(|indices| indices.load(&mut *store, instance));
        let guest = guest.map_err(mismatch)?;
        let described = guest.palisade_tool_prompts().call_describe(&mut *store).await?;
        offer.prompts = Some(described.into_iter().map(prompt).collect());
    }
    Ok(offer)
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
