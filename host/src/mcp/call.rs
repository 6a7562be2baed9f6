//! `tools/call`: a request made into a call, run on the one road of the dispatcher, and answered.

#![expect(deprecated, reason = "what the next revision will not have, the clients of the older ones still expect")]

use super::answer::afforded;
use super::ask::{self, Question};
use super::asked;
use super::client::Client;
use super::content::footprint;
use super::era::{CLIENT, Era};
use super::hello::NAME;
use super::outcome::{answer, structured};
use super::rounds::{Purpose, Rounds, Subject};
use super::voice::{Voice, Wanted};
use super::{Shared, endpoint, trace};
use crate::dispatch::Party;
use crate::execution::account::{Account, CallBudget};
use crate::execution::offload::{IN_PLACE, ended, offload};
use crate::registry::Registered;
use crate::sandbox::limits;
use crate::tool::budget::Exhausted;
use crate::tool::nearest_names;
use crate::tool::text::{cut, elided};
use crate::tool::{Call, CallId, CallInput, ErrorClass, ErrorKind, ToolResult};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, InputRequiredResult, InputResponses,
    LoggingLevel,
};
use rmcp::service::{Peer, RequestContext};
use serde_json::{Map, Value, json};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};
use tracing::Instrument as _;

/// How long a call waits for a tool whose plugin may still be loaded.
const LOADING: Duration = Duration::from_secs(30);
/// How long the withdrawal of a question may hold up the answer to its call, where the client does not read.
const WITHDRAWAL: Duration = Duration::from_secs(1);

/// How long the value of an output may take to be made.
const ANSWERING: Duration = Duration::from_secs(10);

/// A request on its way.
pub(super) struct Request {
    pub(super) server: Arc<Shared>,
    pub(super) client: Arc<Client>,
    pub(super) era: Era,
    pub(super) context: RequestContext<RoleServer>,
}

/// What came of a call.
pub(super) enum Settled {
    Ended(Box<ToolResult>),
    /// It ended with questions, and is made again with the answers.
    Asks(InputRequiredResult),
}

impl Request {
    /// Runs the call to its end, and says how it ended. Dropping the future ends it, too.
    pub(super) async fn call(self, params: CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
        let operation = trace::Operation::begin(&self.context, &self.client, elided(&params.name, 64).as_ref());
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

    /// The answer that a result makes, or a failure where there is no memory for it.
    async fn answered(&self, tool: &Registered, result: &ToolResult) -> CallToolResult {
        let made = self.made(tool, result).await;
        made.and_then(|made| afforded(made, &self.context.extensions)).unwrap_or_else(|why| {
            let kind = ended(why, ANSWERING, tool.definition().side_effects());
            answer(&ToolResult::failure(result.call_id().clone(), result.tool(), kind), None)
        })
    }

    /// The output stands in an answer as text, and as a value where there is memory for one; a tool that has promised a
    /// value fails without it.
    async fn made(&self, tool: &Registered, result: &ToolResult) -> Result<CallToolResult, Exhausted> {
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

    /// The account that the memory of this request counts in.
    pub(super) fn account(&self) -> Account {
        endpoint::account(&self.context.extensions).unwrap_or_else(|| self.server.host.limits().account())
    }

    /// Runs a call to its end, in the way of the request's era.
    pub(super) async fn settle(
        &self,
        tool: &Arc<Registered>,
        input: Value,
        brought: (Option<&str>, InputResponses),
    ) -> Result<Settled, ErrorData> {
        match self.era {
            Era::Legacy => Ok(Settled::Ended(Box::new(self.asking(tool, input).await))),
            Era::Modern => self.in_rounds(tool, input, brought).await,
        }
    }

    /// The tool of this name, as far as this client is shown it.
    async fn tool(&self, name: &str) -> Result<Arc<Registered>, ErrorData> {
        let host = &self.server.host;
        if !host.registry().has(name) {
            let _ = tokio::time::timeout(LOADING, host.available(name)).await;
        }
        let is_shown = |tool: &Arc<Registered>| self.client.session().advertises(tool.definition());
        host.registry().get(name).ok().filter(is_shown).ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> ErrorData {
        let shown = self.server.host.definitions(self.client.session());
        let nearest = nearest_names(name, shown.iter().map(|tool| tool.name().as_str()));
        let compiling: Vec<String> =
            self.server.host.compiling().into_iter().map(|compiling| compiling.plugin).collect();
        let data = match compiling.is_empty() {
            true => json!({"nearest": nearest}),
            false => json!({"nearest": nearest, "compiling": compiling}),
        };
        let kind = ErrorKind::NotFound { tool: name.to_owned(), nearest, compiling };
        ErrorData::invalid_params(kind.to_string(), Some(data))
    }

    /// With questions put to the client while the call waits.
    async fn asking(&self, tool: &Arc<Registered>, input: Value) -> ToolResult {
        let (party, questions) = ask::party(asked::kinds(&self.context), plugin(tool));
        self.run(tool, input, party, questions).await
    }

    /// With questions that end the call, and answers that come with the next.
    async fn in_rounds(
        &self,
        tool: &Arc<Registered>,
        input: Value,
        brought: (Option<&str>, InputResponses),
    ) -> Result<Settled, ErrorData> {
        let subject = Subject { code: tool.origin().digest(), plugin: plugin(tool).to_owned() };
        let kinds = asked::kinds(&self.context);
        // Who can be asked nothing, and has been asked nothing, needs no proof of what the questions were about.
        let purpose = (!kinds.is_empty() || brought.0.is_some())
            .then(|| Purpose::of(self.client.name(), tool.definition().name().as_str(), &input));
        let sealer = &self.server.sealer;
        let rounds = Rounds::begin(sealer, purpose.as_ref(), (kinds, subject), brought)
            .map_err(|refused| ErrorData::invalid_params(refused.to_string(), None))?;
        let rounds = Arc::new(rounds);
        let party = Party::default().with_asker(rounds.clone()).with_client(rounds.clone()).without_memory();
        let result = self.run(tool, input, party, None).await;
        match result.error().map(crate::tool::ToolError::kind) {
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

    /// Runs the call, while what it says and asks is passed on.
    async fn run(
        &self,
        tool: &Arc<Registered>,
        input: Value,
        party: Party,
        questions: Option<mpsc::Receiver<Question>>,
    ) -> ToolResult {
        let (host, peer) = (&self.server.host, &self.context.peer);
        let call = self.prepared(tool, input);
        let voice = Voice::of(host.hub(), call.id(), self.wanted(), plugin(tool));
        let (mut asked, mut all_asked) = (pin!(put_all(peer, questions)), false);
        let over = Notify::new();
        // The call goes on, and keeps its deadline, while a client does not read the call's notifications.
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
        // With nobody left who asks, what was asked is withdrawn.
        if !all_asked {
            let _ = tokio::time::timeout(WITHDRAWAL, asked).await;
        }
        if !all_said {
            speaking.await;
        }
        result
    }

    /// On the one road of the dispatcher, with the very tool that was looked up: what was answered about its code is
    /// never taken for an answer about other code that has come to its name meanwhile. In a box: whatever this is part of
    /// is moved about.
    fn running(&self, tool: &Arc<Registered>, call: Call, party: Party) -> impl Future<Output = ToolResult> {
        let (server, client, tool) = (self.server.clone(), self.client.clone(), tool.clone());
        let party = party.with_account(endpoint::account(&self.context.extensions));
        let pace = tool.pace().clone();
        let work = Box::pin(async move {
            let _underway = server.begin();
            server.host.dispatch_to(client.session(), (call, tool), &party).await
        });
        async move { self.server.lanes.run((&pace, has_run), work).await }
    }

    fn prepared(&self, tool: &Registered, input: Value) -> Call {
        let (id, tool) = (CallId::new(&self.client.next_call()), tool.definition().name().as_str());
        let call = Call::known_as(id, (tool, CallInput::Value(input)), self.context.ct.clone());
        let call = call.with_metadata(self.metadata());
        match self.server.settings.timeout {
            Some(timeout) => call.with_timeout(timeout),
            None => call,
        }
    }

    /// What a client says of itself, for whoever reads the tool's metadata; nothing is decided by it.
    fn metadata(&self) -> Map<String, Value> {
        let client = match self.era {
            Era::Legacy => self.context.client_info().map(|info| json!({"name": info.name, "version": info.version})),
            // Of a modern request without it, the library would give its own name.
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

/// Whether what came of a call may be the tool's own work: not where it was cancelled, refused or stopped.
fn has_run(result: &ToolResult) -> bool {
    result.error().is_none_or(|error| error.class() == ErrorClass::ExecutionError)
}

/// The two that every client says of itself, of all that it may say.
fn named(client: &Value) -> Option<Value> {
    let text = |key| client.get(key).and_then(Value::as_str);
    Some(json!({"name": cut(text("name")?, NAME), "version": cut(text("version")?, NAME)}))
}

/// Whose words a tool's are.
fn plugin(tool: &Registered) -> &str {
    tool.origin().plugin().unwrap_or(env!("CARGO_PKG_NAME"))
}

/// Puts each question as it comes, for as long as anybody may ask one.
async fn put_all(peer: &Peer<RoleServer>, questions: Option<mpsc::Receiver<Question>>) {
    if let Some(mut questions) = questions {
        while let Some(question) = questions.recv().await {
            ask::put(peer, question).await;
        }
    }
}
