//! `tools/call`: converts a request into a call, and its result into the response.

use super::plugin_request::{Outcome, PluginRequest};
use super::respond::CONVERSION_TIMEOUT;
use crate::protocol::remedy::{Elicitation, add_remedy, of_unasked};
use crate::protocol::tool_result::{call_result, structured_content};
use crate::questions::input_required::RoundInput;
use crate::questions::plugin_question::supported_kinds;
use crate::settings::ConfirmedBy;
use crate::telemetry::operation::Operation;
use palisade::Host;
use palisade::Session;
use palisade::internal::{answer_turns, exhaustion_error, is_short, offload};
use palisade::plugins::Compiling;
use palisade::registry::Registered;
use palisade::sandbox::limits;
use palisade::tool::budget::Exhausted;
use palisade::tool::json::Json;
use palisade::tool::text::elided;
use palisade::{AskKind, ErrorKind, ToolResult, tool::nearest_names};
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tracing::Instrument as _;

/// The time that a call waits for a tool whose plugin may still be loading.
const LOADING_TIMEOUT: Duration = Duration::from_secs(30);

impl PluginRequest {
    /// Handles `tools/call`. Dropping the future cancels the call.
    pub(crate) async fn call_tool(
        self,
        params: CallToolRequestParams,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = elided(&params.name, 64);
        let operation = Operation::begin(&self.context, &self.client, name.as_ref());
        let response = self.respond(params).instrument(operation.span()).await;
        operation.end(&response);
        response
    }

    async fn respond(&self, params: CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
        let CallToolRequestParams { name, arguments, input_responses, request_state, .. } = params;
        let tool = find_tool(&self.server.host, self.client.session(), &name).await?;
        let input = Value::Object(arguments.unwrap_or_default());
        let responses = input_responses.unwrap_or_default();
        let round = RoundInput { state: request_state, responses };
        Ok(match self.run(&tool, input, round).await? {
            Outcome::Complete(result) => self.tool_result(&tool, result).await.into(),
            Outcome::InputRequired(required) => CallToolResponse::InputRequired(required),
        })
    }

    /// Builds the response of a result, or of a failure if there is not enough memory.
    async fn tool_result(&self, tool: &Registered, result: Box<ToolResult>) -> CallToolResult {
        let console = self.server.settings.console.as_deref();
        let unasked = of_unasked(&result, self.elicitation(), console);
        let (log, transport) = (&self.server.operator_log, self.client.transport());
        log.note(&result, transport, self.elicitation(), unasked.as_deref());
        let (id, name) = (result.call_id().clone(), result.tool().to_owned());
        let mut built = self.build_result(tool, result).await;
        if let (Ok(answer), Some(remedy)) = (&mut built, unasked) {
            add_remedy(answer, &remedy);
        }
        built.unwrap_or_else(|why| {
            let class = tool.definition().side_effects();
            let kind = exhaustion_error(why, CONVERSION_TIMEOUT, class);
            call_result(&ToolResult::failure(id, &name, kind), None, self.elicitation())
        })
    }

    /// Returns whether the user of the client can be asked.
    fn elicitation(&self) -> Elicitation {
        let is_declared = supported_kinds(&self.context).contains(&AskKind::Elicitation);
        match self.server.settings.confirmed_by {
            ConfirmedBy::HostOnly => Elicitation::Unused,
            ConfirmedBy::ClientOrHost if is_declared => Elicitation::Declared,
            ConfirmedBy::ClientOrHost => Elicitation::Undeclared,
        }
    }

    /// Builds the response with the output as text, and as a JSON value if there is memory for it.
    /// A tool with an output schema fails without the value.
    async fn build_result(
        &self,
        tool: &Registered,
        result: Box<ToolResult>,
    ) -> Result<CallToolResult, Exhausted> {
        let has_schema = tool.definition().output_schema().is_some();
        let structured = match structured_content(&result, self.lifecycle) {
            Some(json) if has_schema || json.footprint() <= limits::HOST_DATA => {
                match self.parse_output(json).await {
                    Err(why) if has_schema => return Err(why),
                    parsed => parsed.ok(),
                }
            }
            _ => None,
        };
        let elicitation = self.elicitation();
        self.convert(result, move |result| call_result(result, structured, elicitation)).await
    }

    async fn parse_output(&self, json: &Json) -> Result<Value, Exhausted> {
        let budget = self.conversion();
        let parsed = if is_short(json.as_str().len(), json.footprint()) {
            json.to_value_within(&budget)
        } else {
            let json = json.clone();
            let turns = self.turns.get().unwrap_or_else(|| answer_turns());
            offload(&budget, turns, move |budget| json.to_value_within(&*budget)).await
        };
        parsed.map(|(value, _kept)| value)
    }
}

/// Returns the tool with this name, if the session advertises it. Waits a while for a plugin that
/// may still be loading.
async fn find_tool(
    host: &Host,
    session: &Session,
    name: &str,
) -> Result<Arc<Registered>, ErrorData> {
    if !host.registry().has(name) {
        let _ = tokio::time::timeout(LOADING_TIMEOUT, host.wait_for_tool(name)).await;
    }
    let is_visible = |tool: &Arc<Registered>| session.advertises(tool);
    let tool = host.registry().get(name).ok().filter(is_visible);
    tool.ok_or_else(|| unknown_tool(host, session, name))
}

fn unknown_tool(host: &Host, session: &Session, name: &str) -> ErrorData {
    let visible = host.definitions(session);
    let nearest = nearest_names(name, visible.iter().map(|tool| tool.name().as_str()));
    let compiling: Vec<String> =
        host.compiling().into_iter().filter_map(Compiling::approved_name).collect();
    let data = match compiling.is_empty() {
        true => json!({"nearest": nearest}),
        false => json!({"nearest": nearest, "compiling": compiling}),
    };
    let kind = ErrorKind::NotFound { tool: name.to_owned(), nearest, compiling };
    ErrorData::invalid_params(kind.to_string(), Some(data))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use palisade::CacheMode;
    use palisade::plugins::Shipped;
    use palisade::sandbox::{ChildCompiler, Compiler};
    use tokio_util::sync::CancellationToken;

    /// The paused clock advances while the compiler stands still.
    #[tokio::test(start_paused = true)]
    async fn call_of_a_compiling_plugin_is_refused_after_a_wait() {
        let place = tempfile::tempdir().unwrap();
        let over = CancellationToken::new();
        std::fs::write(place.path().join("slow.wasm"), palisade_plugins::hostile().bytes())
            .unwrap();
        let endless =
            ChildCompiler::program("/bin/sh", ["-c", "exec sleep 600"]).cancelled_by(over.clone());
        let builder =
            Host::builder().workspace(place.path()).shipped(Shipped::LeftOut).plugins(place.path());
        let builder = builder.cache(CacheMode::Off).compiler(Compiler::Child(endless));
        let host = builder.build_in_background().unwrap();
        let begun = tokio::time::Instant::now();
        let refused = find_tool(&host, host.session(), "slow").await.err().unwrap();
        assert_eq!(begun.elapsed(), LOADING_TIMEOUT);
        assert!(
            refused.message.ends_with("is being compiled: slow; try again later"),
            "{refused:?}"
        );
        assert_eq!(refused.data, Some(json!({"nearest": [], "compiling": ["slow"]})));
        over.cancel();
    }
}
