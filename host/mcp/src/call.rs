//! `tools/call`: converts a request into a call, dispatches it, and converts the result.

#![expect(
    deprecated,
    reason = "what the next revision will not have, the clients of the older ones still expect"
)]

use super::answer::afforded;
use super::ask::{self, Question};
use super::asked;
use super::client::Client;
use super::content::footprint;
use super::era::{CLIENT, Era};
use super::hello::NAME;
use super::outcome::{answer, structured};
use super::rounds::{Purpose, Rounds, Subject};
use super::short::CALL;
use super::voice::{Voice, Wanted};
use super::{Shared, endpoint, maker, trace};
use palisade::dispatch::Party;
use palisade::host::Host;
use palisade::internal::{Account, CallBudget, IN_PLACE, ended, offload};
use palisade::registry::Registered;
use palisade::sandbox::limits;
use palisade::session::Session;
use palisade::tool::budget::Exhausted;
use palisade::tool::nearest_names;
use palisade::tool::text::{cut, elided};
use palisade::tool::{Call, CallId, CallInput, ErrorKind, ToolResult};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, InputRequiredResult,
    InputResponses, LoggingLevel,
};
use rmcp::service::{Peer, RequestContext};
use serde_json::{Map, Value, json};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};
use tracing::Instrument as _;

/// The time that a call waits for a tool whose plugin may still be loading.
const LOADING: Duration = Duration::from_secs(30);
/// The timeout of the withdrawal of a question, which delays the response if the client does not
/// read.
const WITHDRAWAL: Duration = Duration::from_secs(1);

/// The deadline for parsing an output into a JSON value.
const ANSWERING: Duration = Duration::from_secs(10);

/// Returns the error for parameters that the library cannot parse.
pub(super) fn unfit(method: &str, params: Option<&Value>) -> ErrorData {
    let is_nameless = method == CALL && params.is_none_or(|params| params.get("name").is_none());
    let message = match is_nameless {
        true => format!("`{method}` needs `name`, the name of the tool"),
        false => format!("the parameters are none of `{method}`"),
    };
    ErrorData::invalid_params(message, None)
}

/// A request in progress.
pub(super) struct Request {
    pub(super) server: Arc<Shared>,
    pub(super) client: Arc<Client>,
    pub(super) era: Era,
    pub(super) context: RequestContext<RoleServer>,
}

/// The outcome of a call.
pub(super) enum Settled {
    Ended(Box<ToolResult>),
    /// The call ended with questions. The client repeats it with the answers.
    Asks(InputRequiredResult),
}

impl Request {
    /// Runs the call, and returns its response. Dropping the future cancels the call.
    pub(super) async fn call(
        self,
        params: CallToolRequestParams,
    ) -> Result<CallToolResponse, ErrorData> {
        let operation =
            trace::Operation::begin(&self.context, &self.client, elided(&params.name, 64).as_ref());
        let answer = self.answer(params).instrument(operation.span()).await;
        operation.end(&answer);
        answer
    }

    async fn answer(&self, params: CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
        let tool = self.tool(&params.name).await?;
        let CallToolRequestParams { arguments, input_responses, request_state, .. } = params;
        let input = Value::Object(arguments.unwrap_or_default());
        let brought = (request_state.as_deref(), input_responses.unwrap_or_default());
        Ok(match self.settle(&tool, input, brought).await? {
            Settled::Ended(result) => self.answered(&tool, &result).await.into(),
            Settled::Asks(asks) => CallToolResponse::InputRequired(asks),
        })
    }

    /// Builds the response of a result, or of a failure if there is not enough memory.
    async fn answered(&self, tool: &Registered, result: &ToolResult) -> CallToolResult {
        let made = self.made(tool, result).await;
        made.and_then(|made| afforded(made, &self.context.extensions)).unwrap_or_else(|why| {
            let kind = ended(why, ANSWERING, tool.definition().side_effects());
            answer(&ToolResult::failure(result.call_id().clone(), result.tool(), kind), None)
        })
    }

    /// Builds the response with the output as text, and as a JSON value if there is memory for it.
    /// A tool with an output schema fails without the value.
    async fn made(
        &self,
        tool: &Registered,
        result: &ToolResult,
    ) -> Result<CallToolResult, Exhausted> {
        let account = self.account();
        account.reserve(result.content().iter().map(footprint).sum())?;
        let Some(json) = structured(result, self.era) else { return Ok(answer(result, None)) };
        let has_schema = tool.definition().output_schema().is_some();
        if !has_schema && json.footprint() > limits::HOST_DATA {
            return Ok(answer(result, None));
        }
        let budget = CallBudget::new(account, Instant::now() + ANSWERING, self.context.ct.clone());
        let value = if json.as_str().len() <= IN_PLACE {
            json.to_value_within(&budget)
        } else {
            let json = json.clone();
            offload(&budget, tool.turns(), move |budget| json.to_value_within(&*budget)).await
        };
        match value {
            Ok((value, _kept)) => Ok(answer(result, Some(value))),
            Err(_) if !has_schema => Ok(answer(result, None)),
            Err(why) => Err(why),
        }
    }

    /// Returns the memory account of this request.
    pub(super) fn account(&self) -> Account {
        endpoint::account(&self.context.extensions)
            .unwrap_or_else(|| self.server.host.limits().account())
    }

    /// Runs a call, asking questions as the request's era does.
    pub(super) async fn settle(
        &self,
        tool: &Arc<Registered>,
        input: Value,
        brought: (Option<&str>, InputResponses),
    ) -> Result<Settled, ErrorData> {
        maker::comes_from(&self.context.extensions, tool.turns());
        match self.era {
            Era::Legacy => Ok(Settled::Ended(Box::new(self.asking(tool, input).await))),
            Era::Modern => self.in_rounds(tool, input, brought).await,
        }
    }

    /// Returns the tool with this name, if the client may see it.
    async fn tool(&self, name: &str) -> Result<Arc<Registered>, ErrorData> {
        shown(&self.server.host, self.client.session(), name).await
    }

    /// Runs a call that puts its questions to the client while it waits.
    async fn asking(&self, tool: &Arc<Registered>, input: Value) -> ToolResult {
        let (party, questions) = ask::party(asked::kinds(&self.context), plugin(tool));
        self.run(tool, input, party, questions).await
    }

    /// Runs a call that ends with its questions, and is repeated with the answers.
    async fn in_rounds(
        &self,
        tool: &Arc<Registered>,
        input: Value,
        brought: (Option<&str>, InputResponses),
    ) -> Result<Settled, ErrorData> {
        let (state, responses) = brought;
        let subject = Subject { code: tool.origin().digest(), plugin: plugin(tool).to_owned() };
        let kinds = asked::kinds(&self.context);
        // Without questions now or earlier, no state is signed or verified, so that hashing the
        // input is wasted.
        let purpose = (!kinds.is_empty() || state.is_some())
            .then(|| Purpose::of(self.client.name(), tool.definition().name().as_str(), &input));
        let sealer = &self.server.sealer;
        let rounds = Rounds::begin(sealer, purpose.as_ref(), kinds, subject, state, responses)
            .map_err(|refused| ErrorData::invalid_params(refused.to_string(), None))?;
        let rounds = Arc::new(rounds);
        let party = Party::default()
            .with_call_confirmer(rounds.clone())
            .with_client(rounds.clone())
            .without_memory();
        let result = self.run(tool, input, party, None).await;
        match result.error().map(palisade::tool::ToolError::kind) {
            Some(ErrorKind::AwaitsClient) => {
                let no_state = || ErrorData::internal_error("the question cannot be put", None);
                let within = self.server.host.confirmation_timeout();
                let required = purpose.and_then(|purpose| rounds.required(sealer, purpose, within));
                required.map(Settled::Asks).ok_or_else(no_state)
            }
            Some(ErrorKind::ClientLacks { kinds }) => {
                Err(ErrorData::missing_required_client_capability(asked::capabilities(kinds)))
            }
            _ => Ok(Settled::Ended(Box::new(result))),
        }
    }

    /// Runs the call while forwarding its notifications and questions.
    async fn run(
        &self,
        tool: &Arc<Registered>,
        input: Value,
        party: Party,
        questions: Option<mpsc::Receiver<Question>>,
    ) -> ToolResult {
        let (host, peer) = (&self.server.host, &self.context.peer);
        let call = self.prepared(tool, input);
        let voice = Voice::of(host.event_bus(), call.id(), self.wanted(), plugin(tool));
        let (mut asked, mut all_asked) = (pin!(put_all(peer, questions)), false);
        let over = Notify::new();
        // Concurrently, so that the call runs on and keeps its deadline while the client does not
        // read.
        let mut speaking = pin!(voice.speak(peer, &self.context.ct, &over));
        let mut all_said = false;
        let result = {
            let mut running = pin!(self.running(tool, call, party));
            loop {
                tokio::select! {
                    biased;
                    () = &mut speaking, if !all_said => all_said = true,
                    () = &mut asked, if !all_asked => all_asked = true,
                    result = &mut running => break result,
                }
            }
        };
        over.notify_one();
        // The call is over and its sender dropped: withdraw the questions without an answer.
        if !all_asked {
            let _ = tokio::time::timeout(WITHDRAWAL, asked).await;
        }
        if !all_said {
            speaking.await;
        }
        result
    }

    /// Dispatches the call with the tool that was looked up. A second lookup could find other code
    /// under the name, for which the client's answers do not count. The future is boxed, since its
    /// callers are moved around.
    fn running(
        &self,
        tool: &Arc<Registered>,
        call: Call,
        party: Party,
    ) -> impl Future<Output = ToolResult> {
        let (server, client, tool) = (self.server.clone(), self.client.clone(), tool.clone());
        let party = party.with_account(endpoint::account(&self.context.extensions));
        Box::pin(async move {
            let _underway = server.begin();
            server.host.dispatch_to(client.session(), call, tool, &party).await
        })
    }

    fn prepared(&self, tool: &Registered, input: Value) -> Call {
        let (id, tool) = (CallId::new(&self.client.next_call()), tool.definition().name().as_str());
        let call = Call::known_as(id, tool, CallInput::Value(input), self.context.ct.clone());
        let call = call.with_metadata(self.metadata());
        match self.server.settings.timeout {
            Some(timeout) => call.with_timeout(timeout),
            None => call,
        }
    }

    /// Returns the name and version that a client claims, as metadata for the tool. Unverified: no
    /// decision may depend on it.
    fn metadata(&self) -> Map<String, Value> {
        let client = match self.era {
            Era::Legacy => self
                .context
                .client_info()
                .map(|info| json!({"name": info.name, "version": info.version})),
            // The library would substitute its own name if a modern request has none.
            Era::Modern => self.context.meta.get(CLIENT).and_then(named),
        };
        client.map(|client| Map::from_iter([("mcp_client".to_owned(), client)])).unwrap_or_default()
    }

    fn wanted(&self) -> Wanted {
        let log: Option<LoggingLevel> = match self.era {
            Era::Legacy => Some(self.client.level()),
            Era::Modern => self.context.meta.log_level(),
        };
        Wanted { progress: self.context.meta.get_progress_token(), log }
    }
}

/// Returns the tool with this name, if the session advertises it. Waits a while for a plugin that
/// may still be loading.
async fn shown(host: &Host, session: &Session, name: &str) -> Result<Arc<Registered>, ErrorData> {
    if !host.registry().has(name) {
        let _ = tokio::time::timeout(LOADING, host.wait_for_tool(name)).await;
    }
    let is_shown = |tool: &Arc<Registered>| session.advertises(tool.definition());
    host.registry().get(name).ok().filter(is_shown).ok_or_else(|| unknown(host, session, name))
}

fn unknown(host: &Host, session: &Session, name: &str) -> ErrorData {
    let shown = host.definitions(session);
    let nearest = nearest_names(name, shown.iter().map(|tool| tool.name().as_str()));
    let compiling: Vec<String> =
        host.compiling().into_iter().map(|compiling| compiling.plugin).collect();
    let data = match compiling.is_empty() {
        true => json!({"nearest": nearest}),
        false => json!({"nearest": nearest, "compiling": compiling}),
    };
    let kind = ErrorKind::NotFound { tool: name.to_owned(), nearest, compiling };
    ErrorData::invalid_params(kind.to_string(), Some(data))
}

/// Returns the name and version of a client, shortened; its other fields are dropped.
fn named(client: &Value) -> Option<Value> {
    let text = |key| client.get(key).and_then(Value::as_str);
    Some(json!({"name": cut(text("name")?, NAME), "version": cut(text("version")?, NAME)}))
}

/// Returns the plugin that a tool belongs to.
fn plugin(tool: &Registered) -> &str {
    tool.origin().plugin().unwrap_or("palisade")
}

/// Forwards questions until all senders are dropped.
async fn put_all(peer: &Peer<RoleServer>, questions: Option<mpsc::Receiver<Question>>) {
    if let Some(mut questions) = questions {
        while let Some(question) = questions.recv().await {
            ask::put(peer, question).await;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use palisade::host::CacheMode;
    use palisade::plugins::Shipped;
    use palisade::sandbox::{ChildCompiler, Compiler};
    use tokio_util::sync::CancellationToken;

    /// The paused clock advances while the compiler stands still.
    #[tokio::test(start_paused = true)]
    async fn call_of_a_compiling_plugin_is_refused_after_a_wait() {
        let (place, over) = (tempfile::tempdir().unwrap(), CancellationToken::new());
        std::fs::write(place.path().join("slow.wasm"), palisade_plugins::hostile().bytes())
            .unwrap();
        let endless =
            ChildCompiler::program("/bin/sh", ["-c", "exec sleep 600"]).cancelled_by(over.clone());
        let builder =
            Host::builder().workspace(place.path()).shipped(Shipped::LeftOut).plugins(place.path());
        let builder = builder.cache(CacheMode::Off).compiler(Compiler::Child(endless));
        let host = builder.build_in_background().unwrap();
        let begun = tokio::time::Instant::now();
        let refused = shown(&host, host.session(), "slow").await.err().unwrap();
        assert_eq!(begun.elapsed(), LOADING);
        assert!(
            refused.message.ends_with("is being compiled: slow; try again later"),
            "{refused:?}"
        );
        assert_eq!(refused.data, Some(json!({"nearest": [], "compiling": ["slow"]})));
        over.cancel();
    }
}
