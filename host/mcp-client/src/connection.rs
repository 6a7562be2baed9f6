//! A connection to a server: its start, its list of tools, and calls.

use crate::connect_error::{ConnectError, START_TIME};
use crate::handler::Handler;
use crate::inbox::{Fault, Inbox};
use crate::lines::Lines;
use crate::offer::{MAX_TOOLS, MAX_WORDS, Offer, OfferedTool};
use crate::output::Form;
use crate::process::Watched;
use crate::reach::{Reach, ServerCommand, ServerUrl};
use crate::remote::Remote;
use crate::runtime::END_TIME;
use crate::{output, runtime};
use palisade::execution::Sink;
use palisade::internal::Grant;
use palisade::tool::text::{cut, visible};
use palisade::workspace::Workspace;
use palisade::{ErrorKind, ExecutionKind, ToolOutput};
use palisade_shell::Service;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ListToolsRequest, ListToolsResult,
    PaginatedRequestParams, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, Peer, PeerRequestOptions, RequestHandle, RunningService, ServiceError,
};
use rmcp::transport::Transport;
use rmcp::{RoleClient, serve_client};
use serde_json::{Map, Value};
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::BufReader;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// The most pages of a list of tools.
const MAX_PAGES: usize = 64;
/// The longest message of a server in an error, in bytes.
const MAX_MESSAGE: usize = 4 << 10;

/// Starts a server and returns what it offers. The server is stopped again.
///
/// # Errors
///
/// [`ConnectError`] if it cannot be reached, or offers more than is accepted.
pub async fn look(reach: &Reach, workspace: Arc<Workspace>) -> Result<Offer, ConnectError> {
    let connection = opened(Connection::open(reach.clone(), workspace)).await?;
    Ok(connection.offer().as_ref().clone())
}

/// Waits for a connection that is opened on the thread of the connections, and goes on being opened
/// if this is dropped.
pub(crate) async fn opened<T: Send + 'static>(
    opening: impl Future<Output = Result<T, ConnectError>> + Send + 'static,
) -> Result<T, ConnectError> {
    let opening = runtime::spawn(opening);
    let opening = opening.map_err(|error| ConnectError::NotStarted(error.into()))?;
    opening.await.map_err(|_| ConnectError::Ended("its task was lost".to_owned()))?
}

/// A call of a server's tool.
#[derive(Debug)]
pub(crate) struct ServerCall {
    /// The name that the server gives the tool.
    pub(crate) tool: String,
    /// The input.
    pub(crate) input: Map<String, Value>,
    /// The form of its output.
    pub(crate) form: Form,
}

/// A connection, which is closed on drop.
pub(crate) struct Connection {
    service: RunningService<RoleClient, Handler>,
    process: Option<Watched>,
    fault: Fault,
    offer: Mutex<Arc<Offer>>,
    /// Held while the server is asked for its tools again.
    listing: Arc<tokio::sync::Mutex<()>>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("process", &self.process).finish_non_exhaustive()
    }
}

impl Connection {
    /// Starts a server for calls in a workspace, and asks it for its tools. Must run on the thread
    /// of the connections.
    pub(crate) async fn open(
        reach: Reach,
        workspace: Arc<Workspace>,
    ) -> Result<Self, ConnectError> {
        let open = async move {
            match reach {
                Reach::Command(command) => Self::start(&command, &workspace).await,
                Reach::Url(server) => Self::reach(server).await,
            }
        };
        tokio::time::timeout(START_TIME, open).await.unwrap_or(Err(ConnectError::TimedOut))
    }

    async fn start(
        command: &ServerCommand,
        workspace: &Arc<Workspace>,
    ) -> Result<Self, ConnectError> {
        let program = command.within(workspace.root());
        let started = Service::start(&program, &command.options, workspace).await;
        let Service { input, output, errors, process } =
            started.map_err(ConnectError::NotStarted)?;
        let handler = Handler::new(Some(workspace.root()));
        let inbox = Inbox::new(handler.clone(), Fault::default());
        let fault = inbox.fault().clone();
        let process = Watched::new(process, errors, inbox.clone());
        let lines = Lines::new(BufReader::new(output), input, inbox);
        Self::shake_hands(handler, lines, Some(process), fault).await
    }

    async fn reach(server: ServerUrl) -> Result<Self, ConnectError> {
        // A server elsewhere learns nothing of the paths of this machine.
        let handler = Handler::new(None);
        let inbox = Inbox::new(handler.clone(), Fault::default());
        let fault = inbox.fault().clone();
        Self::shake_hands(handler, Remote::new(server, inbox), None, fault).await
    }

    async fn shake_hands<T: Transport<RoleClient> + 'static>(
        handler: Handler,
        transport: T,
        process: Option<Watched>,
        fault: Fault,
    ) -> Result<Self, ConnectError> {
        let service = match serve_client(handler, transport).await {
            Ok(service) => service,
            Err(error) => return Err(why(process.as_ref(), &fault, &said(&error)).await),
        };
        let offer = match list(service.peer()).await {
            Ok(offer) => offer,
            Err(error) => return Err(error.explained(process.as_ref(), &fault).await),
        };
        let offer = Mutex::new(offer.into());
        Ok(Self { service, process, fault, offer, listing: Arc::default() })
    }

    /// Returns what the server offered when it was asked last.
    pub(crate) fn offer(&self) -> Arc<Offer> {
        self.offer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the server for its tools again if it has said that they are others. A call that does
    /// not wait for the answer leaves it to the next one.
    pub(crate) async fn refresh(self: Arc<Self>) -> Result<(), ConnectError> {
        // Awaited here, so that a call that is gone asks nothing.
        let turn = self.listing.clone().lock_owned().await;
        if !self.service.service().has_new_list() {
            return Ok(());
        }
        opened(async move {
            let _turn = turn;
            let handler = self.service.service();
            // Before the question: the list may change again while it is answered.
            handler.set_new_list(false);
            let listed = tokio::time::timeout(START_TIME, list(self.service.peer())).await;
            let error = match listed {
                Ok(Ok(offer)) => {
                    *self.offer.lock().unwrap_or_else(PoisonError::into_inner) = offer.into();
                    return Ok(());
                }
                Ok(Err(error)) => error.explained(self.process.as_ref(), &self.fault).await,
                Err(_) => ConnectError::TimedOut,
            };
            // The former list holds no longer.
            handler.set_new_list(true);
            Err(error)
        })
        .await
    }

    /// Returns true if the connection has ended, so that it serves no more calls.
    pub(crate) fn is_over(&self) -> bool {
        self.fault.get().is_some()
            || self.service.is_closed()
            || self.service.peer().is_transport_closed()
    }

    /// Ends the connection, and waits for the end of its program: two of them could want the same
    /// file, or port.
    pub(crate) async fn close(self: Arc<Self>) {
        self.fault.end();
        let Some(end) = self.process.as_ref().map(Watched::end) else { return };
        drop(self);
        let _ = tokio::time::timeout(END_TIME, end.cancelled()).await;
    }

    /// Calls a tool. Dropping the future or cancelling the token cancels the call at the server.
    /// `place` is that of the call.
    pub(crate) async fn call(
        self: Arc<Self>,
        call: ServerCall,
        sink: Arc<dyn Sink>,
        cancel: &CancellationToken,
        place: Grant,
    ) -> Result<ToolOutput, ErrorKind> {
        let stop = cancel.child_token();
        let _stop_on_drop = stop.clone().drop_guard();
        let call = async move {
            let ended = self.run(call, sink, stop).await;
            // A cancelled call counts until its server has been told.
            drop(place);
            ended
        };
        // The log of an ended server names the call, and so the server.
        runtime::spawn(call.in_current_span())?
            .await
            .map_err(|_| ErrorKind::internal("the call's task was lost"))?
    }

    async fn run(
        &self,
        call: ServerCall,
        sink: Arc<dyn Sink>,
        stop: CancellationToken,
    ) -> Result<ToolOutput, ErrorKind> {
        let params = CallToolRequestParams::new(call.tool).with_arguments(call.input);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let send =
            self.service.peer().send_cancellable_request(request, PeerRequestOptions::no_options());
        let sent = tokio::select! {
            biased;
            () = stop.cancelled() => return Err(ErrorKind::Cancelled),
            sent = send => sent,
        };
        let mut handle: RequestHandle<RoleClient> = match sent {
            Ok(handle) => handle,
            Err(error) => return Err(self.failure(error).await),
        };
        let _followed = self.service.service().follow(handle.progress_token.clone(), sink);
        let answered = tokio::select! {
            biased;
            () = stop.cancelled() => {
                let _ = handle.cancel(Some("the caller stopped the call".to_owned())).await;
                return Err(ErrorKind::Cancelled);
            }
            answered = &mut handle.rx => answered.unwrap_or(Err(ServiceError::TransportClosed)),
        };
        match answered {
            Ok(ServerResult::CallToolResult(result)) => output::to_output(result, call.form)
                .map_err(|reason| ErrorKind::execution(ExecutionKind::Contract, reason)),
            Ok(_) => Err(ErrorKind::execution(
                ExecutionKind::Contract,
                "it answered with something else than the result of a tool",
            )),
            Err(error) => Err(self.failure(error).await),
        }
    }

    /// Returns the error of a call that has no result.
    async fn failure(&self, error: ServiceError) -> ErrorKind {
        match error {
            ServiceError::McpError(error) => {
                let message = visible(cut(&error.message, MAX_MESSAGE));
                ErrorKind::execution(ExecutionKind::Failed, message)
            }
            other => {
                let ended = why(self.process.as_ref(), &self.fault, &other.to_string()).await;
                ErrorKind::execution(ExecutionKind::Failed, ended.for_caller())
            }
        }
    }
}

/// Says why a connection has ended: the exceeded bound, the end of the process, or what the
/// protocol says.
async fn why(process: Option<&Watched>, fault: &Fault, otherwise: &str) -> ConnectError {
    if let Some(fault) = fault.get() {
        return ConnectError::Ended(format!("{fault}, and was stopped"));
    }
    let mut ended = None;
    if let Some(process) = process {
        // A program that has closed its output usually ends.
        let _ = tokio::time::timeout(Duration::from_secs(1), process.ended()).await;
        ended = process.report();
    }
    let otherwise = || format!("the connection failed: {}", visible(cut(otherwise, MAX_MESSAGE)));
    ended.unwrap_or_else(|| ConnectError::Ended(otherwise()))
}

/// Returns the message of a server that refuses the handshake, or what else is known.
fn said(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::JsonRpcError(error) => error.message.to_string(),
        other => other.to_string(),
    }
}

enum ListError {
    Failed(ServiceError),
    TooMuch(&'static str),
}

impl ListError {
    /// Returns the error of the connection.
    async fn explained(self, process: Option<&Watched>, fault: &Fault) -> ConnectError {
        match self {
            Self::TooMuch(reason) => ConnectError::TooMuch(reason),
            Self::Failed(ServiceError::McpError(error)) => {
                let message = visible(cut(&error.message, MAX_MESSAGE));
                ConnectError::Ended(format!("it lists no tools: {message}"))
            }
            Self::Failed(error) => why(process, fault, &error.to_string()).await,
        }
    }
}

/// Asks a server for a page of its tools. The method of the protocol library for it may answer with
/// a former page, for as long as the server wishes; approved words are compared with those of now.
async fn list_page(
    peer: &Peer<RoleClient>,
    page: Option<PaginatedRequestParams>,
) -> Result<ListToolsResult, ServiceError> {
    let request = ListToolsRequest {
        method: Default::default(),
        params: page,
        extensions: Default::default(),
    };
    match peer.send_request(ClientRequest::ListToolsRequest(request)).await? {
        ServerResult::ListToolsResult(page) => Ok(page),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

/// Asks a server for its tools, page by page.
async fn list(peer: &Peer<RoleClient>) -> Result<Offer, ListError> {
    let mut tools: Vec<OfferedTool> = Vec::new();
    let mut words = 0;
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let page = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let page = list_page(peer, page).await.map_err(ListError::Failed)?;
        for tool in page.tools.into_iter().map(OfferedTool::from) {
            words += tool.length();
            if tools.len() == MAX_TOOLS {
                return Err(ListError::TooMuch("it offers more than 256 tools"));
            }
            if words > MAX_WORDS {
                return Err(ListError::TooMuch("the words of its tools have more than 2 MiB"));
            }
            tools.push(tool);
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            tools.sort_by(|one, other| one.name.cmp(&other.name));
            let own = peer.peer_info();
            let own = own.as_ref().and_then(|info| info.server_info.as_ref());
            let shown = |text: &String| visible(cut(text, 128));
            return Ok(Offer {
                server: own.map(|own| shown(&own.name)),
                version: own.map(|own| shown(&own.version)),
                tools,
            });
        }
    }
    Err(ListError::TooMuch("its list of tools has more than 64 pages"))
}
