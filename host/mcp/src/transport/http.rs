//! The HTTP endpoint: parses admitted requests, passes them to the library, and accounts for the
//! memory of the responses.

mod headers;

use crate::http::{Admitted, Body, Caller, Service, keeping};
use crate::messages::in_flight::NotTaken;
use crate::messages::offload;
use crate::messages::parse::{self, Refused};
use crate::messages::response_resources::Maker;
use crate::messages::serialize::{SMALL, Written};
use crate::sessions::{RETRY, Refusal, Sessions};
use crate::transport::fast_path::{Known, Plain};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Body as _;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use palisade::execution::BoxFuture;
use palisade::internal::{Account, Owed};
use palisade::sandbox::Limits;
use palisade::tool::text::elided;
use rmcp::ServerHandler;
use rmcp::model::{
    ClientJsonRpcMessage, ErrorCode, ErrorData, Extensions, JsonRpcMessage, ProtocolVersion,
    RequestId,
};
use rmcp::transport::common::http_header::{
    HEADER_MCP_PROTOCOL_VERSION, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize as _;
use serde_json::Value;
use std::io;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The path of the endpoint.
pub(crate) const PATH: &str = "/mcp";
/// The metadata key of a request's protocol revision.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// Creates a handler: one per legacy session, one per modern request, and one for each check of
/// parameter headers.
type Factory<S> = Arc<dyn Fn() -> io::Result<S> + Send + Sync>;

/// The protocol over HTTP, for both eras.
pub(crate) struct Endpoint<S> {
    make: Factory<S>,
    sessions: Sessions,
    config: StreamableHttpServerConfig,
    limits: Limits,
}

impl<S: ServerHandler> Endpoint<S> {
    /// Creates an endpoint with these host names. When `stop` is cancelled, all sessions and
    /// streams end.
    pub(crate) fn new(
        make: impl Fn() -> io::Result<S> + Send + Sync + 'static,
        hosts: Vec<String>,
        stop: CancellationToken,
    ) -> Self {
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(hosts)
            .with_cancellation_token(stop)
            .with_sse_retry(Some(RETRY))
            .with_json_response(true);
        Self {
            make: Arc::new(make),
            sessions: Sessions::default(),
            config,
            limits: Limits::default(),
        }
    }

    /// Sets the memory limits that requests count against.
    pub(crate) fn within(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    async fn pass(&self, request: Admitted) -> Response<Body> {
        // Holds the memory of the request until it is answered.
        let account = self.limits.account();
        let view = self.sessions.seen_by(request.caller(), account.clone());
        let mut request = request.into_request();
        let mut asked = match Asked::by(&request, &account).await {
            Ok(asked) => asked,
            Err(refused) => return error(status_of(&refused), refused),
        };
        request.extensions_mut().insert(account.clone());
        if let Some((call, handler)) = self.short(&mut asked, request.headers()) {
            let (parts, _) = request.into_parts();
            return answered(call, handler, parts, account).await;
        }
        let ends = request.method() == Method::DELETE;
        if ends && session(request.headers()).is_some_and(|id| !view.has(id)) {
            return refusal(Refusal::Gone, None);
        }
        // The library parses the body a second time.
        account.owe(account.held());
        let make = self.make.clone();
        let view = Arc::new(view);
        let service = StreamableHttpService::new(move || make(), view.clone(), self.config.clone());
        let response = service.handle(request.map(Full::new)).await;
        match view.refusal() {
            Some(refused) if !response.status().is_success() => refusal(refused, asked.id()),
            _ if ends && response.status().is_success() => done(),
            // The library also uses this status for a body that it cannot parse. Rare, so that the
            // message is parsed again only here.
            _ if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && !asked.is_message() => {
                error(StatusCode::BAD_REQUEST, parse::no_message(asked.id()))
            }
            _ if is_plain_refusal(&response) => worded(response, asked.id()).await,
            _ => counted(response, account),
        }
    }

    /// Returns the call of a request that may take the fast path, with its handler.
    fn short(&self, asked: &mut Asked, headers: &HeaderMap) -> Option<(Plain, S)> {
        let tool = asked.0.as_ref()?["params"]["name"]
            .as_str()
            .filter(|tool| headers::plain(headers, tool))?;
        // A tool with a schema here repeats parameters in headers, which the library must compare.
        let handler = (self.make)().ok().filter(|handler| handler.get_tool(tool).is_none())?;
        match Plain::of(asked.0.take()?) {
            Ok(call) => Some((call, handler)),
            Err(value) => {
                asked.0 = Some(value);
                None
            }
        }
    }
}

/// Answers a call on the fast path. If the client disconnects, the call is cancelled, and its task
/// ends on its own.
async fn answered<S: ServerHandler>(
    call: Plain,
    handler: S,
    parts: Parts,
    account: Account,
) -> Response<Body> {
    let id = call.id().clone();
    let ends = CancellationToken::new();
    let mut extensions = Extensions::new();
    let maker = Maker::new(account);
    maker.attach(&mut extensions);
    extensions.insert(parts);
    let _gone = ends.clone().drop_guard();
    let answering = tokio::spawn(async move { call.answered(&handler, ends, extensions).await });
    let answer = answering.await.unwrap_or_else(|_| {
        let error = ErrorData::internal_error("the server ended before the call did", None);
        Refused { id: Some(id), error }.into_message()
    });
    let status = match &answer {
        JsonRpcMessage::Error(failed)
            if failed.error.code == ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY =>
        {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    };
    json(status, offload::written(answer, maker).await)
}

/// Returns true if the library refused a request in plain text.
fn is_plain_refusal(response: &Response<Body>) -> bool {
    response.status() == StatusCode::BAD_REQUEST && !response.headers().contains_key(CONTENT_TYPE)
}

/// Turns a refusal in plain text into an error response.
async fn worded(response: Response<Body>, id: Option<RequestId>) -> Response<Body> {
    let status = response.status();
    let Ok(text) = response.into_body().collect().await;
    let text = String::from_utf8_lossy(&text.to_bytes()).into_owned();
    let text = text.strip_prefix("Bad Request: ").unwrap_or(&text);
    error(status, Refused { id, error: ErrorData::invalid_request(elided(text, 256), None) })
}

/// Keeps the memory of a response of the library accounted for until it is sent. A response in one
/// piece counts with its own length from here on, and a stream with the account of its request.
fn counted(response: Response<Body>, account: Account) -> Response<Body> {
    match response.body().size_hint().exact().map(usize::try_from) {
        Some(Ok(length)) if length <= SMALL => response,
        Some(Ok(length)) => response.map(|body| keeping(body, Arc::new(Owed::new(length)))),
        Some(Err(_)) | None => response.map(|body| keeping(body, account)),
    }
}

/// The JSON object of a `POST` request; `None` for other methods.
struct Asked(Option<Value>);

impl Asked {
    /// Parses the body and checks the headers of a request.
    async fn by(request: &Request<Bytes>, account: &Account) -> Result<Self, Refused> {
        let value = match *request.method() {
            Method::POST => Some(offload::checked(request.body().clone(), account).await?),
            _ => None,
        };
        let asked = Self(value);
        if let Some(name) = headers::twice(request.headers()) {
            let text = format!("the header `{name}` is there more than once: send it once");
            return Err(Refused { id: asked.id(), error: ErrorData::header_mismatch(text, None) });
        }
        let Some(value) = asked.0 else { return Ok(Self(None)) };
        if value.get("id").is_some() && is_adrift(request.headers(), &value) {
            let error = ErrorData::invalid_request(
                "a request of this revision belongs to a session: initialize first",
                None,
            );
            return Err(Refused { id: parse::id(&value), error });
        }
        Ok(Self(Some(value)))
    }

    /// Returns the id of a request. Other messages have no response.
    fn id(&self) -> Option<RequestId> {
        self.0.as_ref().filter(|value| value.get("method").is_some()).and_then(parse::id)
    }

    fn is_message(&self) -> bool {
        self.0.as_ref().is_none_or(|value| ClientJsonRpcMessage::deserialize(value).is_ok())
    }
}

impl<S: ServerHandler> Service for Endpoint<S> {
    fn answer(&self, request: Admitted) -> BoxFuture<'_, Response<Body>> {
        Box::pin(self.pass(request))
    }
}

/// Returns the identity of a message's sender.
pub(crate) fn caller(extensions: &Extensions) -> Option<Caller> {
    extensions.get::<Parts>()?.extensions.get().copied()
}

/// Returns the memory account of a message.
pub(crate) fn account(extensions: &Extensions) -> Option<Account> {
    let own = || extensions.get::<Parts>()?.extensions.get();
    extensions.get().or_else(own).cloned()
}

/// Returns the memory account of an HTTP request whose response is written by the library, which
/// does not account for memory.
pub(crate) fn library(extensions: &Extensions) -> Option<Account> {
    let parts = extensions.get::<Parts>().filter(|_| extensions.get::<Known>().is_none());
    parts?.extensions.get().cloned()
}

/// Returns true if a request claims a legacy revision, which requires a session, and has no
/// session.
fn is_adrift(headers: &HeaderMap, request: &Value) -> bool {
    let is_old = |version: &str| version < ProtocolVersion::V_2026_07_28.as_str();
    let header = headers.get(HEADER_MCP_PROTOCOL_VERSION).and_then(|version| version.to_str().ok());
    let own = &request["params"]["_meta"][VERSION];
    session(headers).is_none()
        && request["method"].as_str().is_some_and(|method| method != "initialize")
        && header.is_none_or(is_old)
        && own.as_str().is_some_and(is_old)
}

fn session(headers: &HeaderMap) -> Option<&str> {
    headers.get(HEADER_SESSION_ID)?.to_str().ok()
}

/// Builds the response to a message that its session rejected.
fn refusal(refusal: Refusal, id: Option<RequestId>) -> Response<Body> {
    let status = match refusal {
        Refusal::Gone => StatusCode::NOT_FOUND,
        Refusal::Full => StatusCode::SERVICE_UNAVAILABLE,
        Refusal::NotTaken(NotTaken::Busy) => StatusCode::TOO_MANY_REQUESTS,
        Refusal::NotTaken(NotTaken::Duplicate | NotTaken::LongId) => StatusCode::BAD_REQUEST,
    };
    let mut response =
        error(status, Refused { id, error: ErrorData::invalid_request(refusal.to_string(), None) });
    if matches!(refusal, Refusal::Full | Refusal::NotTaken(NotTaken::Busy)) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// Builds the response to an ended session. 204 rather than the library's 202, since some clients
/// warn of any other status.
fn done() -> Response<Body> {
    let mut response = Response::new(Full::default().boxed());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

fn status_of(refused: &Refused) -> StatusCode {
    if refused.error.code == ErrorCode::INTERNAL_ERROR {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::BAD_REQUEST
    }
}

fn error(status: StatusCode, refused: Refused) -> Response<Body> {
    json(status, Written::unasked(&refused.into_message()))
}

fn json(status: StatusCode, message: Written) -> Response<Body> {
    let mut response = Response::new(Full::new(message.into_body()).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON_MIME_TYPE));
    response
}

#[cfg(test)]
mod tests;
