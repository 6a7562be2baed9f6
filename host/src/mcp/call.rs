//! `tools/call`: a request made into a call, run on the one road of the dispatcher, and answered.

#![expect(deprecated, reason = "what the next revision will not have, the clients of the older ones still expect")]

use super::ask::{self, Question};
use super::asked;
use super::client::Client;
use super::era::{CLIENT, Era};
use super::outcome::answer;
use super::rounds::{Purpose, Rounds, Subject};
use super::voice::{Voice, Wanted};
use super::{Shared, trace};
use crate::dispatch::Party;
use crate::registry::Registered;
use crate::tool::nearest_names;
use crate::tool::text::elided;
use crate::tool::{AskKind, Call, CallId, CallInput, ErrorClass, ErrorKind, ToolResult};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, InputRequiredResult, InputResponses, LoggingLevel,
};
use rmcp::service::{Peer, RequestContext};
use serde_json::{Map, Value, json};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tracing::Instrument as _;

/// How long a call waits for a tool whose plugin may still be loaded.
const LOADING: Duration = Duration::from_secs(30);
/// How long the withdrawal of a question may hold up the answer to its call, where the client does not read.
const WITHDRAWAL: Duration = Duration::from_secs(1);

/// A request on its way.
pub(super) struct Request {
    pub(super) server: Arc<Shared>,
    pub(super) client: Arc<Client>,
    pub(super) era: Era,
    pub(super) context: RequestContext<RoleServer>,
}

/// What a call is of.
#[derive(Clone)]
pub(super) enum Target {
    /// A tool, which whoever has its name at that moment may call.
    Named(Arc<Registered>),
    /// Something else that a plugin offers, which nobody can call by name.
    Apart(Arc<Registered>),
}

impl Target {
    fn tool(&self) -> &Registered {
        let (Self::Named(tool) | Self::Apart(tool)) = self;
        tool
    }
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
        let target = Target::Named(self.tool(&params.name).await?);
        let CallToolRequestParams { arguments, input_responses, request_state, .. } = params;
        let input = Value::Object(arguments.unwrap_or_default());
        let brought = (request_state.as_deref(), input_responses.unwrap_or_default());
        Ok(match self.settle(&target, input, brought).await? {
            Settled::Ended(result) => answer(&result, self.era).into(),
            Settled::Asks(asks) => CallToolResponse::InputRequired(asks),
        })
    }

    /// Runs a call to its end, in the way of the request's era.
    pub(super) async fn settle(
        &self,
        target: &Target,
        input: Value,
        brought: (Option<&str>, InputResponses),
    ) -> Result<Settled, ErrorData> {
        match self.era {
            Era::Legacy => Ok(Settled::Ended(Box::new(self.asking(target, input).await))),
            Era::Modern => self.in_rounds(target, input, brought).await,
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
        let kind = ErrorKind::NotFound { tool: name.to_owned(), nearest: nearest.clone() };
        ErrorData::invalid_params(kind.to_string(), Some(json!({"nearest": nearest})))
    }

    /// With questions put to the client while the call waits.
    async fn asking(&self, target: &Target, input: Value) -> ToolResult {
        let kinds = asked::kinds(&self.context);
        if kinds.is_empty() {
            return self.run(target, input, Party::default(), None).await;
        }
        let can_confirm = kinds.contains(&AskKind::Elicitation);
        let (asking, questions) = ask::way(kinds, plugin(target.tool()));
        let asking = Arc::new(asking);
        let party = Party::default().with_client(asking.clone());
        let party = if can_confirm { party.with_asker(asking) } else { party };
        self.run(target, input, party, Some(questions)).await
    }

    /// With questions that end the call, and answers that come with the next.
    async fn in_rounds(
        &self,
        target: &Target,
        input: Value,
        brought: (Option<&str>, InputResponses),
    ) -> Result<Settled, ErrorData> {
        let tool = target.tool();
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
        let result = self.run(target, input, party, None).await;
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
        target: &Target,
        input: Value,
        party: Party,
        questions: Option<mpsc::Receiver<Question>>,
    ) -> ToolResult {
        let (host, peer, tool) = (&self.server.host, &self.context.peer, target.tool());
        let call = self.prepared(tool, input);
        let mut voice = Voice::of(host.hub(), call.id(), self.wanted(), plugin(tool));
        let (mut asked, mut all_asked) = (pin!(put_all(peer, questions)), false);
        let result = {
            let mut running = pin!(self.running(target, call, party));
            loop {
                tokio::select! {
                    biased;
                    said = voice.next(), if !self.context.ct.is_cancelled() => voice.tell(peer, said).await,
                    () = &mut asked, if !all_asked => all_asked = true,
                    result = &mut running => break result,
                }
            }
        };
        // With nobody left who asks, what was asked is withdrawn.
        if !all_asked {
            let _ = tokio::time::timeout(WITHDRAWAL, asked).await;
        }
        if !self.context.ct.is_cancelled() {
            voice.finish(peer).await;
        }
        result
    }

    /// On the one road of the dispatcher. In a box: whatever this is part of is moved about.
    fn running(&self, target: &Target, call: Call, party: Party) -> impl Future<Output = ToolResult> {
        let (server, client, target) = (self.server.clone(), self.client.clone(), target.clone());
        let pace = target.tool().pace().clone();
        let work = Box::pin(async move {
            let _underway = server.begin();
            let (host, session) = (&server.host, client.session());
            match target {
                Target::Named(_) => host.dispatch_as(session, call, &party).await,
                Target::Apart(tool) => host.dispatch_to(session, (call, tool), &party).await,
            }
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
    Some(json!({"name": text("name")?, "version": text("version")?}))
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
