//! The sending of a request that has been checked.

use crate::body::{RequestBody, ResponseBody};
use crate::call::{CallNetwork, Place};
use crate::connect::{ConnectError, connect};
use crate::head_bound::{HeadError, handshake};
use crate::limits;
use crate::network::{NetworkError, Task};
use crate::plugin_grants::{Allowed, Carries};
use crate::redact::Redaction;
use crate::refusal::NetRefused;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use std::time::Duration;
use tokio::time::timeout;
use wasmtime_wasi_http::{RequestOptions, WasiBody};

/// The encodings that a refusal names.
const ENCODINGS: [&str; 6] = ["gzip", "deflate", "br", "zstd", "compress", "x-gzip"];

/// The reason why a request has no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error("the memory of the call has no room for a connection: {0}")]
    Memory(String),
    #[error("the server sent no response within {} s", .0.as_secs_f32())]
    Slow(Duration),
    #[error(
        "the headers of the response are too long: at most {} fields and {} bytes are read",
        limits::HEADER_COUNT,
        limits::HEADERS
    )]
    Headers,
    #[error("the exchange with the server failed: {0}")]
    Exchange(hyper::Error),
    #[error("internal error: a task of the network panicked")]
    Panicked,
}

impl From<NetRefused> for SendError {
    fn from(refused: NetRefused) -> Self {
        Self::Connect(refused.into())
    }
}

/// A response with the task that reads its body from the connection.
pub(crate) type Answer = (Response<WasiBody>, Task<()>);

/// Sends a request and waits for the head of the response.
pub(crate) async fn send(
    call: CallNetwork,
    allowed: Allowed,
    request: Request<WasiBody>,
    options: RequestOptions,
) -> Result<Answer, SendError> {
    let place = call.place().await?;
    let carries = allowed.carries;
    let request = prepared(request, &allowed, &call);
    let exchange = exchange(call.clone(), allowed, request, options, place);
    let exchanged = call.network().spawn(exchange)?.ended().await.ok_or(SendError::Panicked)?;
    let (response, connection) = exchanged?;
    let asked = options.between_bytes_timeout.unwrap_or(limits::BETWEEN_PIECES);
    let patience = asked.min(limits::BETWEEN_PIECES);
    Ok((guarded(response, carries, patience, &call)?, connection))
}

/// Returns the request as it goes to the server: with the target in `Host` alone. The server is
/// told to close the connection: one that does not read the body would take it for a request, which
/// no rule allows. For the same reason, GET and HEAD have no body.
fn prepared(
    request: Request<WasiBody>,
    allowed: &Allowed,
    call: &CallNetwork,
) -> Request<RequestBody> {
    let (mut parts, body) = request.into_parts();
    parts.uri = path_of(&parts.uri);
    parts.version = http::Version::HTTP_11;
    if let Ok(host) = HeaderValue::from_str(&allowed.target.authority()) {
        parts.headers.insert(header::HOST, host);
    }
    parts.headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    let body = match is_without_body(&parts.method) {
        true => {
            parts.headers.remove(header::CONTENT_LENGTH);
            RequestBody::none()
        }
        false => RequestBody::new(body, call.sent()),
    };
    Request::from_parts(parts, body)
}

/// Connects and exchanges the heads, on the thread of the network.
async fn exchange(
    call: CallNetwork,
    allowed: Allowed,
    request: Request<RequestBody>,
    options: RequestOptions,
    place: Place,
) -> Result<(Response<Incoming>, Task<()>), SendError> {
    let network = call.network();
    let connecting = connect(&allowed.target, allowed.destinations, network, Some(&call));
    let stream = match options.connect_timeout {
        Some(time) => timeout(time, connecting).await.unwrap_or(Err(ConnectError::Timeout))?,
        None => connecting.await?,
    };
    let (sender, connection) = handshake(stream).await.map_err(SendError::Exchange)?;
    let connection = network.spawn(async move {
        // Its error is that of the response or of its body.
        let _ = connection.await;
        drop(place);
    })?;
    let patience = options.first_byte_timeout.unwrap_or(limits::FIRST_BYTE).min(limits::FIRST_BYTE);
    match sender.send(request, patience).await {
        // The buffer of the protocol library may have room for more.
        Ok(response) if length(response.headers()) > limits::HEADERS => Err(SendError::Headers),
        Ok(response) => Ok((response, connection)),
        Err(HeadError::TooLong) => Err(SendError::Headers),
        Err(HeadError::Failed(error)) => Err(SendError::Exchange(error)),
        Err(HeadError::Slow) => Err(SendError::Slow(patience)),
    }
}

/// Returns the response as a guest gets it: without secrets, and with a bounded body.
fn guarded(
    response: Response<Incoming>,
    carries: Carries,
    patience: Duration,
    call: &CallNetwork,
) -> Result<Response<WasiBody>, NetRefused> {
    let (mut parts, body) = response.into_parts();
    if carries == Carries::Secret {
        refuse_encoded(&parts.headers)?;
    }
    let redaction = call.redaction();
    if let Some(redaction) = &redaction {
        redact_headers(redaction, &mut parts.headers);
    }
    let body = ResponseBody::new(
        body,
        call.received(),
        redaction.as_ref().map(Redaction::stream),
        patience,
    );
    Ok(Response::from_parts(parts, body.boxed_unsync()))
}

/// Returns the path and query of a URI. A guest may leave the path out, and a request has one.
fn path_of(uri: &Uri) -> Uri {
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let begin = if path.starts_with('/') { "" } else { "/" };
    PathAndQuery::try_from(format!("{begin}{path}"))
        .map_or_else(|_| Uri::from_static("/"), Uri::from)
}

#[cfg(test)]
#[test]
fn request_has_a_path() {
    for (path, sent) in [("", "/"), ("?a=b", "/?a=b"), ("/c?d", "/c?d")] {
        let uri = Uri::builder().scheme("https").authority("a.org").path_and_query(path).build();
        assert_eq!(uri.map(|uri| path_of(&uri).to_string()).ok().as_deref(), Some(sent), "{path}");
    }
}

/// Returns the length of the names and values of headers, in bytes.
fn length(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}

/// Returns true if requests of this method have no body.
pub(crate) fn is_without_body(method: &Method) -> bool {
    [Method::GET, Method::HEAD].contains(method)
}

/// Refuses an encoded response: the redaction would not find a secret in it.
fn refuse_encoded(headers: &HeaderMap) -> Result<(), NetRefused> {
    for name in [header::CONTENT_ENCODING, header::TRANSFER_ENCODING] {
        for value in headers.get_all(name) {
            let encoding = String::from_utf8_lossy(value.as_bytes());
            let is_plain = |name: &str| ["", "identity", "chunked"].contains(&name);
            if !encoding.split(',').all(|name| is_plain(name.trim().to_ascii_lowercase().as_str()))
            {
                // No other word of the response is repeated: it may be the secret.
                let named = |name: &&&str| encoding.trim().eq_ignore_ascii_case(name);
                let encoding = ENCODINGS.iter().find(named).copied();
                return Err(NetRefused::Encoded { encoding: encoding.unwrap_or("unknown") });
            }
        }
    }
    Ok(())
}

/// Removes the secrets from the values of headers, and the headers with one in their name.
fn redact_headers(redaction: &Redaction, headers: &mut HeaderMap) {
    let named: Vec<HeaderName> =
        headers.keys().filter(|name| redaction.is_in_name(name.as_str())).cloned().collect();
    for name in named {
        headers.remove(name);
    }
    for value in headers.values_mut() {
        if let Some(clean) = redaction.redact(value.as_bytes()) {
            *value = HeaderValue::from_bytes(&clean)
                .unwrap_or_else(|_| HeaderValue::from_static(crate::redact::REDACTED));
        }
    }
}
