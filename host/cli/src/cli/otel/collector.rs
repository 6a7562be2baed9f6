//! The HTTP client for the collector: HTTP/1.1 without TLS, one connection per request, with a
//! timeout and a bounded response.

use async_trait::async_trait;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::Uri;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HOST, HeaderValue};
use hyper_util::rt::TokioIo;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// The timeout of a request, including its connection and response.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum size of a response, in bytes.
const ANSWER: usize = 64 << 10;

/// The HTTP client, called from the threads of the exporters.
#[derive(Debug)]
pub(super) struct Collector {
    /// Drives the requests: exporters block on threads that have no runtime.
    runtime: Runtime,
    was_reached: AtomicBool,
}

impl Collector {
    pub(super) fn new() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, was_reached: AtomicBool::new(true) })
    }

    /// Logs one warning each time the collector becomes unreachable.
    fn tell(&self, answer: &Result<Response<Bytes>, HttpError>) {
        let why = match answer {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(answer.status().to_string()),
            Err(error) => Some(error.to_string()),
        };
        let was_reached = self.was_reached.swap(why.is_none(), Ordering::Relaxed);
        if let Some(why) = why.filter(|_| was_reached) {
            tracing::warn!("the collector of telemetry did not take it: {why}");
        }
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let exchange = async { tokio::time::timeout(PATIENCE, exchange(request)).await? };
        let answer = self.runtime.block_on(exchange);
        self.tell(&answer);
        answer
    }
}

async fn exchange(request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let authority = request.uri().authority().ok_or("no address")?;
    let place = format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(80));
    let request = addressed(request, &place)?;
    let stream = TcpStream::connect(place).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Dropping the set aborts the connection task.
    let mut driven = JoinSet::new();
    driven.spawn(connection);
    let (parts, body) = sender.send_request(request.map(Full::new)).await?.into_parts();
    Ok(Response::from_parts(parts, Limited::new(body, ANSWER).collect().await?.to_bytes()))
}

/// Converts the request to origin form: a path and a `Host` header in place of the whole URL.
fn addressed(mut request: Request<Bytes>, place: &str) -> Result<Request<Bytes>, HttpError> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).parse::<Uri>()?;
    *request.uri_mut() = path;
    request.headers_mut().insert(HOST, HeaderValue::from_str(place)?);
    request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    Ok(request)
}
