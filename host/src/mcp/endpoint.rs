//! Requests that were let in, made into messages, and handed to the library; and its answers.

mod headers;

use super::answer::{SMALL, Written};
use super::frame::{self, Refused};
use super::requests::NotTaken;
use super::sessions::{RETRY, Refusal, Sessions};
use super::short::{Known, Plain};
use crate::execution::BoxFuture;
use crate::execution::account::{Account, Owed};
use crate::http::{Admitted, Body, Caller, Service, keeping};
use crate::sandbox::Limits;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Body as _;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use rmcp::ServerHandler;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, Extensions, JsonRpcMessage, ProtocolVersion, RequestId};
use rmcp::transport::common::http_header::{HEADER_MCP_PROTOCOL_VERSION, HEADER_SESSION_ID, JSON_MIME_TYPE};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize as _;
use serde_json::Value;
use std::io;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Where the endpoint is.
pub(super) const PATH: &str = "/mcp";
/// Where a request says of itself of which revision it is.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// Makes what answers: for each legacy session one, for each modern request one, and now and then one that is only asked for a tool's schema.
type Factory<S> = Arc<dyn Fn() -> io::Result<S> + Send + Sync>;

/// The protocol over HTTP, in both eras.
pub(super) struct Endpoint<S> {
    make: Factory<S>,
    sessions: Sessions,
    config: StreamableHttpServerConfig,
    limits: Limits,
}

impl<S: ServerHandler> Endpoint<S> {
    /// An endpoint that is reached under these names, until `stop` is cancelled: then all sessions and streams end.
    pub(super) fn new(
        make: impl Fn() -> io::Result<S> + Send + Sync + 'static,
        hosts: Vec<String>,
        stop: CancellationToken,
    ) -> Self {
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(hosts)
            .with_cancellation_token(stop)
            .with_sse_retry(Some(RETRY))
            .with_json_response(true);
        Self { make: Arc::new(make), sessions: Sessions::default(), config, limits: Limits::default() }
    }

    /// With the limits of the host: what a request takes counts within them.
    pub(super) fn within(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    async fn pass(&self, request: Admitted) -> Response<Body> {
        // What the request takes is held until it is answered.
        let account = self.limits.account();
        let view = self.sessions.seen_by(request.caller(), account.clone());
        let mut request = request.into_request();
        let mut asked = match Asked::by(&request, &account) {
            Ok(asked) => asked,
            Err(refused) => return error(status_of(&refused), refused),
        };
        request.extensions_mut().insert(account.clone());
        if let Some((call, handler)) = self.short(&mut asked, request.headers()) {
            return answered(call, handler, (request.into_parts().0, account)).await;
        }
        let ends = request.method() == Method::DELETE;
        if ends && session(request.headers()).is_some_and(|id| !view.has(id)) {
            return refusal(Refusal::Gone, None);
        }
        // The library reads the request once more.
        account.owe(account.held());
        let (make, view) = (self.make.clone(), Arc::new(view));
        let service = StreamableHttpService::new(move || make(), view.clone(), self.config.clone());
        let response = service.handle(request.map(Full::new)).await;
        match view.refusal() {
            Some(refused) if !response.status().is_success() => refusal(refused, asked.id()),
            _ if ends && response.status().is_success() => done(),
            // So the library answers what it cannot read, too. Seldom enough to be read here only then.
            _ if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && !asked.is_message() => {
                error(StatusCode::BAD_REQUEST, frame::no_message(asked.id()))
            }
            _ => counted(response, account),
        }
    }

    /// The call of a request that may go the short way, and what answers it.
    fn short(&self, asked: &mut Asked, headers: &HeaderMap) -> Option<(Plain, S)> {
        let tool = asked.0.as_ref()?["params"]["name"].as_str().filter(|tool| headers::plain(headers, tool))?;
        // One that has a schema here repeats parameters in headers, which are to be compared.
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

/// The answer to a call that goes the short way. Where its client goes away, the call is told to end, and does so by itself.
async fn answered<S: ServerHandler>(call: Plain, handler: S, (parts, account): (Parts, Account)) -> Response<Body> {
    let (id, ends, mut extensions) = (call.id().clone(), CancellationToken::new(), Extensions::new());
    extensions.insert(parts);
    let _gone = ends.clone().drop_guard();
    let answering = tokio::spawn(async move { call.answered(&handler, ends, extensions).await });
    let answer = answering.await.unwrap_or_else(|_| {
        let error = ErrorData::internal_error("the server ended before the call did", None);
        Refused { id: Some(id), error }.into_message()
    });
    let status = match &answer {
        JsonRpcMessage::Error(failed) if failed.error.code == ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    };
    json(status, Written::answer(&answer, &account))
}

/// An answer that the library has written, with its memory: it counts until the last part of it is sent. An answer in one
/// piece has its own length from now on; the parts of a stream have what was reserved for them in the account.
fn counted(response: Response<Body>, account: Account) -> Response<Body> {
    match response.body().size_hint().exact().map(usize::try_from) {
        Some(Ok(length)) if length <= SMALL => response,
        Some(Ok(length)) => response.map(|body| keeping(body, Arc::new(Owed::new(length)))),
        Some(Err(_)) | None => response.map(|body| keeping(body, account)),
    }
}

/// What a request brings that has to be an object, and was found to be one.
struct Asked(Option<Value>);

impl Asked {
    /// Checks what comes with a request, before it is made into a message.
    fn by(request: &Request<Bytes>, account: &Account) -> Result<Self, Refused> {
        let value = match *request.method() {
            Method::POST => Some(frame::check(request.body(), account)?),
            _ => None,
        };
        let asked = Self(value);
        if let Some(name) = headers::twice(request.headers()) {
            let text = format!("the header `{name}` is there more than once: send it once");
            return Err(Refused { id: asked.id(), error: ErrorData::header_mismatch(text, None) });
        }
        let Some(value) = asked.0 else { return Ok(Self(None)) };
        if value.get("id").is_some() && is_adrift(request.headers(), &value) {
            let error =
                ErrorData::invalid_request("a request of this revision belongs to a session: initialize first", None);
            return Err(Refused { id: frame::id(&value), error });
        }
        Ok(Self(Some(value)))
    }

    /// The id of a request; nothing else has an answer.
    fn id(&self) -> Option<RequestId> {
        self.0.as_ref().filter(|value| value.get("method").is_some()).and_then(frame::id)
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

/// Who sent a message, as its handler can know it.
pub(super) fn caller(extensions: &Extensions) -> Option<Caller> {
    extensions.get::<Parts>()?.extensions.get().copied()
}

/// The account that the memory of a message counts in.
pub(super) fn account(extensions: &Extensions) -> Option<Account> {
    let own = || extensions.get::<Parts>()?.extensions.get();
    extensions.get().or_else(own).cloned()
}

/// The account of a request over HTTP whose answer the library writes, which asks nobody for the memory.
pub(super) fn library(extensions: &Extensions) -> Option<Account> {
    let parts = extensions.get::<Parts>().filter(|_| extensions.get::<Known>().is_none());
    parts?.extensions.get().cloned()
}

/// Whether a request says that it is of an older revision, in which each belongs to a session, and belongs to none.
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

/// What a request is told that its session did not take.
fn refusal(refusal: Refusal, id: Option<RequestId>) -> Response<Body> {
    let status = match refusal {
        Refusal::Gone => StatusCode::NOT_FOUND,
        Refusal::Full => StatusCode::SERVICE_UNAVAILABLE,
        Refusal::NotTaken(NotTaken::Busy) => StatusCode::TOO_MANY_REQUESTS,
        Refusal::NotTaken(NotTaken::Duplicate | NotTaken::LongId) => StatusCode::BAD_REQUEST,
    };
    let mut response = error(status, Refused { id, error: ErrorData::invalid_request(refusal.to_string(), None) });
    if matches!(refusal, Refusal::Full | Refusal::NotTaken(NotTaken::Busy)) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// A session has ended, which is more than that it will: some clients warn of anything else.
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
