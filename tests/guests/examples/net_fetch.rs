//! A guest that sends requests through `wasi:http`, and searches its own memory for what it must
//! not have.

use palisade_guest::{Error, Json, Result, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{
    Fields, IncomingBody, IncomingResponse, Method, OutgoingBody, OutgoingRequest, Scheme,
};
use wasip2::io::streams::StreamError;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The method.
    #[serde(default = "get")]
    method: String,
    /// The scheme, `http` or `https`.
    #[serde(default = "http")]
    scheme: String,
    /// The host and the port.
    authority: String,
    /// The path and the query.
    #[serde(default)]
    path: String,
    /// Headers, each as `name: value`.
    #[serde(default)]
    headers: Vec<String>,
    /// The body.
    #[serde(default)]
    body: String,
    /// Bytes to search the memory for afterwards, each plus one, so that the search does not find
    /// itself.
    #[serde(default)]
    search: Vec<u8>,
}

fn get() -> String {
    "GET".to_owned()
}

fn http() -> String {
    "http".to_owned()
}

#[derive(Serialize, JsonSchema)]
struct Page {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
    /// How often the memory has the bytes that were searched for.
    found: usize,
}

/// Sends a request in class none.
#[tool(side_effects = "none")]
fn send_none(args: Args) -> Result<Json<Page>> {
    send(&args)
}

/// Sends a request in class read.
#[tool(side_effects = "read")]
fn send_read(args: Args) -> Result<Json<Page>> {
    send(&args)
}

/// Sends a request in class network.
#[tool(side_effects = "network")]
fn send_network(args: Args) -> Result<Json<Page>> {
    send(&args)
}

/// Returns an environment variable.
#[tool(side_effects = "none")]
fn variable(args: Args) -> String {
    std::env::var(args.authority).unwrap_or_else(|_| "unset".to_owned())
}

#[derive(Deserialize, JsonSchema)]
struct Parts {
    /// The number of requests that are kept without being sent.
    requests: usize,
    /// The length of each part of a request.
    length: usize,
    /// The length of its header.
    header: usize,
}

/// The number of requests whose part was accepted.
#[derive(Default, Serialize, JsonSchema)]
struct Kept {
    method: usize,
    scheme: usize,
    authority: usize,
    path: usize,
    /// The bytes of all bodies.
    body: u64,
}

/// Makes requests with long parts, keeps them for a moment, and sends none.
#[tool(side_effects = "none")]
fn keep(args: Parts) -> Result<Json<Kept>> {
    let part = "a".repeat(args.length);
    let mut kept = Kept::default();
    let mut requests = Vec::new();
    for _ in 0..args.requests {
        let headers = Fields::new();
        let header = headers.append("x", "a".repeat(args.header).as_bytes());
        header.map_err(|error| Error::failed(format!("{error:?}")))?;
        let request = OutgoingRequest::new(headers);
        kept.method += usize::from(request.set_method(&Method::Other(part.clone())).is_ok());
        kept.scheme += usize::from(request.set_scheme(Some(&Scheme::Other(part.clone()))).is_ok());
        kept.authority += usize::from(request.set_authority(Some(&part)).is_ok());
        kept.path += usize::from(request.set_path_with_query(Some(&format!("/{part}"))).is_ok());
        kept.body += fill(&request, part.as_bytes())?;
        requests.push(request);
    }
    Ok(Json(kept))
}

/// Writes a text to a body as often as the host takes it, and returns the bytes.
fn fill(request: &OutgoingRequest, text: &[u8]) -> Result<u64> {
    let body = request.body().map_err(|()| Error::failed("the body is refused"))?;
    let stream = body.write().map_err(|()| Error::failed("the body is refused"))?;
    let mut written = 0;
    while let Ok(room) = stream.check_write() {
        let piece = &text[..text.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
        if piece.is_empty() || stream.write(piece).is_err() {
            break;
        }
        written += piece.len() as u64;
    }
    Ok(written)
}

fn send(args: &Args) -> Result<Json<Page>> {
    let response = exchange(args)?;
    let status = response.status();
    let headers = response.headers().entries();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let headers = headers.into_iter().map(|(name, value)| (name, text(value))).collect();
    let body = response.consume().map_err(|()| Error::failed("the body was consumed"))?;
    let body = text(read(&body)?);
    Ok(Json(Page { status, headers, body, found: occurrences(&args.search) }))
}

fn exchange(args: &Args) -> Result<IncomingResponse> {
    let refused = |what: &str| Error::failed(format!("{what} is refused"));
    let headers = Fields::new();
    for header in &args.headers {
        let (name, value) = header.split_once(": ").ok_or_else(|| refused("a header"))?;
        headers
            .append(name, value.as_bytes())
            .map_err(|error| Error::failed(format!("{error:?}")))?;
    }
    let request = OutgoingRequest::new(headers);
    let method = match args.method.as_str() {
        "GET" => Method::Get,
        "POST" => Method::Post,
        other => Method::Other(other.to_owned()),
    };
    request.set_method(&method).map_err(|()| refused("the method"))?;
    let scheme = if args.scheme == "https" { Scheme::Https } else { Scheme::Http };
    request.set_scheme(Some(&scheme)).map_err(|()| refused("the scheme"))?;
    request.set_authority(Some(&args.authority)).map_err(|()| refused("the authority"))?;
    request.set_path_with_query(Some(&args.path)).map_err(|()| refused("the path"))?;
    let body = request.body().map_err(|()| refused("the body"))?;
    let failed = |error: wasip2::http::types::ErrorCode| Error::failed(format!("{error:?}"));
    let answer = handle(request, None).map_err(failed)?;
    let stream = body.write().map_err(|()| refused("the body"))?;
    for piece in args.body.as_bytes().chunks(4096) {
        let written = stream.blocking_write_and_flush(piece);
        written.map_err(|error| Error::failed(format!("{error:?}")))?;
    }
    drop(stream);
    OutgoingBody::finish(body, None).map_err(failed)?;
    answer.subscribe().block();
    let answer = answer.get().ok_or_else(|| refused("the answer"))?;
    answer.map_err(|()| refused("the answer"))?.map_err(failed)
}

fn read(body: &IncomingBody) -> Result<Vec<u8>> {
    let stream = body.stream().map_err(|()| Error::failed("the body was read"))?;
    let mut bytes = Vec::new();
    loop {
        match stream.blocking_read(1 << 16) {
            Ok(piece) => bytes.extend(piece),
            Err(StreamError::Closed) => return Ok(bytes),
            Err(StreamError::LastOperationFailed(error)) => {
                return Err(Error::failed(error.to_debug_string()));
            }
        }
    }
}

/// Returns how often the memory has these bytes, each minus one.
fn occurrences(search: &[u8]) -> usize {
    let Some(first) = search.first() else { return 0 };
    // The page at 0 is memory like any other here, but no reference may lead to it.
    let (start, end) = (1, core::arch::wasm32::memory_size::<0>() << 16);
    // Nothing writes to the memory meanwhile: a guest has one thread.
    #[allow(unsafe_code, reason = "the whole memory is no object of the language")]
    let memory = unsafe { core::slice::from_raw_parts(start as *const u8, end - start) };
    let is_here = |at: usize| {
        memory.get(at..at + search.len()).is_some_and(|bytes| {
            bytes.iter().zip(search).all(|(byte, searched)| byte.wrapping_add(1) == *searched)
        })
    };
    (0..memory.len()).filter(|at| memory[*at].wrapping_add(1) == *first && is_here(*at)).count()
}

palisade_guest::export!(send_none, send_read, send_network, variable, keep);
