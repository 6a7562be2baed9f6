//! Exchanges of the host itself whose response is read in pieces, such as a stream of events.

use crate::exchange::{Connection, Exchange, ExchangeError, begin, broken};
use crate::network::Network;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use std::fmt;
use std::time::Duration;

/// A response whose body is read in pieces. Dropping it closes the connection.
pub struct Streamed {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    body: Incoming,
    _connection: Connection,
}

impl fmt::Debug for Streamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streamed").field("status", &self.status).finish_non_exhaustive()
    }
}

impl Streamed {
    /// Returns the next piece of the body, or `None` at its end. Waits for as long as the server
    /// takes. A piece has at most some hundred KiB; the caller bounds their sum.
    ///
    /// # Errors
    ///
    /// [`ExchangeError::Broken`] if the connection breaks off.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ExchangeError> {
        loop {
            match self.body.frame().await {
                // Trailers are dropped.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => return Ok(Some(piece)),
                    Err(_) => continue,
                },
                Some(Err(error)) => return Err(broken(error)),
                None => return Ok(None),
            }
        }
    }
}

impl Network {
    /// Sends a request of the host itself, and returns when the head of the response has come, at
    /// most after `first_byte`. [`Exchange::most`] does not apply. Dropping the future closes the
    /// connection.
    ///
    /// # Errors
    ///
    /// [`ExchangeError`] if the target is refused, or there is no response.
    pub async fn open(
        &self,
        exchange: Exchange,
        first_byte: Duration,
    ) -> Result<Streamed, ExchangeError> {
        let network = self.clone();
        // The caller's runtime may have no input and output.
        let opening = self.spawn(async move { begin(&network, exchange, first_byte).await })?;
        let panicked = || Err(ExchangeError::Broken("a task of the network panicked".to_owned()));
        let (response, connection) = opening.ended().await.unwrap_or_else(panicked)?;
        let (head, body) = response.into_parts();
        Ok(Streamed { status: head.status, headers: head.headers, body, _connection: connection })
    }
}
