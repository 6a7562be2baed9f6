//! A program that serves MCP over HTTP, and raw requests to it: what is sent is what a test says, and nothing else.

use crate::program::{Program, Ran, finish};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Child;
use std::thread::JoinHandle;
use std::time::Duration;

/// What no answer takes, however slow the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that serves.
pub struct Endpoint {
    /// There until its end is waited for.
    child: Option<Child>,
    /// All that it says after its address, at its end.
    said: Option<JoinHandle<String>>,
    /// Where: an address with its port.
    pub address: String,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The head, in small letters.
    pub head: String,
    /// The body, whole.
    pub body: String,
}

impl Endpoint {
    /// Starts the program with these words after `serve --http 127.0.0.1:0 --token none`.
    ///
    /// # Panics
    ///
    /// Where it does not say where it serves.
    #[must_use]
    pub fn start(program: Program<'_>, words: &[&str]) -> Self {
        Self::guarded(program, &[&["--token", "none"], words].concat())
    }

    /// The same, with a token: the one that these words name, or else one that the program makes.
    ///
    /// # Panics
    ///
    /// Where it does not say where it serves.
    #[must_use]
    pub fn guarded(program: Program<'_>, words: &[&str]) -> Self {
        Self::at("127.0.0.1:0", program, words)
    }

    /// The same at an address of this machine.
    ///
    /// # Panics
    ///
    /// Where it does not serve.
    #[must_use]
    pub fn at(address: &str, program: Program<'_>, words: &[&str]) -> Self {
        let mut child = program.args(["serve", "--http", address]).args(words.to_vec()).open();
        let mut said = BufReader::new(child.stderr.take().expect("its standard error is a pipe"));
        let mut line = String::new();
        said.read_line(&mut line).expect("it says where it serves");
        // What else it says is read, so that it never waits for a reader.
        let said = std::thread::spawn(move || std::io::read_to_string(&mut said).expect("it says UTF-8"));
        let address = line.trim().strip_prefix("serving MCP on http://").and_then(|rest| rest.strip_suffix("/mcp"));
        let address = address.unwrap_or_else(|| panic!("no address: {line}")).to_owned();
        Self { child: Some(child), said: Some(said), address }
    }

    /// Sends a request, and does not read what comes back.
    ///
    /// # Panics
    ///
    /// Where it cannot be sent.
    #[must_use]
    pub fn begin(&self, method: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut socket = TcpStream::connect(&self.address).expect("somebody listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time can be set");
        let mut head = format!("{method} /mcp HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        let is_named = |name: &str| headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let usual = [
            ("Host", self.address.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        for (name, value) in usual.iter().filter(|(name, _)| !is_named(name)).chain(headers) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        // One that refuses early may close before it has read all.
        let _ = socket.write_all(format!("{head}\r\n{body}").as_bytes());
        socket
    }

    /// Sends a request and reads the whole answer.
    #[must_use]
    pub fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        answer(self.begin(method, headers, body))
    }

    /// Sends a message.
    #[must_use]
    pub fn post(&self, headers: &[(&str, &str)], message: &Value) -> Answer {
        self.send("POST", headers, &message.to_string())
    }

    /// The program.
    ///
    /// # Panics
    ///
    /// Never: it is there until [`end`](Self::end) takes it.
    #[must_use]
    pub fn child(&self) -> &Child {
        self.child.as_ref().expect("it is there until its end")
    }

    /// Waits for its end. What it said first is not in it.
    ///
    /// # Panics
    ///
    /// Where it does not end.
    #[must_use]
    pub fn end(mut self) -> Ran {
        let mut ran = finish(self.child.take().expect("it is there until its end"));
        ran.stderr = self.said.take().and_then(|said| said.join().ok()).unwrap_or_default();
        ran
    }
}

impl Drop for Endpoint {
    /// Nobody else ends it.
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Reads an answer to its end.
///
/// # Panics
///
/// Where it is none.
#[must_use]
pub fn answer(mut socket: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    // A connection that is reset has answered before.
    let _ = socket.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no status: {head}"));
    Answer { status, head: head.to_lowercase(), body: body.to_owned() }
}

impl Answer {
    /// A header's value.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The last message in it: the body, or the data of its last event.
    ///
    /// # Panics
    ///
    /// Where there is none.
    #[track_caller]
    #[must_use]
    pub fn message(&self) -> Value {
        let lines = self.body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let mut messages =
            lines.filter(|line| line.starts_with('{')).filter_map(|line| serde_json::from_str(line).ok());
        messages.next_back().unwrap_or_else(|| panic!("no message: {self:?}"))
    }
}
