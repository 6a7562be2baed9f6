//! The body of a call, and the form of its result.

use crate::api::ids::{check_text_id, fresh_id};
use crate::api::problem::ApiError;
use crate::settings::Settings;
use palisade::{Call, CancellationToken};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Number, Value};
use std::time::Duration;
use utoipa::ToSchema;

/// The longest time limit of a call, in milliseconds.
const LONGEST: u64 = 600_000;

/// A call.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct CallRequest {
    /// The tool's name.
    tool: String,
    /// The input, usually an object, as the tool's schema has it.
    input: Value,
    /// The caller's id of the call. Default: a new one.
    #[serde(default)]
    #[schema(pattern = "^([ -,.-~]|[ -~]{2,256})$")]
    id: Option<String>,
    /// The turn of the conversation that the call belongs to.
    #[serde(default)]
    #[schema(pattern = "^([ -,.-~]|[ -~]{2,256})$")]
    turn_id: Option<String>,
    /// The time limit of the run. Default: that of the tool. The server may have a lower one.
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 1, maximum = 600_000)]
    timeout_ms: Option<u64>,
    /// A value for the tool, which the host does not read.
    #[serde(default)]
    context: Option<Value>,
}

/// Reads a whole number, which JSON also writes with a fraction of zero.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<Number>::deserialize(deserializer)? else { return Ok(None) };
    let of_float = |number: f64| {
        let is_whole = number.fract() == 0.0;
        is_whole.then(|| format!("{number:.0}").parse().ok()).flatten()
    };
    let whole = number.as_u64().or_else(|| number.as_f64().and_then(of_float));
    let refused = || D::Error::custom(format!("`{number}` is no whole number from 0 on"));
    whole.map(Some).ok_or_else(refused)
}

impl CallRequest {
    /// Returns the call, and the token that cancels it.
    pub(super) fn call(self, settings: &Settings) -> Result<(Call, CancellationToken), ApiError> {
        let cancel = CancellationToken::new();
        let mut call = Call::new(self.tool, self.input).with_cancellation(cancel.clone());
        call = match &self.id {
            Some(id) => call.with_id(check_text_id("id", id)?),
            None => call.with_id(&fresh_id("call_")?),
        };
        if let Some(turn) = &self.turn_id {
            call = call.with_turn(check_text_id("turn_id", turn)?);
        }
        if let Some(time) = self.timeout_ms.filter(|time| !(1..=LONGEST).contains(time)) {
            let why = format!("`timeout_ms` is {time}; 1 to {LONGEST} are accepted");
            return Err(ApiError::Body(why));
        }
        let asked = self.timeout_ms.map(Duration::from_millis);
        if let Some(time) = settings.time_of_call(asked) {
            call = call.with_timeout(time);
        }
        if let Some(context) = self.context {
            call = call.with_context(context);
        }
        Ok((call, cancel))
    }
}

/// The form of a result; it is written by [`palisade::ToolResult`].
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolResult)]
pub(in crate::api) struct ResultView {
    call_id: String,
    command_executed: Option<String>,
    /// The blocks of the output, each an object with a `type`.
    #[schema(value_type = Vec<Object>)]
    content: Vec<Value>,
    /// The plugin's digest, or `null` for a native tool.
    digest: Option<String>,
    /// The run time, without queues and questions.
    duration_ms: f64,
    error: Option<ErrorView>,
    /// Each name is a string, or an object `{"path", "bytes"}` if it is not UTF-8.
    files_modified: Vec<Value>,
    /// The tool's message to the program, which no model reads.
    #[schema(value_type = Object)]
    metadata: Value,
    /// The text of the output; `null` if the call failed.
    output: Option<String>,
    plugin: Option<String>,
    success: bool,
    tool: String,
    usage: UsageView,
}

/// The reason why a call failed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolError)]
struct ErrorView {
    /// One of the documented classes, such as `user_denied`.
    class: String,
    message: String,
    /// The invalid members of the input, for `validation_error`.
    #[schema(value_type = Vec<Object>)]
    errors: Vec<Value>,
    #[schema(value_type = Object)]
    detail: Value,
    is_user_visible: bool,
    is_recoverable: bool,
}

/// The resources that a call used.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Usage)]
pub(in crate::api) struct UsageView {
    pub(in crate::api) peak_memory_bytes: u64,
    pub(in crate::api) bytes_read: u64,
    pub(in crate::api) bytes_written: u64,
    pub(in crate::api) truncated_bytes: u64,
}
