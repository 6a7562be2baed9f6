//! Resources and prompts of plugins: lists them from the plugins' descriptions, and reads them by
//! dispatched calls.

use super::answer::{LEFT_OUT, granted};
use super::call::{Request, Settled};
use super::content::{block, footprint, resource};
use super::era::Era;
use super::outcome::exhausted;
use super::{Changes, Shared};
use palisade::internal::{Offered, ROLES};
use palisade::plugins::Plugin;
use palisade::tool::offer::{Item, Prompt, Template};
use palisade::tool::text::{cut, elided};
use palisade::tool::{Content, Digest, ErrorKind, ExecutionKind, ToolError, ToolResult};
use rmcp::model::{
    CacheScope, CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputResponses, PromptArgument,
    PromptMessage, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Reference,
    Resource, ResourceTemplate, Role,
};
use serde::Serialize;
use serde_json::{Value, json};

/// The cache lifetime of a read resource: none, since its content may differ with each read.
const READ_KEPT: u64 = 0;
/// The maximum number of completion values.
const VALUES: usize = 100;

/// The maximum length of a URI that an error repeats, in bytes.
const URI: usize = 2 << 10;

/// The kinds of offers of the loaded plugins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Kinds {
    pub(super) documents: bool,
    pub(super) prompts: bool,
}

/// Returns the kinds to announce: all of them if plugins may be added later.
pub(super) fn kinds(server: &Shared) -> Kinds {
    let may_come = server.changes() == Changes::Watched;
    let any = |has: fn(&Plugin) -> bool| {
        server.host.find_plugin(|plugin| has(plugin).then_some(())).is_some()
    };
    Kinds {
        documents: may_come || any(|plugin| plugin.offer().documents.is_some()),
        prompts: may_come || any(|plugin| plugin.offer().prompts.is_some()),
    }
}

pub(super) fn resources(server: &Shared) -> Vec<Resource> {
    server
        .host
        .plugins()
        .iter()
        .flat_map(|plugin| plugin.offer().items().iter().map(item).collect::<Vec<_>>())
        .collect()
}

pub(super) fn templates(server: &Shared) -> Vec<ResourceTemplate> {
    let of = |plugin: &Plugin| plugin.offer().templates().iter().map(template).collect::<Vec<_>>();
    server.host.plugins().iter().flat_map(of).collect()
}

pub(super) fn prompts(server: &Shared) -> Vec<rmcp::model::Prompt> {
    server
        .host
        .plugins()
        .iter()
        .flat_map(|plugin| plugin.offer().prompts().iter().map(prompt).collect::<Vec<_>>())
        .collect()
}

/// Builds the error for an unknown resource. For modern clients, the library replaces its code.
pub(super) fn no_document(uri: &str) -> ErrorData {
    let shown = elided(uri, 256);
    ErrorData::resource_not_found(
        format!("there is no resource `{shown}`"),
        Some(json!({"uri": cut(uri, URI)})),
    )
}

/// Builds the error for an argument of a prompt that is not a string.
fn no_text(name: &str) -> ErrorData {
    ErrorData::invalid_params(format!("the argument `{}` is not a string", elided(name, 64)), None)
}

/// Returns the plugin that serves a resource.
pub(super) fn owner(server: &Shared, uri: &str) -> Option<Plugin> {
    server.host.find_plugin(|plugin| plugin.offer().has_document(uri).then(|| plugin.clone()))
}

/// Returns the digest of the code that serves a resource.
pub(super) fn code(server: &Shared, uri: &str) -> Option<Digest> {
    server.host.find_plugin(|plugin| plugin.offer().has_document(uri).then(|| plugin.digest()))
}

impl Request {
    /// Handles `resources/read`.
    pub(super) async fn read(
        self,
        params: ReadResourceRequestParams,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let ReadResourceRequestParams { uri, input_responses, request_state, .. } = params;
        let plugin = owner(&self.server, &uri).ok_or_else(|| no_document(&uri))?;
        let brought = (request_state.as_deref(), input_responses.unwrap_or_default());
        let result =
            match self.offered(&plugin, Offered::Read, json!({"uri": uri}), brought).await? {
                Settled::Asks(asks) => return Ok(ReadResourceResponse::InputRequired(asks)),
                Settled::Ended(result) => result,
            };
        match result.error() {
            Some(error) if is_missing(error) => Err(no_document(&uri)),
            Some(error) => Err(failed(error)),
            None => self
                .made_of(&result, || contents(&result, self.era))
                .map(ReadResourceResponse::Complete),
        }
    }

    /// Handles `prompts/get`.
    pub(super) async fn prompt(
        self,
        params: GetPromptRequestParams,
    ) -> Result<GetPromptResponse, ErrorData> {
        let GetPromptRequestParams { name, arguments, input_responses, request_state, .. } = params;
        let (plugin, prompt) = self.with_prompt(&name)?;
        let arguments = arguments.unwrap_or_default();
        if let Some((name, _)) = arguments.iter().find(|(_, value)| !value.is_string()) {
            return Err(no_text(name));
        }
        let is_missing = |it: &&palisade::tool::offer::Argument| {
            it.required && !arguments.contains_key(&it.name)
        };
        if let Some(missing) = prompt.arguments.iter().find(is_missing) {
            return Err(ErrorData::invalid_params(
                format!("the argument `{}` is required", missing.name),
                None,
            ));
        }
        let brought = (request_state.as_deref(), input_responses.unwrap_or_default());
        let input = json!({"name": name, "arguments": arguments});
        let result = match self.offered(&plugin, Offered::Get, input, brought).await? {
            Settled::Asks(asks) => return Ok(GetPromptResponse::InputRequired(asks)),
            Settled::Ended(result) => result,
        };
        match result.error() {
            Some(error) => Err(failed(error)),
            None => self
                .made_of(&result, || messages(&prompt, &result))
                .map(GetPromptResponse::Complete),
        }
    }

    /// Handles `completion/complete`. Templates have no completions.
    pub(super) async fn complete(
        self,
        params: CompleteRequestParams,
    ) -> Result<CompleteResult, ErrorData> {
        let argument = params.argument;
        let values = match params.r#ref {
            Reference::Prompt(reference) => {
                let (plugin, prompt) = self.with_prompt(&reference.name)?;
                if !prompt.arguments.iter().any(|known| known.name == argument.name) {
                    let text = format!("the prompt `{}` has no such argument", prompt.name);
                    return Err(ErrorData::invalid_params(text, None));
                }
                let input = json!({"prompt": prompt.name, "argument": argument.name, "so_far": argument.value});
                match self
                    .offered(&plugin, Offered::Complete, input, (None, InputResponses::new()))
                    .await?
                {
                    Settled::Ended(result) => values(&result)?,
                    Settled::Asks(_) => Vec::new(),
                }
            }
            Reference::Resource(reference) => {
                let is_known = templates(&self.server)
                    .iter()
                    .any(|template| template.uri_template == reference.uri);
                if !is_known && owner(&self.server, &reference.uri).is_none() {
                    return Err(no_document(&reference.uri));
                }
                Vec::new()
            }
            _ => return Err(ErrorData::invalid_params("nothing else can be completed", None)),
        };
        let info = CompletionInfo::with_all_values(values)
            .map_err(|error| ErrorData::internal_error(error, None))?;
        Ok(CompleteResult::new(info))
    }

    /// Reserves the memory of a response, and builds it.
    fn made_of<T: Serialize>(
        &self,
        result: &ToolResult,
        made: impl FnOnce() -> T,
    ) -> Result<T, ErrorData> {
        let reserved = self.account().reserve(result.content().iter().map(footprint).sum());
        reserved.map_err(|why| exhausted(LEFT_OUT, why))?;
        granted(made(), &self.context.extensions)
    }

    fn with_prompt(&self, name: &str) -> Result<(Plugin, Prompt), ErrorData> {
        let found = self
            .server
            .host
            .find_plugin(|plugin| Some((plugin.clone(), plugin.offer().prompt(name)?.clone())));
        found.ok_or_else(|| {
            let shown = elided(name, 64);
            ErrorData::invalid_params(
                format!("there is no prompt `{shown}`"),
                Some(json!({"name": shown})),
            )
        })
    }

    async fn offered(
        &self,
        plugin: &Plugin,
        offered: Offered,
        input: Value,
        brought: (Option<&str>, InputResponses),
    ) -> Result<Settled, ErrorData> {
        let tool = self.server.host.offered(plugin, offered);
        let tool = tool.ok_or_else(|| {
            ErrorData::internal_error("the plugin has no name to be called by", None)
        })?;
        self.settle(&tool, input, brought).await
    }
}

fn is_missing(error: &ToolError) -> bool {
    matches!(error.kind(), ErrorKind::Execution { kind: ExecutionKind::NotFound, .. })
}

/// Converts a failure into an error response, since these results have no error field.
fn failed(error: &ToolError) -> ErrorData {
    let whole = error.to_json();
    let data = Some(json!({"class": whole["class"], "detail": whole["detail"]}));
    match error.kind() {
        ErrorKind::Execution {
            kind: ExecutionKind::InvalidInput | ExecutionKind::NotFound,
            ..
        } => ErrorData::invalid_params(error.reason(), data),
        _ => ErrorData::internal_error(error.reason(), data),
    }
}

fn contents(result: &ToolResult, era: Era) -> ReadResourceResult {
    let content = |content: &Content| match content {
        Content::Resource { uri, mime, body } => Some(resource(uri, mime.as_deref(), body)),
        _ => None,
    };
    let read = ReadResourceResult::new(
        result.blocks().iter().filter_map(|it| content(it.as_ref())).collect(),
    );
    match era {
        Era::Legacy => read,
        Era::Modern => read.with_ttl_ms(READ_KEPT).with_cache_scope(CacheScope::Private),
    }
}

fn messages(prompt: &Prompt, result: &ToolResult) -> GetPromptResult {
    let roles = result.metadata().get(ROLES).and_then(Value::as_array).cloned().unwrap_or_default();
    let blocks = result.blocks();
    let message = |(content, role): (&std::borrow::Cow<'_, Content>, Value)| {
        PromptMessage::new(
            if role == "assistant" { Role::Assistant } else { Role::User },
            block(content.as_ref()),
        )
    };
    GetPromptResult::new(blocks.iter().zip(roles).map(message).collect())
        .with_description(prompt.description.clone())
}

fn values(result: &ToolResult) -> Result<Vec<String>, ErrorData> {
    if let Some(error) = result.error() {
        return Err(failed(error));
    }
    let listed = result.blocks().iter().find_map(|content| match content.as_ref() {
        // Serialized by the host as a list of strings, so that parsing takes memory in proportion
        // to its length.
        Content::Json(json) => serde_json::from_str::<Vec<String>>(json.as_str()).ok(),
        _ => None,
    });
    Ok(listed.unwrap_or_default().into_iter().take(VALUES).collect())
}

fn item(item: &Item) -> Resource {
    let mut made = Resource::new(&item.uri, &item.name);
    (made.title, made.description, made.mime_type) =
        (item.title.clone(), item.description.clone(), item.mime.clone());
    made.size = item.size;
    made
}

fn template(template: &Template) -> ResourceTemplate {
    let mut made = ResourceTemplate::new(&template.uri, &template.name);
    made.title = template.title.clone();
    made.description = template.description.clone();
    made.mime_type = template.mime.clone();
    made
}

fn prompt(prompt: &Prompt) -> rmcp::model::Prompt {
    let argument = |it: &palisade::tool::offer::Argument| {
        let mut made = PromptArgument::new(&it.name).with_required(it.required);
        made.description = it.description.clone();
        made
    };
    let arguments = prompt.arguments.iter().map(argument).collect();
    let mut made =
        rmcp::model::Prompt::new(&prompt.name, Some(prompt.description.clone()), Some(arguments));
    made.title = prompt.title.clone();
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_name_is_cut_in_an_error() {
        let long = "x".repeat(1 << 20);
        for error in [no_document(&long), no_text(&long)] {
            let length = error.message.len() + error.data.map_or(0, |data| data.to_string().len());
            assert!(length < 3 << 10, "{length}");
        }
        let data = no_document("a:1").data;
        assert_eq!(data, Some(json!({"uri": "a:1"})));
    }
}
