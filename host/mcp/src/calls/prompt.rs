//! `prompts/get` and `completion/complete`: builds a prompt of a plugin, and completes its
//! arguments, by dispatched calls.

use super::plugin_request::{Outcome, PluginRequest};
use super::resource::error_response;
use crate::lists::resources_and_prompts::{has_template, plugin_of, unknown_resource};
use crate::protocol::content::content_block;
use crate::questions::input_required::RoundInput;
use crate::state::ServerState;
use palisade::internal::{Account, Offered, ROLES};
use palisade::plugins::Plugin;
use palisade::tool::offer::{Argument, Prompt};
use palisade::tool::text::{elided, first_deceptive};
use palisade::{Content, ToolResult};
use rmcp::model::{
    ArgumentInfo, CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, PromptMessage, Reference, Role,
};
use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::Arc;

/// The maximum number of completion values.
const MAX_VALUES: usize = 100;

impl PluginRequest {
    /// Handles `prompts/get` of this prompt.
    pub(crate) async fn get_prompt(
        self,
        params: GetPromptRequestParams,
        found: Option<PluginPrompt>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let GetPromptRequestParams { name, arguments, input_responses, request_state, .. } = params;
        let PluginPrompt { plugin, prompt } = found.ok_or_else(|| unknown_prompt(&name))?;
        let arguments = arguments.unwrap_or_default();
        check_arguments(&prompt, &arguments)?;
        let responses = input_responses.unwrap_or_default();
        let round = RoundInput { state: request_state, responses };
        // Moved, since clients choose the size of the arguments.
        let members =
            [("name".to_owned(), name.into()), ("arguments".to_owned(), arguments.into())];
        let input = Value::Object(Map::from_iter(members));
        let result = match self.run_export(&plugin, Offered::Get, input, round).await? {
            Outcome::InputRequired(required) => {
                return Ok(GetPromptResponse::InputRequired(required));
            }
            Outcome::Complete(result) => result,
        };
        match result.error() {
            Some(error) => Err(error_response(error)),
            None => {
                let built = self.convert_or_error(result, move |it| prompt_result(&prompt, it));
                built.await.map(GetPromptResponse::Complete)
            }
        }
    }

    /// Handles `completion/complete` of this subject.
    pub(crate) async fn complete(
        self,
        params: CompleteRequestParams,
        found: Completed,
    ) -> Result<CompleteResult, ErrorData> {
        let values = match found {
            Completed::Prompt(prompt) => self.complete_prompt(*prompt, &params.argument).await?,
            Completed::Resource => Vec::new(),
        };
        let info = CompletionInfo::with_all_values(values)
            .map_err(|error| ErrorData::internal_error(error, None))?;
        Ok(CompleteResult::new(info))
    }

    async fn complete_prompt(
        &self,
        PluginPrompt { plugin, prompt }: PluginPrompt,
        argument: &ArgumentInfo,
    ) -> Result<Vec<String>, ErrorData> {
        if !prompt.arguments.iter().any(|known| known.name == argument.name) {
            let text = format!("the prompt `{}` has no such argument", prompt.name);
            return Err(ErrorData::invalid_params(text, None));
        }
        let input = json!({
            "prompt": prompt.name,
            "argument": argument.name,
            "so_far": argument.value,
        });
        let round = RoundInput::default();
        match self.run_export(&plugin, Offered::Complete, input, round).await? {
            Outcome::Complete(result) => {
                if let Some(error) = result.error() {
                    return Err(error_response(error));
                }
                self.convert_or_error(result, completions).await
            }
            Outcome::InputRequired(_) => Ok(Vec::new()),
        }
    }
}

/// Returns the prompt of this name, if a plugin that is loaded has it.
pub(crate) fn find_prompt(server: &ServerState, name: &str) -> Option<PluginPrompt> {
    server.host.find_plugin(|plugin| {
        let prompt = plugin.offer().prompt(name)?.clone();
        Some(PluginPrompt { plugin: plugin.clone(), prompt })
    })
}

/// The subject of a completion.
pub(crate) enum Completed {
    /// An argument of this prompt.
    Prompt(Box<PluginPrompt>),
    /// A resource or a resource template, which has no completions.
    Resource,
}

/// Returns the subject of a completion, if a plugin that is loaded has it.
///
/// # Errors
///
/// The error response for a subject of another kind, and for a search that did not end in time.
pub(crate) async fn find_completed(
    server: &Arc<ServerState>,
    subject: &Reference,
    account: Account,
) -> Result<Option<Completed>, ErrorData> {
    match subject {
        Reference::Prompt(prompt) => {
            let found = find_prompt(server, &prompt.name);
            Ok(found.map(|prompt| Completed::Prompt(Box::new(prompt))))
        }
        Reference::Resource(resource) if has_template(server, &resource.uri) => {
            Ok(Some(Completed::Resource))
        }
        Reference::Resource(resource) => {
            let found = plugin_of(server, &resource.uri, account).await?;
            Ok(found.map(|_| Completed::Resource))
        }
        _ => Err(ErrorData::invalid_params("nothing else can be completed", None)),
    }
}

/// Builds the error for an unknown subject of a completion.
pub(crate) fn unknown_subject(subject: &Reference) -> ErrorData {
    match subject {
        Reference::Prompt(prompt) => unknown_prompt(&prompt.name),
        Reference::Resource(resource) => unknown_resource(&resource.uri),
        _ => ErrorData::invalid_params("nothing else can be completed", None),
    }
}

/// Builds the error for an unknown prompt.
fn unknown_prompt(name: &str) -> ErrorData {
    let shown = elided(name, 64);
    let text = format!("there is no prompt `{shown}`");
    ErrorData::invalid_params(text, Some(json!({"name": shown})))
}

/// A prompt with its plugin.
pub(crate) struct PluginPrompt {
    plugin: Plugin,
    prompt: Prompt,
}

/// Checks that all arguments are strings, and that none is missing.
fn check_arguments(prompt: &Prompt, arguments: &Map<String, Value>) -> Result<(), ErrorData> {
    if let Some((name, _)) = arguments.iter().find(|(_, value)| !value.is_string()) {
        return Err(not_a_string(name));
    }
    let is_missing =
        |argument: &&Argument| argument.required && !arguments.contains_key(&argument.name);
    match prompt.arguments.iter().find(is_missing) {
        Some(missing) => {
            let text = format!("the argument `{}` is required", missing.name);
            Err(ErrorData::invalid_params(text, None))
        }
        None => Ok(()),
    }
}

/// Builds the error for an argument of a prompt that is not a string.
fn not_a_string(name: &str) -> ErrorData {
    ErrorData::invalid_params(format!("the argument `{}` is not a string", elided(name, 64)), None)
}

fn prompt_result(prompt: &Prompt, result: &ToolResult) -> GetPromptResult {
    let roles = result.metadata().get(ROLES).and_then(Value::as_array);
    let roles = roles.map(Vec::as_slice).unwrap_or_default();
    let blocks = result.content();
    let messages = blocks.iter().zip(roles).map(|(content, role)| message(content, role));
    GetPromptResult::new(messages.collect()).with_description(prompt.description.clone())
}

fn message(content: &Content, role: &Value) -> PromptMessage {
    let role = if role == "assistant" { Role::Assistant } else { Role::User };
    PromptMessage::new(role, content_block(content))
}

fn completions(result: &ToolResult) -> Vec<String> {
    let values = result.content().iter().find_map(|content| match content {
        // Serialized by the host as a list of strings.
        Content::Json(json) => serde_json::from_str::<FirstValues>(json.as_str()).ok(),
        _ => None,
    });
    values.map(|FirstValues(values)| values).unwrap_or_default()
}

/// The first values of a list that a client can show: characters that control a terminal or change
/// the direction of a text could show another value. The others are not kept, since each would take
/// more memory than its text.
struct FirstValues(Vec<String>);

impl<'de> Deserialize<'de> for FirstValues {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_seq(FirstValuesVisitor)
    }
}

struct FirstValuesVisitor;

impl<'de> Visitor<'de> for FirstValuesVisitor {
    type Value = FirstValues;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of texts")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<FirstValues, A::Error> {
        let mut values = Vec::new();
        while values.len() < MAX_VALUES {
            match list.next_element::<String>()? {
                Some(value) if first_deceptive(&value).is_some() => {}
                Some(value) => values.push(value),
                None => return Ok(FirstValues(values)),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(FirstValues(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_name_is_cut_in_an_error() {
        let error = not_a_string(&"x".repeat(1 << 20));
        assert!(error.message.len() < 3 << 10 && error.data.is_none(), "{error:?}");
    }
}
