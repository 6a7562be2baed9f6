//! The resources and prompts of plugins, listed from the plugins' descriptions.

use crate::clients::known_lists::ListDigest;
use crate::protocol::server_info::Features;
use crate::settings::Changes;
use crate::state::ServerState;
use palisade::plugins::Plugin;
use palisade::tool::Digest;
use palisade::tool::offer::{Argument, Item, Prompt, Template};
use palisade::tool::text::{cut, elided};
use rmcp::model::{self, ErrorData, PromptArgument, Resource, ResourceTemplate};
use serde_json::json;

/// The maximum length of a URI that an error repeats, in bytes.
const MAX_URI: usize = 2 << 10;

/// Returns the features to announce: all of them if plugins may be added later.
pub(crate) fn features(server: &ServerState) -> Features {
    let watched = server.changes() == Changes::Watched;
    let any = |has: fn(&Plugin) -> bool| {
        server.host.find_plugin(|plugin| has(plugin).then_some(())).is_some()
    };
    Features {
        resources: watched || any(|plugin| plugin.offer().documents.is_some()),
        prompts: watched || any(|plugin| plugin.offer().prompts.is_some()),
        notifications: watched,
    }
}

/// Returns the resources of all plugins.
pub(crate) fn resources(server: &ServerState) -> Vec<Resource> {
    let of_plugin = |plugin: &Plugin| convert_all(plugin.offer().items(), resource);
    server.host.plugins().iter().flat_map(of_plugin).collect()
}

/// Returns the resource templates of all plugins.
pub(crate) fn templates(server: &ServerState) -> Vec<ResourceTemplate> {
    let of_plugin = |plugin: &Plugin| convert_all(plugin.offer().templates(), template);
    server.host.plugins().iter().flat_map(of_plugin).collect()
}

/// Returns the prompts of all plugins.
pub(crate) fn prompts(server: &ServerState) -> Vec<model::Prompt> {
    let of_plugin = |plugin: &Plugin| convert_all(plugin.offer().prompts(), prompt);
    server.host.plugins().iter().flat_map(of_plugin).collect()
}

/// Computes the digest of the resources and the resource templates together.
pub(crate) fn resources_digest(server: &ServerState) -> ListDigest {
    ListDigest::of(&(resources(server), templates(server)))
}

/// Returns the plugin that serves a resource.
pub(crate) fn plugin_of(server: &ServerState, uri: &str) -> Option<Plugin> {
    server.host.find_plugin(|plugin| plugin.offer().has_document(uri).then(|| plugin.clone()))
}

/// Returns the digest of the code that serves a resource.
pub(crate) fn code_of(server: &ServerState, uri: &str) -> Option<Digest> {
    server.host.find_plugin(|plugin| plugin.offer().has_document(uri).then(|| plugin.digest()))
}

/// Builds the error for an unknown resource. For stateless clients, `rmcp` replaces its code.
pub(crate) fn unknown_resource(uri: &str) -> ErrorData {
    let shown = elided(uri, 256);
    ErrorData::resource_not_found(
        format!("there is no resource `{shown}`"),
        Some(json!({"uri": cut(uri, MAX_URI)})),
    )
}

fn convert_all<T, U>(items: &[T], convert: fn(&T) -> U) -> Vec<U> {
    items.iter().map(convert).collect()
}

fn resource(item: &Item) -> Resource {
    let mut resource = Resource::new(&item.uri, &item.name);
    resource.title = item.title.clone();
    resource.description = item.description.clone();
    resource.mime_type = item.mime.clone();
    resource.size = item.size;
    resource
}

fn template(template: &Template) -> ResourceTemplate {
    let mut converted = ResourceTemplate::new(&template.uri, &template.name);
    converted.title = template.title.clone();
    converted.description = template.description.clone();
    converted.mime_type = template.mime.clone();
    converted
}

fn prompt(prompt: &Prompt) -> model::Prompt {
    let arguments = prompt.arguments.iter().map(argument).collect();
    let description = Some(prompt.description.clone());
    let mut converted = model::Prompt::new(&prompt.name, description, Some(arguments));
    converted.title = prompt.title.clone();
    converted
}

fn argument(argument: &Argument) -> PromptArgument {
    let mut converted = PromptArgument::new(&argument.name).with_required(argument.required);
    converted.description = argument.description.clone();
    converted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_name_is_cut_in_an_error() {
        let error = unknown_resource(&"x".repeat(1 << 20));
        let length = error.message.len() + error.data.map_or(0, |data| data.to_string().len());
        assert!(length < 3 << 10, "{length}");
        let data = unknown_resource("a:1").data;
        assert_eq!(data, Some(json!({"uri": "a:1"})));
    }
}
