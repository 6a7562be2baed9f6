//! One request and its response, through `wasi:http`. The host decides whether it is sent.

use crate::address::{Address, Scheme};
use palisade_guest::{Context, Error, Result};
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{
    self, ErrorCode, Fields, IncomingBody, IncomingResponse, OutgoingBody, OutgoingRequest,
};
use wasip2::io::streams::StreamError;

/// The most bytes of one read or write: the host accepts no more in one write.
const PIECE: usize = 4096;

/// The most bytes of one read.
const READ: u64 = 1 << 16;

/// The name that requests are sent under, unless the caller gives another.
const USER_AGENT: &str = concat!("palisade-web/", env!("CARGO_PKG_VERSION"));

/// A request.
pub(crate) struct Request<'a> {
    pub(crate) method: types::Method,
    pub(crate) address: &'a Address,
    pub(crate) headers: &'a [(String, String)],
    pub(crate) body: &'a [u8],
    /// The most bytes of the response's body to read.
    pub(crate) limit: usize,
}

/// A response with the beginning of its body.
pub(crate) struct Response {
    pub(crate) status: u16,
    /// The headers, with lower-case names, in the server's order.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) end: End,
}

/// Whether a body was read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Reached,
    /// The body is longer than the limit.
    Beyond,
}

impl Response {
    /// Returns the first header of this lower-case name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let named = self.headers.iter().find(|(header, _)| header == name);
        named.map(|(_, value)| value.as_str())
    }
}

impl Request<'_> {
    /// Sends the request and reads the response.
    pub(crate) fn send(&self, ctx: &Context) -> Result<Response> {
        let failed = |code: ErrorCode| self.failed(&code);
        let (request, body) = self.prepare()?;
        let answer = handle(request, None).map_err(failed)?;
        let written = write(&body, self.body);
        // A server may answer before it has read the body; the answer then says more.
        if written.is_ok() {
            OutgoingBody::finish(body, None).map_err(failed)?;
        }
        answer.subscribe().block();
        let response = answer.get().and_then(Result::ok);
        let response = response.ok_or_else(|| self.internal("no answer"))?.map_err(failed)?;
        ctx.checkpoint()?;
        self.read(&response, ctx)
    }

    fn prepare(&self) -> Result<(OutgoingRequest, OutgoingBody)> {
        let (scheme, authority, path) = self.address.parts();
        let scheme = match scheme {
            Scheme::Http => types::Scheme::Http,
            Scheme::Https => types::Scheme::Https,
        };
        let request = OutgoingRequest::new(self.fields()?);
        let refused = |part: &str| {
            Error::invalid_input("url", format!("the host accepts no such {part} of a request"))
        };
        request.set_method(&self.method).map_err(|()| refused("method"))?;
        request.set_scheme(Some(&scheme)).map_err(|()| refused("scheme"))?;
        request.set_authority(Some(authority)).map_err(|()| refused("host"))?;
        request.set_path_with_query(Some(&path)).map_err(|()| refused("path"))?;
        let body = request.body().map_err(|()| self.internal("no body"))?;
        Ok((request, body))
    }

    fn fields(&self) -> Result<Fields> {
        let fields = Fields::new();
        let mut own = vec![];
        if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("user-agent")) {
            own.push(("user-agent".to_owned(), USER_AGENT.to_owned()));
        }
        // A server that is not told the length of a body gets it in pieces, which some refuse.
        if !self.body.is_empty() {
            own.push(("content-length".to_owned(), self.body.len().to_string()));
        }
        for (name, value) in self.headers.iter().chain(&own) {
            fields.append(name, value.as_bytes()).map_err(|error| {
                let reason = match error {
                    types::HeaderError::Forbidden => "only the host sets it",
                    _ => "its name or its value has a character that no header has",
                };
                Error::invalid_input("headers", format!("the header {name:?} is refused: {reason}"))
            })?;
        }
        Ok(fields)
    }

    fn read(&self, response: &IncomingResponse, ctx: &Context) -> Result<Response> {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let headers = response.headers().entries();
        let headers = headers.into_iter().map(|(name, value)| (name, text(value))).collect();
        let incoming = response.consume().map_err(|()| self.internal("no body"))?;
        let (body, end) = self.body(&incoming, ctx)?;
        Ok(Response { status: response.status(), headers, body, end })
    }

    fn body(&self, incoming: &IncomingBody, ctx: &Context) -> Result<(Vec<u8>, End)> {
        let stream = incoming.stream().map_err(|()| self.internal("no stream"))?;
        let mut body = Vec::new();
        loop {
            ctx.checkpoint()?;
            match stream.blocking_read(READ) {
                Ok(piece) => body.extend(piece),
                Err(StreamError::Closed) => return Ok((body, End::Reached)),
                Err(StreamError::LastOperationFailed(error)) => {
                    let reason = types::http_error_code(&error);
                    return Err(match reason {
                        Some(code) => self.failed(&code),
                        None => Error::failed(format!(
                            "the response of {} broke off: {}",
                            self.address.as_str(),
                            error.to_debug_string()
                        )),
                    });
                }
            }
            if body.len() > self.limit {
                body.truncate(self.limit);
                return Ok((body, End::Beyond));
            }
        }
    }

    /// Returns the error of a request. The host adds which grant would allow a denied one.
    fn failed(&self, code: &ErrorCode) -> Error {
        let url = self.address.as_str();
        match code {
            ErrorCode::HttpRequestDenied => {
                Error::permission_denied(format!("the host does not send this request to {url}"))
            }
            ErrorCode::DnsError(_) => Error::failed(format!("the name in {url} is not known")),
            ErrorCode::ConnectionRefused => {
                Error::failed(format!("the server of {url} refuses connections"))
            }
            ErrorCode::ConnectionTimeout | ErrorCode::ConnectionReadTimeout => {
                Error::failed(format!("the server of {url} does not answer in time"))
            }
            code => Error::failed(format!("the request to {url} failed: {code:?}")),
        }
    }

    fn internal(&self, reason: &str) -> Error {
        let url = self.address.as_str();
        Error::failed(format!("internal error: the request to {url} has {reason}"))
    }
}

fn write(body: &OutgoingBody, bytes: &[u8]) -> Result<(), StreamError> {
    let Ok(stream) = body.write() else { return Err(StreamError::Closed) };
    bytes.chunks(PIECE).try_for_each(|piece| stream.blocking_write_and_flush(piece))
}
