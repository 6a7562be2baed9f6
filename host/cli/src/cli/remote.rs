//! A client of a running server's HTTP API, with the operator's token.

mod event_stream;

pub(super) use event_stream::{EventStream, ServerEvent};

use super::exit::Failure;
use super::token;
use serde_json::Value;
use std::io::Read as _;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use ureq::Agent;
use ureq::http::{Response, StatusCode, Uri};

/// The URL of a server that was started by `palisade serve --http` without an address.
pub(super) const DEFAULT_URL: &str = "http://127.0.0.1:8080";

/// The deadline for connecting, and for the head of a response.
const PATIENCE: Duration = Duration::from_secs(10);
/// The deadline for finding out whether a server listens.
const SHORT_PATIENCE: Duration = Duration::from_secs(1);
/// The deadline for finding out whether a server of a list listens.
const GLANCE: Duration = Duration::from_millis(200);
/// The most servers that a message lists, and the most that are looked for.
const MAX_LISTED: usize = 5;
const MAX_GLANCES: usize = 10;
/// The longest silence of an event stream. The server sends a comment every 15 s.
const SILENCE: Duration = Duration::from_secs(45);
/// The largest response besides an event stream, in bytes.
const LARGEST: u64 = 16 << 20;

/// An error in the exchange with a server.
#[derive(Debug, thiserror::Error)]
pub(super) enum RemoteError {
    /// The server cannot be reached, or closed the connection.
    #[error("{0}")]
    Unreachable(String),
    /// The server refused the request.
    #[error("{title}{}", detail.as_deref().map(|it| format!(": {it}")).unwrap_or_default())]
    Refused {
        /// The status code.
        status: u16,
        /// The title of the problem.
        title: String,
        /// Its details, if there are any.
        detail: Option<String>,
        /// The whole problem.
        problem: Value,
    },
}

/// A running server.
pub(super) struct Remote {
    agent: Agent,
    base: String,
    token: Mutex<String>,
    /// Where the token was found: the host, the port, and a file if one was named.
    source: (String, u16, Option<PathBuf>),
}

impl Remote {
    /// Finds a server at this URL of this machine, and its operator's token: in the file, in the
    /// variable, or in the file that a running server keeps for its user.
    pub(super) fn find(url: Option<&str>, token_file: Option<&Path>) -> Result<Self, Failure> {
        let base = url.unwrap_or(DEFAULT_URL).trim_end_matches('/').to_owned();
        let uri: Uri = base.parse().map_err(|_| not_a_url(&base))?;
        let host = uri.host().ok_or_else(|| not_a_url(&base))?;
        // The token must not travel unencrypted, and this client has no TLS.
        if uri.scheme_str() != Some("http") || !is_local(host) {
            return Err(Failure::usage(format!(
                "`{base}` is not a server of this machine: want http://127.0.0.1:PORT; a tunnel (`ssh -L`) reaches another machine's"
            )));
        }
        let port = uri.port_u16().unwrap_or(80);
        let token = token::of_operator(host, port, token_file)?;
        let Some(token) = token else {
            let line = match listens(host, port) {
                true => format!(
                    "a server listens at {base}, and keeps no operator's token here: if you run it with --operator-token-file, name that file with --token-file{}",
                    other_servers()
                ),
                false => format!(
                    "no server runs at {base}: `palisade serve --http` starts one; give the URL of one that runs elsewhere on this machine, such as http://127.0.0.1:PORT{}",
                    other_servers()
                ),
            };
            return Err(Failure::usage(line));
        };
        // `localhost` leads to two addresses, and another user may listen at the other one.
        let base = match host.eq_ignore_ascii_case("localhost") {
            true => format!("http://{}", token::address_of_operator(host, port)),
            false => base.clone(),
        };
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // A proxy of the environment must not see the token.
            .proxy(None)
            .max_redirects(0)
            .timeout_connect(Some(PATIENCE))
            .timeout_recv_response(Some(PATIENCE))
            .build();
        let source = (host.to_owned(), port, token_file.map(Path::to_owned));
        Ok(Self { agent: config.into(), base, token: Mutex::new(token), source })
    }

    /// Reads the token again, which a server that was restarted may have made anew. Returns true if
    /// it is another one.
    pub(super) fn has_new_token(&self) -> bool {
        let (host, port, file) = &self.source;
        let Ok(Some(read)) = token::of_operator(host, *port, file.as_deref()) else { return false };
        let mut token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = *token != read;
        *token = read;
        is_new
    }

    /// Returns the URL of the server.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Gets a JSON document.
    pub(super) fn get(&self, path: &str) -> Result<Value, RemoteError> {
        let request = self.agent.get(format!("{}{path}", self.base));
        let response = request.header("Authorization", self.bearer()).call();
        answer(response.map_err(|error| unreachable(&error))?)
    }

    /// Posts a JSON document.
    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value, RemoteError> {
        let request = self.agent.post(format!("{}{path}", self.base));
        let request = request.header("Authorization", self.bearer());
        let response =
            request.header("Content-Type", "application/json").send(body.to_string().as_bytes());
        answer(response.map_err(|error| unreachable(&error))?)
    }

    /// Opens the stream of all events after this one, or of those from now on.
    pub(super) fn events(&self, after: Option<&str>) -> Result<EventStream, RemoteError> {
        let path = format!("{}/events?after={}", self.base, after.unwrap_or("now"));
        let request = self.agent.get(path).config().timeout_per_read(Some(SILENCE)).build();
        let request = request.header("Accept", "text/event-stream");
        let response = request
            .header("Authorization", self.bearer())
            .call()
            .map_err(|error| unreachable(&error))?;
        if response.status() != StatusCode::OK {
            return Err(refusal(response));
        }
        Ok(EventStream::new(response.into_body().into_with_config().limit(u64::MAX).reader()))
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn unreachable(error: &ureq::Error) -> RemoteError {
    RemoteError::Unreachable(error.to_string())
}

fn answer(mut response: Response<ureq::Body>) -> Result<Value, RemoteError> {
    if !response.status().is_success() {
        return Err(refusal(response));
    }
    let mut text = String::new();
    let read = response.body_mut().as_reader().take(LARGEST).read_to_string(&mut text);
    read.map_err(|error| RemoteError::Unreachable(error.to_string()))?;
    if text.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(&text)
        .map_err(|error| RemoteError::Unreachable(format!("the answer is no JSON: {error}")))
}

fn refusal(mut response: Response<ureq::Body>) -> RemoteError {
    let status = response.status();
    let mut text = String::new();
    let _ = response.body_mut().as_reader().take(LARGEST).read_to_string(&mut text);
    let problem: Value = serde_json::from_str(&text).unwrap_or_default();
    let said = |key: &str| problem[key].as_str().map(str::to_owned);
    RemoteError::Refused {
        status: status.as_u16(),
        title: said("title").unwrap_or_else(|| status.to_string()),
        detail: said("detail"),
        problem,
    }
}

fn not_a_url(text: &str) -> Failure {
    Failure::usage(format!("`{text}` is no URL: want http://127.0.0.1:PORT"))
}

/// Returns true if a server accepts connections there.
fn listens(host: &str, port: u16) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let mut addresses = (host, port).to_socket_addrs().into_iter().flatten();
    addresses.any(|address| accepts(&address, SHORT_PATIENCE))
}

/// Returns true if a server accepts a connection within this time.
fn accepts(address: &SocketAddr, patience: Duration) -> bool {
    TcpStream::connect_timeout(address, patience).is_ok()
}

/// Names the servers of this machine that a person may mean, for the end of a message.
fn other_servers() -> String {
    let kept = token::operated().into_iter().take(MAX_GLANCES);
    let running = kept.filter(|address| accepts(address, GLANCE)).take(MAX_LISTED);
    let urls: Vec<String> = running.map(|address| format!("http://{address}")).collect();
    match urls.as_slice() {
        [] => String::new(),
        urls => format!("; servers of this machine that may run: {}", urls.join(", ")),
    }
}

/// Returns true if a host name is an address of this machine by itself.
fn is_local(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_servers_of_this_machine_get_the_token() {
        for local in ["127.0.0.1", "127.9.9.9", "[::1]", "LOCALHOST"] {
            assert!(is_local(local), "{local}");
        }
        for other in ["192.0.2.1", "tools.example", "[2001:db8::1]", "localhost.example", "0.0.0.0"]
        {
            assert!(!is_local(other), "{other}");
        }
        for url in ["https://127.0.0.1:1", "http://tools.example", "ftp://127.0.0.1", "nonsense"] {
            assert!(Remote::find(Some(url), None).is_err(), "{url}");
        }
    }
}
