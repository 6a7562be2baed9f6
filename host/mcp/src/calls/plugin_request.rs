//! A request that runs a plugin: dispatches its call, and forwards the notifications and questions
//! of the call to the client.

use super::notifier::{Notifier, RequestedNotifications};
use crate::clients::client::Client;
use crate::messages::extensions;
use crate::messages::offload;
use crate::messages::response_resources::set_plugin_turns;
use crate::messages::serialize::CANNOT_ANSWER;
use crate::protocol::client_info::name_and_version;
use crate::protocol::lifecycle::{CLIENT_INFO_KEY, Dialect, Lifecycle};
use crate::protocol::tool_result::exhausted_error;
use crate::questions::input_required::{Purpose, Round, RoundError, RoundInput, Subject};
use crate::questions::plugin_question::{required_capabilities, supported_kinds};
use crate::questions::programs::ProgramPlaces;
use crate::questions::server_request::{self, AskingRequester, Question};
use crate::settings::ConfirmedBy;
use crate::state::ServerState;
use palisade::Requester;
use palisade::internal::{Account, IN_PLACE, Share, input_turns_within, offload};
use palisade::registry::Registered;
use palisade::{Call, CallId, ErrorKind, ToolError, ToolResult, tool::CallInput};
use rmcp::RoleServer;
use rmcp::model::{ErrorData, InputRequiredResult};
use rmcp::service::{Peer, RequestContext};
use serde_json::{Map, Value, json};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

/// The timeout of the withdrawal of a question, which delays the response if the client does not
/// read.
const WITHDRAWAL_TIMEOUT: Duration = Duration::from_secs(1);

/// A request that runs a plugin.
pub(crate) struct PluginRequest {
    /// The server.
    pub(crate) server: Arc<ServerState>,
    /// The client that sent the request.
    pub(crate) client: Arc<Client>,
    /// The lifecycle that the request follows.
    pub(crate) lifecycle: Lifecycle,
    /// The request as `rmcp` delivers it.
    pub(crate) context: RequestContext<RoleServer>,
    /// The turns of the plugin, once it is known.
    pub(super) turns: OnceLock<Arc<Share>>,
}

/// The outcome of a call.
pub(super) enum Outcome {
    /// The call has ended.
    Complete(Box<ToolResult>),
    /// The call ended with questions. The client repeats it with the answers.
    InputRequired(InputRequiredResult),
}

impl PluginRequest {
    /// Creates a request of this client.
    pub(crate) fn new(
        server: Arc<ServerState>,
        client: Arc<Client>,
        context: RequestContext<RoleServer>,
    ) -> Self {
        let lifecycle = Lifecycle::of_request(&context);
        Self { server, client, lifecycle, context, turns: OnceLock::new() }
    }

    /// Returns the memory account of this request.
    pub(super) fn account(&self) -> Account {
        extensions::account(&self.context.extensions)
            .unwrap_or_else(|| self.server.host.limits().account())
    }

    /// Runs a call, asking questions as the request's lifecycle does.
    pub(super) async fn run(
        &self,
        tool: &Arc<Registered>,
        input: Value,
        round: RoundInput,
    ) -> Result<Outcome, ErrorData> {
        let turns = self.turns.get_or_init(|| self.client.session().turns(tool));
        set_plugin_turns(&self.context.extensions, turns);
        match self.lifecycle {
            Lifecycle::Stateful => {
                let result = self.run_with_server_requests(tool, input).await;
                Ok(Outcome::Complete(Box::new(result)))
            }
            Lifecycle::Stateless => self.run_round(tool, input, round).await,
        }
    }

    /// Runs a call that puts its questions to the client while it waits.
    async fn run_with_server_requests(&self, tool: &Arc<Registered>, input: Value) -> ToolResult {
        let kinds = supported_kinds(&self.context);
        let dialect = Dialect::of_request(&self.context);
        let AskingRequester { requester, questions } =
            AskingRequester::new(kinds, plugin_name(tool), dialect, self.confirmed_by());
        self.run_forwarding(tool, input, requester, questions).await
    }

    /// Runs a call that ends with its questions, and is repeated with the answers.
    async fn run_round(
        &self,
        tool: &Arc<Registered>,
        input: Value,
        round: RoundInput,
    ) -> Result<Outcome, ErrorData> {
        let plugin = plugin_name(tool).to_owned();
        let code = tool.origin().digest();
        let kinds = supported_kinds(&self.context);
        // Without questions now or earlier, no program is run again, so that no result is kept.
        let may_wait = !kinds.is_empty() || round.state.is_some();
        let programs = Some(tool).filter(|tool| may_wait && tool.definition().calls_tools());
        let programs = programs.map(|_| ProgramPlaces {
            store: self.server.programs.clone(),
            caller: self.client.caller(),
        });
        let subject = Subject { code, plugin, confirmed_by: self.confirmed_by(), programs };
        // Without questions now or earlier, no state is signed or verified, so that hashing the
        // input is wasted.
        let (purpose, input) = match kinds.is_empty() && round.state.is_none() {
            true => (None, input),
            false => {
                let (purpose, input) = self.purpose(tool, input).await?;
                (Some(purpose), input)
            }
        };
        let signer = &self.server.signer;
        let round = Round::begin(signer, purpose.as_ref(), kinds, subject, round)
            .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        let round = Arc::new(round);
        let requester = Requester::default()
            .with_call_confirmer(round.clone())
            .with_client(round.clone())
            .with_record(round.record())
            .without_memory();
        let result = self.run_forwarding(tool, input, requester, None).await;
        match result.error().map(ToolError::kind) {
            Some(ErrorKind::AwaitsClient) => {
                let lifetime = self.server.host.confirmation_timeout();
                purpose
                    .ok_or(RoundError::Unasked)
                    .and_then(|purpose| round.input_required(signer, purpose, lifetime))
                    .map(Outcome::InputRequired)
                    .map_err(|error| ErrorData::internal_error(error.to_string(), None))
            }
            Some(ErrorKind::ClientLacks { kinds }) => {
                Err(ErrorData::missing_required_client_capability(required_capabilities(kinds)))
            }
            _ => Ok(Outcome::Complete(Box::new(result))),
        }
    }

    fn confirmed_by(&self) -> ConfirmedBy {
        self.server.settings.confirmed_by
    }

    /// Identifies a call by its input, which is returned. A long input is hashed on another thread.
    async fn purpose(
        &self,
        tool: &Registered,
        input: Value,
    ) -> Result<(Purpose, Value), ErrorData> {
        let client = self.client.name().to_owned();
        let name = tool.definition().name().as_str().to_owned();
        let identify = move || (Purpose::new(&client, &name, &input), input);
        // The account of the request has the memory of its parsed form.
        if self.account().held() <= IN_PLACE as u64 {
            return Ok(identify());
        }
        let budget = offload::budget(self.account());
        let hashed = offload(&budget, input_turns_within(&budget), move |_| Ok(identify())).await;
        hashed.map_err(|why| exhausted_error(CANNOT_ANSWER, why))
    }

    /// Runs the call while forwarding its notifications and questions.
    async fn run_forwarding(
        &self,
        tool: &Arc<Registered>,
        input: Value,
        requester: Requester,
        questions: Option<mpsc::Receiver<Question>>,
    ) -> ToolResult {
        let peer = &self.context.peer;
        let call = self.build_call(tool, input);
        let events = self.server.host.event_bus();
        let requested = self.requested_notifications();
        let notifier = Notifier::new(events, call.id(), requested, plugin_name(tool));
        let over = Notify::new();
        // Concurrently, so that the call runs on and keeps its deadline while the client does not
        // read.
        let mut asking = pin!(send_questions(peer, questions));
        let mut all_asked = false;
        let mut notifying = pin!(notifier.run(peer, &self.context.ct, &over));
        let mut all_notified = false;
        let result = {
            let mut running = pin!(self.dispatch(tool, call, requester));
            loop {
                tokio::select! {
                    biased;
                    () = &mut notifying, if !all_notified => all_notified = true,
                    () = &mut asking, if !all_asked => all_asked = true,
                    result = &mut running => break result,
                }
            }
        };
        over.notify_one();
        // The call is over and its sender dropped: withdraw the questions without an answer.
        if !all_asked {
            let _ = tokio::time::timeout(WITHDRAWAL_TIMEOUT, asking).await;
        }
        if !all_notified {
            notifying.await;
        }
        result
    }

    /// Dispatches the call with the tool that was looked up. A second lookup could find other code
    /// under the name, for which the client's answers do not count. The future is boxed, since its
    /// callers are moved around.
    fn dispatch(
        &self,
        tool: &Arc<Registered>,
        call: Call,
        requester: Requester,
    ) -> impl Future<Output = ToolResult> {
        let server = self.server.clone();
        let client = self.client.clone();
        let tool = tool.clone();
        let requester = requester.with_account(extensions::account(&self.context.extensions));
        Box::pin(async move {
            if server.draining.is_cancelled() {
                return ToolResult::failure(call.id().clone(), call.tool(), ErrorKind::Cancelled);
            }
            let _in_flight = server.begin_call();
            server.host.dispatch_to(client.session(), call, tool, &requester).await
        })
    }

    fn build_call(&self, tool: &Registered, input: Value) -> Call {
        let id = CallId::new(&self.client.next_call_id());
        let name = tool.definition().name().as_str();
        let call = Call::known_as(id, name, CallInput::Value(input), self.context.ct.clone());
        let call = call.with_metadata(self.metadata());
        match self.server.settings.timeout {
            Some(timeout) => call.with_timeout(timeout),
            None => call,
        }
    }

    /// Returns the name and version that a client claims, as metadata for the tool. Unverified: no
    /// decision may depend on it.
    fn metadata(&self) -> Map<String, Value> {
        let client = match self.lifecycle {
            Lifecycle::Stateful => self
                .context
                .client_info()
                .map(|info| json!({"name": info.name, "version": info.version})),
            // `rmcp` would substitute its own name if a stateless request has none.
            Lifecycle::Stateless => {
                self.context.meta.get(CLIENT_INFO_KEY).and_then(name_and_version)
            }
        };
        client.map(|client| Map::from_iter([("mcp_client".to_owned(), client)])).unwrap_or_default()
    }

    fn requested_notifications(&self) -> RequestedNotifications {
        let log = match self.lifecycle {
            Lifecycle::Stateful => Some(self.client.log_level()),
            Lifecycle::Stateless => self.context.meta.log_level(),
        };
        RequestedNotifications { progress: self.context.meta.get_progress_token(), log }
    }
}

/// Returns the name of the plugin that a tool belongs to.
fn plugin_name(tool: &Registered) -> &str {
    tool.origin().plugin().unwrap_or("palisade")
}

/// Sends questions until all senders are dropped.
async fn send_questions(peer: &Peer<RoleServer>, questions: Option<mpsc::Receiver<Question>>) {
    if let Some(mut questions) = questions {
        while let Some(question) = questions.recv().await {
            server_request::send(peer, question).await;
        }
    }
}
