//! Converts a plugin's questions into requests of the protocol, and the client's answers back.

#![expect(
    deprecated,
    reason = "messages that the next revision drops; clients of older revisions expect them"
)]

use super::form_dialect::in_dialect;
use crate::messages::extensions::FastPath;
use crate::protocol::lifecycle::Dialect;
use crate::settings::ConfirmedBy;
use palisade::AskFailure;
use palisade::internal::hidden_in;
use palisade::tool::schema::{Schema, Violations};
use palisade::tool::text::{cut, elided, visible};
use palisade::{AskKind, AskKinds, AskRequest};
use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, CreateMessageRequest, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    InputRequest, ListRootsRequest, ListRootsResult,
};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};

/// The maximum length of a message shown to the user, in bytes.
const MAX_MESSAGE: usize = 4 << 10;
/// Substrings that mark a form field as one for a secret.
const SECRETS: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
];

/// Returns the kinds of questions that the client supports.
pub(crate) fn supported_kinds(context: &RequestContext<RoleServer>) -> AskKinds {
    match context.extensions.get::<FastPath>() {
        Some(FastPath(capabilities)) => kinds_of(capabilities),
        None => kinds_of(&context.client_capabilities().unwrap_or_default()),
    }
}

/// Returns whether a client that supports these kinds of questions may answer the host's question
/// before a call.
pub(crate) fn may_confirm(kinds: &AskKinds, confirmed_by: ConfirmedBy) -> bool {
    match confirmed_by {
        ConfirmedBy::ClientOrHost => kinds.contains(&AskKind::Elicitation),
        ConfirmedBy::HostOnly => false,
    }
}

/// Returns the capabilities that a client needs for these kinds of questions.
pub(crate) fn required_capabilities(kinds: &[AskKind]) -> ClientCapabilities {
    let needs = |kind: &AskKind| match kind {
        AskKind::Elicitation => ("elicitation", json!({"form": {}})),
        AskKind::Sampling => ("sampling", json!({})),
        AskKind::Roots => ("roots", json!({})),
    };
    let needed: Map<String, Value> =
        kinds.iter().map(needs).map(|(name, value)| (name.to_owned(), value)).collect();
    serde_json::from_value(Value::Object(needed)).unwrap_or_default()
}

/// Converts a question of the plugin with this name, for a client of this dialect.
pub(crate) fn input_request(
    plugin: &str,
    request: &AskRequest,
    dialect: Dialect,
) -> Result<InputRequest, AskFailure> {
    let key = &request.key;
    let refused =
        |reason: String| AskFailure::Invalid(format!("`{key}` cannot be asked: {reason}"));
    match request.kind {
        AskKind::Elicitation => {
            form_request(plugin, &request.params, dialect).map(InputRequest::Elicitation)
        }
        AskKind::Sampling => {
            sampling_request(request.params.clone()).map(InputRequest::CreateMessage)
        }
        AskKind::Roots => Ok(InputRequest::ListRoots(ListRootsRequest::default())),
    }
    .map_err(refused)
}

/// Converts the answer to a question for the plugin. `None` if it does not match the kind of
/// question.
pub(crate) fn convert_answer(
    request: &AskRequest,
    answer: &Value,
) -> Option<Result<String, AskFailure>> {
    let is_valid = match request.kind {
        AskKind::Elicitation => {
            return form_answer(request, serde_json::from_value(answer.clone()).ok()?);
        }
        AskKind::Sampling => serde_json::from_value::<CreateMessageResult>(answer.clone()).is_ok(),
        AskKind::Roots => serde_json::from_value::<ListRootsResult>(answer.clone()).is_ok(),
    };
    is_valid.then(|| Ok(answer.to_string()))
}

fn kinds_of(capabilities: &ClientCapabilities) -> AskKinds {
    let is_supported = |kind: &AskKind| match kind {
        AskKind::Elicitation => can_show_forms(capabilities),
        AskKind::Sampling => capabilities.sampling.is_some(),
        AskKind::Roots => capabilities.roots.is_some(),
    };
    let all = [AskKind::Elicitation, AskKind::Sampling, AskKind::Roots];
    all.into_iter().filter(is_supported).collect()
}

fn can_show_forms(capabilities: &ClientCapabilities) -> bool {
    // An empty object means forms: older revisions had no other mode.
    capabilities
        .elicitation
        .as_ref()
        .is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// Builds a form. The message names the plugin, so that the user knows the author.
fn form_request(
    plugin: &str,
    params: &Map<String, Value>,
    dialect: Dialect,
) -> Result<ElicitRequest, String> {
    if params.get("mode").is_some_and(|mode| mode != "form") {
        return Err("a person is asked by forms only".to_owned());
    }
    let text = params.get("message").and_then(Value::as_str).ok_or("there is no `message`")?;
    let schema = params
        .get("requestedSchema")
        .and_then(Value::as_object)
        .ok_or("there is no `requestedSchema`")?;
    if let Some((at, character)) = hidden_in(schema) {
        return Err(format!(
            "the schema hides the character U+{:04X} at `{}`",
            u32::from(character),
            elided(&at, 128)
        ));
    }
    if let Some(field) = secret_field(schema) {
        return Err(format!(
            "the field `{}` is one for a secret, which no form is for",
            elided(field, 64)
        ));
    }
    answer_schema(&form_schema(schema)?)?;
    let mut schema = schema.clone();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        in_dialect(properties, dialect)?;
    }
    let requested_schema = form_schema(&schema)?;
    let message = format!("The plugin {plugin} asks: {}", visible(cut(text, MAX_MESSAGE)));
    Ok(ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema,
    }))
}

/// Returns the first field that asks for a secret, by its name, title or format.
fn secret_field(schema: &Map<String, Value>) -> Option<&str> {
    let fields = schema.get("properties").and_then(Value::as_object)?;
    fields.iter().find(|(name, field)| is_secret(name, field)).map(|(name, _)| name.as_str())
}

fn is_secret(name: &str, field: &Value) -> bool {
    let title = field["title"].as_str().unwrap_or_default();
    field["format"] == "password" || names_secret(name) || names_secret(title)
}

fn names_secret(name: &str) -> bool {
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    plain.ends_with("token") || SECRETS.iter().any(|secret| plain.contains(secret))
}

/// Builds a sampling request. Tools and the context of other servers are rejected: a plugin must
/// not reach them through the client's model.
fn sampling_request(mut params: Map<String, Value>) -> Result<CreateMessageRequest, String> {
    params.remove("_meta");
    if params.get("includeContext").is_some_and(|context| context != "none") {
        return Err("a plugin gets none of the client's context".to_owned());
    }
    if let Some(more) = ["tools", "toolChoice"].into_iter().find(|name| params.contains_key(*name))
    {
        return Err(format!("a plugin's messages come without `{more}`"));
    }
    let params = serde_json::from_value::<CreateMessageRequestParams>(Value::Object(params));
    params
        .map(CreateMessageRequest::new)
        .map_err(|error| format!("the parameters are not those of sampling: {error}"))
}

fn form_answer(request: &AskRequest, form: ElicitResult) -> Option<Result<String, AskFailure>> {
    let content = match (form.action, form.content) {
        (ElicitationAction::Accept, content) => content.unwrap_or_else(|| json!({})),
        _ => return Some(Err(AskFailure::Declined)),
    };
    let schema = form_schema(request.params.get("requestedSchema")?.as_object()?)
        .and_then(|form| answer_schema(&form))
        .ok()?;
    let invalid = |why: Violations| {
        AskFailure::Invalid(format!(
            "the client's answer to `{}` is not what its form asks for: {why}",
            request.key
        ))
    };
    content
        .is_object()
        .then(|| schema.validate(&content).map(|()| content.to_string()).map_err(invalid))
}

/// Returns the form as the client sees it: the protocol knows few keywords, and others are dropped.
fn form_schema(schema: &Map<String, Value>) -> Result<ElicitationSchema, String> {
    serde_json::from_value(Value::Object(schema.clone())).map_err(|error| not_a_form(&error))
}

/// Returns the schema that the content of a form must match. It has the form's keywords alone,
/// which are cheap to compile and to check: a plugin's patterns would delay other calls.
fn answer_schema(form: &ElicitationSchema) -> Result<Schema, String> {
    let schema = serde_json::to_value(form).map_err(|error| not_a_form(&error))?;
    Schema::input(schema).map_err(|error| not_a_form(&error))
}

fn not_a_form(error: &dyn std::fmt::Display) -> String {
    format!("the schema is not one of a form: {error}")
}

#[cfg(test)]
mod tests;
