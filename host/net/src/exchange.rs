//! Exchanges of the host itself with a server, such as the download of a plugin: one request, and
//! its response within bounds. A redirect is a response like any other.

use crate::connect::{ConnectError, Destinations, Stream, connect};
use crate::head_bound::{HeadError, handshake};
use crate::host_name::HostName;
use crate::limits;
use crate::network::{Network, NetworkError, Task};
use crate::refusal::NetRefused;
use crate::rule::Reach;
use crate::target::{Scheme, Target};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::mpsc::sync_channel;
use std::time::Duration;
use tokio::time::timeout;

/// A request of the host itself.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The method.
    pub method: Method,
    /// The URL. One with `http:` needs a host that [is this machine](HostName::is_loopback):
    /// everywhere else the bytes could be read and replaced on their way.
    pub url: String,
    /// The headers. `Host` and `Content-Length` are added.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The addresses that may be connected to.
    pub reach: Reach,
    /// The largest body of a successful response, in bytes. Of other responses the first
    /// [`limits::ERROR_BODY`] bytes are kept.
    pub most: u64,
}

/// The task that drives a connection, which ends when this is dropped.
pub(crate) type Connection = Task<hyper::Result<()>>;

/// The response to an [`Exchange`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

/// The reason why an exchange has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// The URL or the addresses of its host are refused.
    #[error(transparent)]
    Refused(#[from] NetRefused),
    /// The URL is not encrypted, and its host is not this machine.
    #[error(
        "`{target}` is refused: without encryption the bytes could be read and replaced on their way; `https://` is accepted, and `http://` for `localhost`, `127.0.0.1` and `[::1]`"
    )]
    Unencrypted {
        /// The target.
        target: Target,
    },
    /// The host has no address that may be connected to.
    #[error(
        "`{host}` has no address that may be connected to: {found} of its addresses are private, reserved or those of this machine; a host that another server leads to needs a public one, only `localhost` and its addresses name this machine, and metadata services are never reached"
    )]
    Address {
        /// The host.
        host: HostName,
        /// The number of addresses that the name has.
        found: usize,
    },
    /// There is no connection.
    #[error("{0}")]
    Connect(String),
    /// The response is too large.
    #[error("the response has more than {most} bytes")]
    TooLarge {
        /// The largest body that is accepted, in bytes.
        most: u64,
    },
    /// The headers of the response are too long, with the interim responses before them.
    #[error("the headers of the response are too long")]
    HeadTooLong,
    /// The server was too slow.
    #[error("the server did not answer in time: at most {} s for the first byte, {} s between two pieces and {} s in all", limits::FIRST_BYTE.as_secs(), limits::BETWEEN_PIECES.as_secs(), limits::EXCHANGE.as_secs())]
    Slow,
    /// The exchange broke off.
    #[error("the exchange with the server failed: {0}")]
    Broken(String),
}

impl From<ConnectError> for ExchangeError {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Refused(NetRefused::Address { host, found }) => {
                Self::Address { host, found }
            }
            ConnectError::Refused(refused) => Self::Refused(refused),
            other => Self::Connect(other.to_string()),
        }
    }
}

impl From<NetworkError> for ExchangeError {
    fn from(error: NetworkError) -> Self {
        Self::Connect(error.to_string())
    }
}

impl Network {
    /// Sends a request of the host itself, and reads the whole response. Blocks the thread, for at
    /// most [`limits::EXCHANGE`], and must not be called from an asynchronous task.
    ///
    /// # Errors
    ///
    /// [`ExchangeError`] if the target is refused, or there is no whole response within the limits.
    /// A response with the status of a failure is no error.
    pub fn exchange(&self, exchange: Exchange) -> Result<Answer, ExchangeError> {
        let (sender, receiver) = sync_channel(1);
        let network = self.clone();
        let task = self.spawn(async move {
            let ended = timeout(limits::EXCHANGE, answer(&network, exchange)).await;
            let _ = sender.send(ended.unwrap_or(Err(ExchangeError::Slow)));
        })?;
        let panicked = || Err(ExchangeError::Broken("a task of the network panicked".to_owned()));
        let answered = receiver.recv().unwrap_or_else(|_| panicked());
        drop(task);
        answered
    }
}

async fn answer(network: &Network, exchange: Exchange) -> Result<Answer, ExchangeError> {
    let most = exchange.most;
    let (response, connection) = begin(network, exchange, limits::FIRST_BYTE).await?;
    let (head, body) = response.into_parts();
    let body = match head.status.is_success() {
        true => whole(body, most).await?,
        false => beginning(body).await,
    };
    drop(connection);
    Ok(Answer { status: head.status, headers: head.headers, body })
}

/// Sends a request, and returns the head of its response with the task that drives the connection.
pub(crate) async fn begin(
    network: &Network,
    exchange: Exchange,
    first_byte: Duration,
) -> Result<(Response<Incoming>, Connection), ExchangeError> {
    let uri: Uri = exchange.url.parse().map_err(NetRefused::url)?;
    let target = Target::of(&uri)?;
    let stream = stream(network, &target, exchange.reach).await?;
    let request = request(exchange, &uri, &target)?;
    let (sender, connection) = handshake(stream).await.map_err(broken)?;
    let connection = network.spawn(connection)?;
    match sender.send(request, first_byte).await {
        Ok(response) => Ok((response, connection)),
        Err(HeadError::TooLong) => Err(ExchangeError::HeadTooLong),
        Err(HeadError::Failed(error)) => Err(broken(error)),
        Err(HeadError::Slow) => Err(ExchangeError::Slow),
    }
}

/// Connects to a target. Without encryption only this machine is reached. `localhost` means the
/// loopback addresses, and no other name does, for every answer of a resolver.
async fn stream(
    network: &Network,
    target: &Target,
    reach: Reach,
) -> Result<Box<dyn Stream>, ExchangeError> {
    if target.scheme == Scheme::Https {
        let destinations = match reach {
            Reach::Private if !target.host.is_loopback() => Destinations::Elsewhere,
            reach => reach.into(),
        };
        return Ok(connect(target, destinations, network, None).await?);
    }
    if !target.host.is_loopback() {
        return Err(ExchangeError::Unencrypted { target: target.clone() });
    }
    if let HostName::Address(_) = &target.host {
        return Ok(connect(target, Destinations::Any, network, None).await?);
    }
    let at = |address| Target { host: HostName::Address(address), ..target.clone() };
    match connect(&at(Ipv4Addr::LOCALHOST.into()), Destinations::Any, network, None).await {
        Err(ConnectError::Io(_)) => {
            Ok(connect(&at(Ipv6Addr::LOCALHOST.into()), Destinations::Any, network, None).await?)
        }
        connected => Ok(connected?),
    }
}

fn request(
    exchange: Exchange,
    uri: &Uri,
    target: &Target,
) -> Result<Request<Full<Bytes>>, NetRefused> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    if path.len() > limits::PATH {
        return Err(NetRefused::url("its path and query are longer than 16 KiB"));
    }
    let mut request = Request::new(Full::new(exchange.body));
    *request.method_mut() = exchange.method;
    *request.uri_mut() = path.parse().map_err(NetRefused::url)?;
    *request.headers_mut() = exchange.headers;
    let host = HeaderValue::from_str(&target.authority()).map_err(NetRefused::url)?;
    request.headers_mut().insert(header::HOST, host);
    Ok(request)
}

/// Reads a body of at most `most` bytes.
async fn whole(mut body: Incoming, most: u64) -> Result<Vec<u8>, ExchangeError> {
    let mut bytes = Vec::new();
    // A length that the server announces is refused at once, and reserves nothing.
    if body_length(&body) > most {
        return Err(ExchangeError::TooLarge { most });
    }
    while let Some(piece) = next(&mut body).await? {
        if bytes.len() as u64 + piece.len() as u64 > most {
            return Err(ExchangeError::TooLarge { most });
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

fn body_length(body: &Incoming) -> u64 {
    http_body::Body::size_hint(body).lower()
}

/// Reads the beginning of the body of a failure, as far as it comes.
async fn beginning(mut body: Incoming) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < limits::ERROR_BODY
        && let Ok(Some(piece)) = next(&mut body).await
    {
        bytes.extend_from_slice(&piece);
    }
    bytes.truncate(limits::ERROR_BODY);
    bytes
}

/// Returns the next piece of a body. Trailers are dropped.
async fn next(body: &mut Incoming) -> Result<Option<Bytes>, ExchangeError> {
    match timeout(limits::BETWEEN_PIECES, body.frame()).await {
        Ok(Some(Ok(frame))) => Ok(Some(frame.into_data().unwrap_or_default())),
        Ok(Some(Err(error))) => Err(broken(error)),
        Ok(None) => Ok(None),
        Err(_) => Err(ExchangeError::Slow),
    }
}

#[allow(clippy::needless_pass_by_value, reason = "it is the last use of an error")]
pub(crate) fn broken(error: hyper::Error) -> ExchangeError {
    match error.is_parse_too_large() {
        true => ExchangeError::HeadTooLong,
        false => ExchangeError::Broken(error.to_string()),
    }
}
