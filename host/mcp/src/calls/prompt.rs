//! `prompts/get` and `completion/complete`: builds a prompt of a plugin, and completes its
//! arguments, by dispatched calls.

use super::plugin_request::{Outcome, PluginRequest};
use super::resource::error_response;
use crate::lists::resources_and_prompts::{plugin_of, templates, unknown_resource};
use crate::protocol::content::content_block;
use crate::questions::input_required::RoundInput;
use palisade::internal::{Offered, ROLES};
use palisade::plugins::Plugin;
use palisade::tool::offer::{Argument, Prompt};
use palisade::tool::text::elided;
use palisade::{Content, ToolResult};
use rmcp::model::{
    ArgumentInfo, CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, PromptMessage, Reference, Role,
};
use serde_json::{Map, Value, json};

/// The maximum number of completion values.
const MAX_VALUES: usize = 100;

impl PluginRequest {
    /// Handles `prompts/get`.
    pub(crate) async fn get_prompt(
        self,
        params: GetPromptRequestParams,
    ) -> Result<GetPromptResponse, ErrorData> {
        let GetPromptRequestParams { name, arguments, input_responses, request_state, .. } = params;
        let PluginPrompt { plugin, prompt } = self.find_prompt(&name)?;
        let arguments = arguments.unwrap_or_default();
        check_arguments(&prompt, &arguments)?;
        let responses = input_responses.unwrap_or_default();
        let round = RoundInput { state: request_state, responses };
        let input = json!({"name": name, "arguments": arguments});
        let result = match self.run_export(&plugin, Offered::Get, input, round).await? {
            Outcome::InputRequired(required) => {
                return Ok(GetPromptResponse::InputRequired(required));
            }
            Outcome::Complete(result) => result,
        };
        match result.error() {
            Some(error) => Err(error_response(error)),
            None => self
                .within_account(&result, || prompt_result(&prompt, &result))
                .map(GetPromptResponse::Complete),
        }
    }

    /// Handles `completion/complete`. Resource templates have no completions.
    pub(crate) async fn complete(
        self,
        params: CompleteRequestParams,
    ) -> Result<CompleteResult, ErrorData> {
        let values = match params.r#ref {
            Reference::Prompt(prompt) => {
                self.complete_prompt(&prompt.name, &params.argument).await?
            }
            Reference::Resource(resource) => {
                self.check_resource(&resource.uri)?;
                Vec::new()
            }
            _ => return Err(ErrorData::invalid_params("nothing else can be completed", None)),
        };
        let info = CompletionInfo::with_all_values(values)
            .map_err(|error| ErrorData::internal_error(error, None))?;
        Ok(CompleteResult::new(info))
    }

    async fn complete_prompt(
        &self,
        name: &str,
        argument: &ArgumentInfo,
    ) -> Result<Vec<String>, ErrorData> {
        let PluginPrompt { plugin, prompt } = self.find_prompt(name)?;
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
            Outcome::Complete(result) => completions(&result),
            Outcome::InputRequired(_) => Ok(Vec::new()),
        }
    }

    /// Checks that a resource or a resource template exists.
    fn check_resource(&self, uri: &str) -> Result<(), ErrorData> {
        let is_template = templates(&self.server).iter().any(|known| known.uri_template == uri);
        match is_template || plugin_of(&self.server, uri).is_some() {
            true => Ok(()),
            false => Err(unknown_resource(uri)),
        }
    }

    fn find_prompt(&self, name: &str) -> Result<PluginPrompt, ErrorData> {
        let found = self.server.host.find_plugin(|plugin| {
            let prompt = plugin.offer().prompt(name)?.clone();
            Some(PluginPrompt { plugin: plugin.clone(), prompt })
        });
        found.ok_or_else(|| {
            let shown = elided(name, 64);
            ErrorData::invalid_params(
                format!("there is no prompt `{shown}`"),
                Some(json!({"name": shown})),
            )
        })
    }
}

/// A prompt with its plugin.
struct PluginPrompt {
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
    let roles = result.metadata().get(ROLES).and_then(Value::as_array).cloned().unwrap_or_default();
    let blocks = result.blocks();
    let messages = blocks.iter().zip(&roles).map(|(content, role)| message(content, role));
    GetPromptResult::new(messages.collect()).with_description(prompt.description.clone())
}

fn message(content: &Content, role: &Value) -> PromptMessage {
    let role = if role == "assistant" { Role::Assistant } else { Role::User };
    PromptMessage::new(role, content_block(content))
}

fn completions(result: &ToolResult) -> Result<Vec<String>, ErrorData> {
    if let Some(error) = result.error() {
        return Err(error_response(error));
    }
    let values = result.blocks().iter().find_map(|content| match content.as_ref() {
        // Serialized by the host as a list of strings, so that parsing takes memory in proportion
        // to its length.
        Content::Json(json) => serde_json::from_str::<Vec<String>>(json.as_str()).ok(),
        _ => None,
    });
    Ok(values.unwrap_or_default().into_iter().take(MAX_VALUES).collect())
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
