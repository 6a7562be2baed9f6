//! `tools/call`: a request made into a call, run on the one road of the dispatcher, and answered.

#![expect(deprecated, reason = "what the next revision will not have, the clients of the older ones still expect")]

use super::ask::{self, Question};
use super::client::Client;
use super::era::{Era, can_show_forms};
use super::outcome::answer;
use super::rounds::{Forms, Purpose, Rounds};
use super::voice::{Voice, Wanted};
use super::{Shared, listing, trace};
use crate::dispatch::Party;
use crate::execution::BoxFuture;
use crate::registry::Registered;
use crate::tool::nearest_names;
use crate::tool::text::elided;
use crate::tool::{Call, CallInput, ErrorKind, ToolResult};
use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, CallToolResponse, ErrorData, LoggingLevel};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tracing::Instrument as _;

/// How long a call waits for a tool whose plugin may still be loaded.
const LOADING: Duration = Duration::from_secs(30);
/// How long a call that has ended waits until its question is withdrawn.
const WITHDRAWAL: Duration = Duration::from_secs(1);

/// A request on its way.
pub(super) struct Request {
    pub(super) server: Arc<Shared>,
    pub(super) client: Arc<Client>,
    pub(super) context: RequestContext<RoleServer>,
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
        match Era::of(&self.context) {
            Era::Legacy => Ok(answer(&self.asking(&tool, input).await, Era::Legacy).into()),
            Era::Modern => {
                let brought = (request_state.as_deref(), input_responses.unwrap_or_default());
                self.in_rounds(&tool, input, brought).await
            }
        }
    }

    /// The tool of this name, as far as this client is shown it.
    async fn tool(&self, name: &str) -> Result<Arc<Registered>, ErrorData> {
        let host = &self.server.host;
        let _ = tokio::time::timeout(LOADING, host.available(name)).await;
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
    async fn asking(&self, tool: &Registered, input: Value) -> ToolResult {
        if !can_show_forms(&self.context) {
            return self.run(tool, input, &Party::default(), None).await;
        }
        let (asking, questions) = ask::way();
        let party = Party { asker: Some(Arc::new(asking)) };
        self.run(tool, input, &party, Some(questions)).await
    }

    /// With questions that end the call, and answers that come with the next.
    async fn in_rounds(
        &self,
        tool: &Registered,
        input: Value,
        brought: (Option<&str>, rmcp::model::InputResponses),
    ) -> Result<CallToolResponse, ErrorData> {
        let forms = if can_show_forms(&self.context) { Forms::Shown } else { Forms::Unknown };
        let purpose = Purpose::of(self.client.name(), tool.definition().name().as_str(), &input);
        let sealer = &self.server.sealer;
        let rounds = Rounds::begin(sealer, &purpose, forms, brought)
            .map_err(|refused| ErrorData::invalid_params(refused.to_string(), None))?;
        let rounds = Arc::new(rounds);
        let result = self.run(tool, input, &Party { asker: Some(rounds.clone()) }, None).await;
        if matches!(result.error().map(crate::tool::ToolError::kind), Some(ErrorKind::AwaitsClient)) {
            let no_state = || ErrorData::internal_error("the question cannot be put", None);
            return rounds.required(sealer, purpose).map(CallToolResponse::InputRequired).ok_or_else(no_state);
        }
        Ok(answer(&result, Era::Modern).into())
    }

    /// Runs the call, while what it says and asks is passed on.
    async fn run(
        &self,
        tool: &Registered,
        input: Value,
        party: &Party,
        mut questions: Option<mpsc::Receiver<Question>>,
    ) -> ToolResult {
        let (host, peer) = (&self.server.host, &self.context.peer);
        let call = self.prepared(tool, input);
        let logger = tool.origin().plugin().unwrap_or(env!("CARGO_PKG_NAME"));
        let mut voice = Voice::of(host.hub(), call.id(), self.wanted(), logger);
        let mut running = pin!(host.dispatch_as(self.client.session(), call, party));
        let mut putting: Option<BoxFuture<'_, ()>> = None;
        let result = loop {
            tokio::select! {
                biased;
                said = voice.next(), if !self.context.ct.is_cancelled() => voice.tell(peer, said).await,
                question = next(&mut questions), if putting.is_none() => putting = Some(Box::pin(ask::put(peer, question))),
                () = end_of(&mut putting) => putting = None,
                result = &mut running => break result,
            }
        };
        // A question that no longer stands is withdrawn.
        if putting.is_some() {
            let _ = tokio::time::timeout(WITHDRAWAL, end_of(&mut putting)).await;
        }
        if !self.context.ct.is_cancelled() {
            voice.finish(peer).await;
        }
        result
    }

    fn prepared(&self, tool: &Registered, input: Value) -> Call {
        let call = Call::new(tool.definition().name().as_str(), CallInput::Value(input))
            .with_id(&self.client.next_call())
            .with_metadata(self.metadata())
            .with_cancellation(self.context.ct.clone());
        match self.server.settings.timeout {
            Some(timeout) => call.with_timeout(timeout),
            None => call,
        }
    }

    /// What a client says of itself, for whoever reads the tool's metadata; nothing is decided by it.
    fn metadata(&self) -> Map<String, Value> {
        // Of a modern request without it, the library would give its own name.
        let info = match Era::of(&self.context) {
            Era::Legacy => self.context.client_info(),
            Era::Modern => self.context.meta.client_info(),
        };
        let client = info.map(|info| json!({"name": info.name, "version": info.version}));
        client.map(|client| Map::from_iter([("mcp_client".to_owned(), client)])).unwrap_or_default()
    }

    fn wanted(&self) -> Wanted {
        let log: Option<LoggingLevel> = match Era::of(&self.context) {
            Era::Legacy => Some(self.client.level()),
            Era::Modern => self.context.meta.log_level(),
        };
        Wanted { progress: self.context.meta.get_progress_token(), log }
    }
}

/// The next question; never comes back where none is asked.
async fn next(questions: &mut Option<mpsc::Receiver<Question>>) -> Question {
    match questions {
        Some(questions) => match questions.recv().await {
            Some(question) => question,
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

/// The end of what is under way, where something is.
async fn end_of(putting: &mut Option<BoxFuture<'_, ()>>) {
    match putting {
        Some(putting) => putting.await,
        None => std::future::pending().await,
    }
}

/// The tools that a client is shown.
pub(super) async fn list(server: &Shared, client: &Client, era: Era) -> Vec<rmcp::model::Tool> {
    /// Clients give a server some ten seconds to start.
    const PATIENCE: Duration = Duration::from_secs(8);
    let _ = tokio::time::timeout(PATIENCE, server.host.loaded()).await;
    listing::tools(&server.host, client.session(), era)
}
