//! A program that serves MCP over HTTP, and raw requests to it, in which a test controls every
//! header.

use crate::program::{Program, Ran, finish};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Child;
use std::thread::JoinHandle;
use std::time::Duration;

/// An upper bound for the time until a response arrives, also on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server.
pub struct Endpoint {
    /// The process, until `end` takes it.
    child: Option<Child>,
    /// The reader of standard error after its first line.
    said: Option<JoinHandle<String>>,
    /// The address of the server, with its port.
    pub address: String,
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The status line and the headers, in lower case.
    pub head: String,
    /// The whole body.
    pub body: String,
}

impl Endpoint {
    /// Starts the program with these arguments after `serve --http 127.0.0.1:0 --token none`.
    ///
    /// # Panics
    ///
    /// If the program does not report its address.
    #[must_use]
    pub fn start(program: Program<'_>, words: &[&str]) -> Self {
        Self::guarded(program, &[&["--token", "none"], words].concat())
    }

    /// Starts the program with a token: the one in these arguments, or a generated one.
    ///
    /// # Panics
    ///
    /// If the program does not report its address.
    #[must_use]
    pub fn guarded(program: Program<'_>, words: &[&str]) -> Self {
        Self::at("127.0.0.1:0", program, words)
    }

    /// Starts the program with a token at a local address.
    ///
    /// # Panics
    ///
    /// If the program does not report its address.
    #[must_use]
    pub fn at(address: &str, program: Program<'_>, words: &[&str]) -> Self {
        let mut child = program.args(["serve", "--http", address]).args(words.to_vec()).open();
        let mut said = BufReader::new(child.stderr.take().expect("its standard error is a pipe"));
        let (mut before, mut line) = (String::new(), String::new());
        // Warnings come before the address.
        let address = loop {
            line.clear();
            let length = said.read_line(&mut line).expect("it says UTF-8");
            assert!(length > 0, "no address: {before}");
            let address = line
                .trim()
                .strip_prefix("serving MCP on http://")
                .and_then(|rest| rest.strip_suffix("/mcp"));
            match address {
                Some(address) => break address.to_owned(),
                None => before.push_str(&line),
            }
        };
        // Drain standard error, so that the program never blocks on a full pipe.
        let said = std::thread::spawn(move || {
            let rest = std::io::read_to_string(&mut said).expect("it says UTF-8");
            before + &rest
        });
        Self { child: Some(child), said: Some(said), address }
    }

    /// Sends a request to `/mcp` without reading its response.
    ///
    /// # Panics
    ///
    /// If the server does not accept a connection.
    #[must_use]
    pub fn begin(&self, method: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        begin(&self.address, "/mcp", method, headers, body)
    }

    /// Sends a request and reads the whole response.
    #[must_use]
    pub fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        answer(self.begin(method, headers, body))
    }

    /// Sends a message with POST and reads the whole response.
    #[must_use]
    pub fn post(&self, headers: &[(&str, &str)], message: &Value) -> Answer {
        self.send("POST", headers, &message.to_string())
    }

    /// Returns the process.
    ///
    /// # Panics
    ///
    /// Never: the process is present until [`end`](Self::end) takes it.
    #[must_use]
    pub fn child(&self) -> &Child {
        self.child.as_ref().expect("it is there until its end")
    }

    /// Waits for the program to exit. The result lacks the first line of standard error.
    ///
    /// # Panics
    ///
    /// If the program does not exit.
    #[must_use]
    pub fn end(mut self) -> Ran {
        let mut ran = finish(self.child.take().expect("it is there until its end"));
        ran.stderr = self.said.take().and_then(|said| said.join().ok()).unwrap_or_default();
        ran
    }
}

impl Drop for Endpoint {
    /// Kills the server, which would otherwise outlive a failed test.
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Sends a request to a path of the server at this address, without reading its response.
///
/// # Panics
///
/// If the server does not accept a connection.
#[must_use]
pub fn begin(
    address: &str,
    path: &str,
    method: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> TcpStream {
    try_begin(address, path, method, headers, body).expect("the server listens")
}

/// Sends a request as [`begin`] does, to a server that may be gone.
pub(crate) fn try_begin(
    address: &str,
    path: &str,
    method: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> std::io::Result<TcpStream> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(PATIENCE)).expect("a time can be set");
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n",
        body.len()
    );
    let is_named = |name: &str| headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    let usual = [
        ("Host", address),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    for (name, value) in usual.iter().filter(|(name, _)| !is_named(name)).chain(headers) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    // A server that refuses a request early may close the connection before it has read
    // everything.
    let _ = socket.write_all(format!("{head}\r\n{body}").as_bytes());
    Ok(socket)
}

/// Reads a whole response.
///
/// # Panics
///
/// If the bytes are not an HTTP response.
#[must_use]
pub fn answer(socket: TcpStream) -> Answer {
    try_answer(socket).unwrap_or_else(|text| panic!("no answer: {text:?}"))
}

/// Reads a whole response.
///
/// # Errors
///
/// The received text, if it is not an HTTP response.
pub fn try_answer(mut socket: TcpStream) -> Result<Answer, String> {
    let mut bytes = Vec::new();
    // A reset after the response is no error.
    let _ = socket.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return Err(text) };
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let Some(status) = status else { return Err(text) };
    Ok(Answer { status, head: head.to_lowercase(), body: body.to_owned() })
}

impl Answer {
    /// Returns the value of a header, whose name is given in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Returns the last JSON message of the response: the body, or the data of the last event.
    ///
    /// # Panics
    ///
    /// If there is no message.
    #[track_caller]
    #[must_use]
    pub fn message(&self) -> Value {
        let lines = self.body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let mut messages = lines
            .filter(|line| line.starts_with('{'))
            .filter_map(|line| serde_json::from_str(line).ok());
        messages.next_back().unwrap_or_else(|| panic!("no message: {self:?}"))
    }
}
