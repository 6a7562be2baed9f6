//! The endpoint of the protocol over HTTP: parses admitted requests, passes them to `rmcp` or to
//! the fast path, and accounts for the memory of the responses.

mod body;
mod headers;
mod long_frames;
mod responses;
#[cfg(test)]
mod tests;

use super::fast_path::SimpleCall;
use crate::handler::prepare::Prepare;
use crate::http::{Admitted, Body, Caller, RequestHead, Service, SharedBody};
use crate::messages::offload::{self, FirstPoll, MessageSize};
use crate::messages::parse::{self, RejectedMessage};
use crate::messages::response_resources::ResponseResources;
use crate::sessions::{CallerSessions, SessionRejection, Sessions};
use body::RequestBody;
use http_body_util::Full;
use hyper::header::HeaderMap;
use hyper::{Method, Response, StatusCode};
use palisade::BoxFuture;
use palisade::internal::{Account, Charge};
use rmcp::ServerHandler;
use rmcp::model::{ErrorCode, ErrorData, Extensions, JsonRpcMessage};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use std::io;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The path of the endpoint.
pub(crate) const PATH: &str = "/mcp";

/// The most memory that the parsed request which begins a session may take, in bytes. The protocol
/// library keeps it as long as the session, and no account counts it.
const MAX_INITIALIZE: u64 = 256 << 10;

/// Creates a handler: one per stateful session, one per stateless request, and one for each check
/// of parameter headers.
type Factory<S> = Arc<dyn Fn() -> io::Result<S> + Send + Sync>;

/// The endpoint of the protocol over HTTP, for both lifecycles.
pub(crate) struct McpEndpoint<S> {
    factory: Factory<S>,
    sessions: Sessions,
    config: StreamableHttpServerConfig,
}

impl<S: ServerHandler + Prepare> McpEndpoint<S> {
    /// Creates an endpoint with these host names. When `stop` is cancelled, all sessions and
    /// streams end.
    pub(crate) fn new(
        factory: impl Fn() -> io::Result<S> + Send + Sync + 'static,
        hosts: Vec<String>,
        stop: CancellationToken,
    ) -> Self {
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(hosts)
            .with_cancellation_token(stop)
            .with_json_response(true);
        Self { factory: Arc::new(factory), sessions: Sessions::default(), config }
    }

    async fn handle(&self, request: Admitted) -> Response<SharedBody> {
        let response = self.respond(request).await;
        response
            .unwrap_or_else(|rejected| responses::error(responses::status_of(&rejected), rejected))
    }

    async fn respond(&self, request: Admitted) -> Result<Response<SharedBody>, RejectedMessage> {
        // Holds the memory of the request until it is answered.
        let account = request.account().clone();
        let sessions = CallerSessions::new(&self.sessions, request.caller(), account.clone())
            .at(request.address());
        let mut request = request.into_request();
        let mut body = RequestBody::parse(&request, &account).await?;
        if let Some(changed) = body.prepare(|| (self.factory)(), &account).await? {
            *request.body_mut() = changed;
        }
        if let Some((call, handler)) = self.simple_call(&mut body, request.headers()) {
            let (head, _) = request.into_parts();
            return Ok(run_simple_call(call, handler, head, account).await);
        }
        let session = headers::session(request.headers());
        let sessions = sessions.in_dialect(body.handshake_dialect(), session);
        let is_delete = request.method() == Method::DELETE;
        if is_delete && session.is_some_and(|id| !sessions.has(id)) {
            return Ok(responses::session_rejection(SessionRejection::Gone, None));
        }
        let length = request.body().len();
        let parsed = account.held().saturating_sub(length as u64);
        let parse_memory = reserve_second_parse(&body, parsed, &account)?;
        // The first parsed form makes room for the second one.
        let id = body.id();
        let first = FirstPoll { parse_memory, body: request.body().clone() };
        drop(body);
        let size = MessageSize { text: length, memory: parsed };
        let is_json = headers::is_json(request.headers());
        let factory = self.factory.clone();
        let sessions = Arc::new(sessions);
        let config = self.config.clone().with_sse_retry(sessions.retry_delay());
        let service = StreamableHttpService::new(move || factory(), sessions.clone(), config);
        let answer = async move { service.handle(request.map(Full::new)).await };
        let response = offload::poll_first(answer, size, first)
            .await
            .map_err(|error| RejectedMessage { id: id.clone(), error })?;
        Ok(match sessions.rejection() {
            Some(rejection) if !response.status().is_success() => {
                responses::session_rejection(rejection, id)
            }
            _ if is_delete && response.status().is_success() => responses::session_ended(),
            // `rmcp` also uses this status for a body that it cannot parse.
            _ if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && is_json => {
                responses::error(StatusCode::BAD_REQUEST, parse::not_a_message(id))
            }
            _ if responses::is_plain_text_error(&response) => {
                responses::to_error(response, id).await
            }
            _ => responses::with_account(response, account, sessions.resumed()),
        })
    }

    /// Takes the call out of a body that may take the fast path, and creates its handler.
    fn simple_call(&self, body: &mut RequestBody, headers: &HeaderMap) -> Option<(SimpleCall, S)> {
        let tool = body.tool().filter(|tool| headers::are_of_simple_call(headers, tool))?;
        // A tool with a schema here repeats parameters in headers, which `rmcp` must compare.
        let handler = (self.factory)().ok().filter(|handler| handler.get_tool(tool).is_none())?;
        body.take_simple_call().map(|call| (call, handler))
    }
}

impl<S: ServerHandler + Prepare> Service for McpEndpoint<S> {
    fn answer(&self, request: Admitted) -> BoxFuture<'_, Response<Body>> {
        Box::pin(async move { self.handle(request).await.map(Body::from) })
    }

    fn session_of(&self, head: &RequestHead, caller: Caller) -> Option<String> {
        let id = headers::session(&head.headers)?;
        self.sessions.has(id, caller).then(|| id.to_owned())
    }
}

/// Reserves the memory of the second parse, which `rmcp` does, of a body whose first parsed form
/// takes this many bytes.
fn reserve_second_parse(
    body: &RequestBody,
    parsed: u64,
    account: &Account,
) -> Result<Charge, RejectedMessage> {
    let reserved = match body.is_initialize() && parsed > MAX_INITIALIZE {
        true => Err(too_large_initialize(parsed)),
        false => offload::reserve(account, parsed.saturating_mul(offload::SECOND_PARSE)),
    };
    reserved.map_err(|error| RejectedMessage { id: body.id(), error })
}

fn too_large_initialize(bytes: u64) -> ErrorData {
    let text = format!(
        "`initialize` takes {bytes} bytes of memory; a session keeps it, so that at most \
         {MAX_INITIALIZE} are accepted"
    );
    ErrorData::invalid_request(text, None)
}

/// Answers a call on the fast path. If the client disconnects, the call is cancelled, and its task
/// ends on its own.
async fn run_simple_call<S: ServerHandler>(
    call: SimpleCall,
    handler: S,
    head: RequestHead,
    account: Account,
) -> Response<SharedBody> {
    let id = call.id().clone();
    let cancelled = CancellationToken::new();
    let mut extensions = Extensions::new();
    let resources = ResponseResources::new(account);
    resources.attach(&mut extensions);
    extensions.insert(head);
    let _cancels = cancelled.clone().drop_guard();
    let running = tokio::spawn(async move { call.run(&handler, cancelled, extensions).await });
    let response = running.await.unwrap_or_else(|_| {
        let error = ErrorData::internal_error("the server ended before the call did", None);
        RejectedMessage { id: Some(id), error }.into_response()
    });
    let status = match &response {
        JsonRpcMessage::Error(failed)
            if failed.error.code == ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY =>
        {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    };
    responses::json(status, offload::serialize(response, resources).await)
}
