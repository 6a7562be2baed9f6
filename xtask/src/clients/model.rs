//! A stand-in for the interface of a model: a local HTTP server with `POST /v1/chat/completions`
//! (also as a stream) and `POST /v1/responses`, which the agent frameworks use like OpenAI's, and
//! `POST /v1/messages` (also as a stream), which Claude Code uses like Anthropic's.
//!
//! The user's prompt is the script of the model (see [`script`]): the calls of each turn. After the
//! last turn the model answers with the tools and messages that it was sent, as JSON, so that a
//! client can check them. The stand-in has no state, so any number of agents can use it at once.

mod anthropic;
mod reply;
mod script;
mod strict;

use anyhow::{Context as _, bail, ensure};
use reply::{Reply, Wire};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

/// The timeout of a connection for its request, and for taking its response.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum size of the head of a request, in bytes.
const LONGEST_HEAD: usize = 64 << 10;
/// Maximum number of headers of a request.
const HEADERS: usize = 100;
/// Maximum size of the body of a request, in bytes: 50 tools and 50 results take some 100 KiB.
const LONGEST_BODY: usize = 16 << 20;

/// A running stand-in. It serves until the process ends.
#[derive(Debug)]
pub(super) struct Model {
    address: SocketAddr,
}

impl Model {
    /// Starts the stand-in on a free port of this machine.
    pub(super) fn start() -> anyhow::Result<Self> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("listening for the frameworks")?;
        let address = listener.local_addr().context("the port of the stand-in")?;
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || serve(stream));
            }
        });
        Ok(Self { address })
    }

    /// Gives a program this model in place of OpenAI's and Anthropic's, and turns off the reports
    /// that frameworks send to their makers.
    pub(super) fn settle(&self, command: &mut Command) {
        command
            .env("OPENAI_BASE_URL", format!("http://{}/v1", self.address))
            .env("OPENAI_API_KEY", "none")
            .env("ANTHROPIC_BASE_URL", format!("http://{}", self.address))
            .env("ANTHROPIC_API_KEY", "none")
            .env("NO_PROXY", "127.0.0.1")
            .env("no_proxy", "127.0.0.1")
            .env("DO_NOT_TRACK", "1")
            .env("MASTRA_TELEMETRY_DISABLED", "1")
            .env("MCP_USE_ANONYMIZED_TELEMETRY", "false");
    }
}

/// Answers one request and closes the connection. A client that goes away gets no answer.
fn serve(stream: TcpStream) {
    let answered = stream
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| stream.set_write_timeout(Some(PATIENCE)))
        .context("setting the timeouts")
        .and_then(|()| respond(stream));
    if let Err(error) = answered {
        println!("the stand-in for the model: {error:#}");
    }
}

fn respond(stream: TcpStream) -> anyhow::Result<()> {
    let mut stream = BufReader::new(stream);
    let Some(request) = Request::read(&mut stream)? else { return Ok(()) };
    let (status, kind, body) = answer(&request);
    let length = body.len();
    let head = [
        &format!("HTTP/1.1 {status}"),
        &format!("Content-Type: {kind}"),
        &format!("Content-Length: {length}"),
        "Connection: close",
        "\r\n",
    ]
    .join("\r\n");
    stream.get_mut().write_all(&[head.as_bytes(), body.as_bytes()].concat())?;
    Ok(())
}

/// Returns the status, the content type and the body of the response.
fn answer(request: &Request) -> (&'static str, &'static str, String) {
    const JSON: &str = "application/json";
    match replied(request) {
        Ok(Reply::Whole(body)) => ("200 OK", JSON, body.to_string()),
        Ok(Reply::Stream(body)) => ("200 OK", "text/event-stream", body),
        Err(error) => {
            let error = json!({
                "message": format!("{error:#}"),
                "type": "invalid_request_error",
                "param": null,
                "code": "invalid_request",
            });
            ("400 Bad Request", JSON, json!({ "error": error }).to_string())
        }
    }
}

fn replied(request: &Request) -> anyhow::Result<Reply> {
    let wire = match request.path.split('?').next().unwrap_or_default() {
        "/v1/chat/completions" => Wire::Chat,
        "/v1/responses" => Wire::Responses,
        "/v1/messages" => Wire::Messages,
        other => {
            bail!("{other} is none of /v1/chat/completions, /v1/responses and /v1/messages")
        }
    };
    let body: Value = serde_json::from_slice(&request.body).context("the body is no JSON")?;
    strict::check(wire, &body)?;
    reply::make(wire, &body)
}

struct Request {
    path: String,
    body: Vec<u8>,
}

impl Request {
    /// Reads a request. Returns `None` if the connection closes before one begins.
    fn read(stream: &mut BufReader<TcpStream>) -> anyhow::Result<Option<Self>> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let read = stream.by_ref().take(LONGEST_HEAD as u64).read_until(b'\n', &mut head)?;
            if read == 0 && head.is_empty() {
                return Ok(None);
            }
            ensure!(read > 0 && head.len() < LONGEST_HEAD, "a request without a complete head");
        }
        let (path, length) = parse(&head)?;
        let mut body = vec![0; length];
        stream.read_exact(&mut body).context("reading the body of a request")?;
        Ok(Some(Self { path, body }))
    }
}

/// Returns the path of a request and the length of its body, in bytes.
fn parse(head: &[u8]) -> anyhow::Result<(String, usize)> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    ensure!(request.parse(head)?.is_complete(), "an incomplete head");
    let path = request.path.context("a request without a path")?.to_owned();
    let value = request
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("content-length"))
        .map_or(Ok("0"), |header| std::str::from_utf8(header.value))?;
    let length = value.parse().context("the length of the body")?;
    ensure!(length <= LONGEST_BODY, "a body of {length} bytes; {LONGEST_BODY} are accepted");
    Ok((path, length))
}

#[cfg(test)]
mod tests;
