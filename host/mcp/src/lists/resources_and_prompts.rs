//! The resources and prompts of plugins, listed from the plugins' descriptions.

use crate::clients::known_lists::ListDigest;
use crate::messages::offload;
use crate::messages::serialize::CANNOT_ANSWER;
use crate::protocol::server_info::Features;
use crate::protocol::tool_result::exhausted_error;
use crate::settings::Changes;
use crate::state::ServerState;
use crate::state::list_cache::{ListItem, ListedOffer};
use palisade::internal::{Account, IN_PLACE, Owed, answer_turns, input_turns_within, offload};
use palisade::plugins::Plugin;
use palisade::tool::Digest;
use palisade::tool::budget::Budget;
use palisade::tool::offer::{Argument, Item, Offer, Prompt, Template};
use palisade::tool::text::{cut, elided};
use rmcp::model::{self, ErrorData, PromptArgument, Resource, ResourceTemplate};
use serde::Serialize;
use serde_json::json;
use std::collections::HashSet;
use std::sync::Arc;

/// The maximum length of a URI of a resource, and of one that an error repeats, in bytes.
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

/// Returns the resources and prompts of all plugins. Those of new plugins are converted on another
/// thread: plugins choose their number and size.
///
/// # Errors
///
/// The error response if they were not converted in time.
pub(crate) async fn offers(server: &Arc<ServerState>) -> Result<Vec<Arc<ListedOffer>>, ErrorData> {
    if let Some(known) = offers_if_known(server) {
        return Ok(known);
    }
    let budget = offload::budget(server.host.limits().account());
    let server = server.clone();
    let made = offload(&budget, answer_turns(), move |_| Ok(offers_here(&server)));
    made.await.map_err(|why| exhausted_error(CANNOT_ANSWER, why))
}

/// Same as [`offers`], if all of them were converted before.
pub(super) fn offers_if_known(server: &ServerState) -> Option<Vec<Arc<ListedOffer>>> {
    let mut known = Some(Vec::new());
    server.host.find_plugin(|plugin| {
        known = known.take().zip(server.lists.known_offer(plugin)).map(|(mut all, offer)| {
            all.push(offer);
            all
        });
        known.is_none().then_some(())
    });
    known
}

/// Same as [`offers`], on this thread. It may take long.
pub(super) fn offers_here(server: &ServerState) -> Vec<Arc<ListedOffer>> {
    server.lists.offers(&server.host.plugins(), |plugin| listed(plugin.offer()))
}

fn listed(offer: &Offer) -> ListedOffer {
    let resources = convert_all(offer.items(), resource);
    let templates = convert_all(offer.templates(), template);
    let prompts = convert_all(offer.prompts(), prompt);
    let memory = memory(&resources) + memory(&templates) + memory(&prompts);
    ListedOffer { resources, templates, prompts, memory: Owed::new(memory) }
}

/// Returns the approximate memory of items: their texts are about as long as their JSON.
fn memory<T>(items: &[ListItem<T>]) -> usize {
    items.iter().map(|item| size_of::<ListItem<T>>() + item.length).sum()
}

/// Returns true if a plugin offers this resource template.
pub(crate) fn has_template(server: &ServerState, uri: &str) -> bool {
    let is_known = |plugin: &Plugin| plugin.offer().templates().iter().any(|it| it.uri == uri);
    server.host.find_plugin(|plugin| is_known(plugin).then_some(())).is_some()
}

/// Returns the digest of the resources and the resource templates together.
pub(crate) fn resources_digest(offers: &[Arc<ListedOffer>]) -> ListDigest {
    let resources = offers.iter().flat_map(|offer| &offer.resources).map(|item| &item.hash);
    let templates = offers.iter().flat_map(|offer| &offer.templates).map(|item| &item.hash);
    let between = blake3::hash(b"templates");
    ListDigest::of_hashes(resources.chain([&between]).chain(templates))
}

/// Returns the digest of the prompts.
pub(crate) fn prompts_digest(offers: &[Arc<ListedOffer>]) -> ListDigest {
    let prompts = offers.iter().flat_map(|offer| &offer.prompts);
    ListDigest::of_hashes(prompts.map(|item| &item.hash))
}

/// Returns the plugin that serves a resource. A long search runs on another thread: plugins choose
/// their templates, and clients the URI.
///
/// # Errors
///
/// The error response of a search that did not end in time.
pub(crate) async fn plugin_of(
    server: &Arc<ServerState>,
    uri: &str,
    account: Account,
) -> Result<Option<Plugin>, ErrorData> {
    if search_cost(server, &[uri]) <= IN_PLACE {
        return Ok(search(server, uri));
    }
    let budget = offload::budget(account);
    let (server, uri) = (server.clone(), uri.to_owned());
    let found =
        offload(&budget, input_turns_within(&budget), move |_| Ok(search(&server, &uri))).await;
    found.map_err(|why| exhausted_error(CANNOT_ANSWER, why))
}

/// Returns those of these resources that exist. A long search runs on another thread.
///
/// # Errors
///
/// The error response of a search that did not end in time.
pub(super) async fn existing(
    server: &Arc<ServerState>,
    uris: impl Iterator<Item = &str>,
    account: &Account,
) -> Result<HashSet<String>, ErrorData> {
    let uris: Vec<&str> = uris.filter(|uri| uri.len() <= MAX_URI).collect();
    if search_cost(server, &uris) <= IN_PLACE {
        let known = uris.into_iter().filter(|uri| search(server, uri).is_some());
        return Ok(known.map(str::to_owned).collect());
    }
    let budget = offload::budget(account.clone());
    let (server, uris) = (server.clone(), uris.into_iter().map(str::to_owned).collect::<Vec<_>>());
    let find = move |budget: Arc<dyn Budget>| {
        let mut known = HashSet::new();
        for uri in uris {
            budget.check()?;
            if search(&server, &uri).is_some() {
                known.insert(uri);
            }
        }
        Ok(known)
    };
    let found = offload(&budget, input_turns_within(&budget), find).await;
    found.map_err(|why| exhausted_error(CANNOT_ANSWER, why))
}

/// Returns the number of bytes that a search for these resources reads at most.
fn search_cost(server: &ServerState, uris: &[&str]) -> usize {
    let mut cost = 0_usize;
    server.host.find_plugin(|plugin| {
        let of_plugin = uris.iter().map(|uri| plugin.document_search_cost(uri));
        cost = cost.saturating_add(of_plugin.sum());
        None::<()>
    });
    cost
}

/// Returns the digest of the code that serves a resource. The search may be long.
pub(super) fn code_of(server: &ServerState, uri: &str) -> Option<Digest> {
    server.host.find_plugin(|plugin| plugin.has_document(uri).then(|| plugin.digest()))
}

fn search(server: &ServerState, uri: &str) -> Option<Plugin> {
    server.host.find_plugin(|plugin| plugin.has_document(uri).then(|| plugin.clone()))
}

/// Builds the error for an unknown resource. For stateless clients, `rmcp` replaces its code.
pub(crate) fn unknown_resource(uri: &str) -> ErrorData {
    let shown = elided(uri, 256);
    ErrorData::resource_not_found(
        format!("there is no resource `{shown}`"),
        Some(json!({"uri": cut(uri, MAX_URI)})),
    )
}

fn convert_all<T, U: Serialize>(items: &[T], convert: fn(&T) -> U) -> Vec<ListItem<U>> {
    items.iter().map(|item| ListItem::new(convert(item))).collect()
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
