//! An MCP client over standard input and output that works on raw lines and checks each message.

use crate::program::{Program, Ran, finish};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// An upper bound for the time until a message arrives, also on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The previous protocol revision, with a handshake.
pub const LEGACY: &str = "2025-11-25";
/// The current protocol revision, which is stateless: each request carries the client's
/// capabilities.
pub const MODERN: &str = "2026-07-28";

/// A client with its server process and all messages received so far.
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    next: u64,
    /// The received notifications, requests of the server and responses that no method has returned
    /// yet.
    pub pending: Vec<Value>,
}

impl Client {
    /// Starts the program with `serve`.
    ///
    /// # Panics
    ///
    /// If the program cannot be started.
    #[must_use]
    pub fn start(program: Program<'_>) -> Self {
        Self::start_with(program, &[])
    }

    /// Starts the program with `serve` and these options.
    ///
    /// # Panics
    ///
    /// If the program cannot be started.
    #[must_use]
    pub fn start_with(program: Program<'_>, options: &[&str]) -> Self {
        let mut child = program.args(["serve"]).args(options.iter().copied()).open();
        let input = child.stdin.take();
        let output = child.stdout.take().expect("its standard output is a pipe");
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, input, lines, next: 1, pending: Vec::new() }
    }

    /// Starts the program and performs the handshake of the previous revision.
    ///
    /// # Panics
    ///
    /// If the handshake fails.
    #[must_use]
    pub fn legacy(program: Program<'_>, capabilities: &Value) -> Self {
        Self::start(program).shake_hands(capabilities)
    }

    /// Performs the handshake of the previous revision with a running program.
    ///
    /// # Panics
    ///
    /// If the handshake fails.
    #[must_use]
    pub fn shake_hands(mut self, capabilities: &Value) -> Self {
        let answer = self.initialize(LEGACY, capabilities);
        assert_eq!(answer["result"]["protocolVersion"], LEGACY, "{answer}");
        self
    }

    /// Sends the handshake's messages, and returns the server's response.
    pub fn initialize(&mut self, version: &str, capabilities: &Value) -> Value {
        let info = json!({"name": "suite", "version": "1"});
        let params =
            json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": info});
        let answer = self.request("initialize", &params);
        self.notify("notifications/initialized", &json!({}));
        answer
    }

    /// Writes raw bytes.
    ///
    /// # Panics
    ///
    /// If the program does not read the bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(bytes).expect("the program reads");
    }

    /// Writes one message.
    pub fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request without waiting for its response, and returns its id.
    pub fn begin(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends a request and waits for its response.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    /// Sends a request as [`request`](Self::request) does, in the current revision, with these
    /// client capabilities.
    #[track_caller]
    pub fn request_modern(&mut self, method: &str, params: Value, capabilities: &Value) -> Value {
        self.request(method, &modern(params, capabilities))
    }

    /// Waits for the response to a request. Other messages are kept in `pending`.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.receive();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.pending.push(message);
        }
    }

    /// Returns the next message of any kind.
    ///
    /// # Panics
    ///
    /// If no message arrives in time, or a line is not a message.
    #[track_caller]
    pub fn receive(&mut self) -> Value {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => message(&line),
            Err(RecvTimeoutError::Timeout) => panic!("no message arrived within {PATIENCE:?}"),
            Err(RecvTimeoutError::Disconnected) => panic!("the program has ended"),
        }
    }

    /// Returns the next message, or `None` if none arrives within `time`.
    #[track_caller]
    pub fn receive_within(&mut self, time: Duration) -> Option<Value> {
        self.lines.recv_timeout(time).ok().map(|line| message(&line))
    }

    /// Waits for a notification or request with this method, and returns it. Other messages are
    /// kept in `pending`.
    #[track_caller]
    pub fn receive_method(&mut self, method: &str) -> Value {
        if let Some(place) = self.pending.iter().position(|message| message["method"] == method) {
            return self.pending.remove(place);
        }
        loop {
            let message = self.receive();
            if message["method"] == method {
                return message;
            }
            self.pending.push(message);
        }
    }

    /// Returns the messages with this method in `pending`.
    #[must_use]
    pub fn received(&self, method: &str) -> Vec<&Value> {
        self.pending.iter().filter(|message| message["method"] == method).collect()
    }

    /// Returns the id of the server's process.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the server has loaded all plugins: on a busy machine one may still compile when
    /// the server answers.
    ///
    /// # Panics
    ///
    /// If a plugin still compiles after two minutes.
    #[track_caller]
    pub fn wait_for_tools(&mut self) {
        let start = Instant::now();
        while !self.request("tools/list", &json!({}))["result"]["_meta"]["dev.palisade/compiling"]
            .is_null()
        {
            assert!(
                start.elapsed() < Duration::from_secs(120),
                "a plugin did not finish compiling"
            );
        }
    }

    /// Returns a field of the server's `/proc` status, such as `VmRSS:`, in KiB.
    ///
    /// # Panics
    ///
    /// If the server has ended, or there is no such field.
    #[track_caller]
    #[must_use]
    pub fn memory_kib(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process()))
            .expect("the server runs");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(field))
            .expect("the status file has the field");
        line.trim().trim_end_matches(" kB").parse().expect("a number of KiB")
    }

    /// Closes the input, waits for the program to exit, and returns its result and every message
    /// that no method has returned: those in `pending`, and the remaining ones.
    #[track_caller]
    pub fn end(mut self) -> (Ran, Vec<Value>) {
        drop(self.input.take());
        let ran = finish(self.child);
        (
            ran,
            self.pending.into_iter().chain(self.lines.iter().map(|line| message(&line))).collect(),
        )
    }
}

/// Adds the metadata that each request of the current revision carries to `params`.
#[must_use]
pub fn modern(mut params: Value, capabilities: &Value) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": {"name": "suite", "version": "1"},
    });
    let known = params.get("_meta").cloned().unwrap_or_else(|| json!({}));
    let all =
        [known, meta].into_iter().filter_map(|part| part.as_object().cloned()).flatten().collect();
    params["_meta"] = Value::Object(all);
    params
}

/// Parses a line, which must be one JSON-RPC message.
#[track_caller]
fn message(line: &str) -> Value {
    let message: Value =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("no JSON ({error}): {line:?}"));
    assert_eq!(message["jsonrpc"], "2.0", "{line}");
    message
}
