//! A client of a running server's HTTP API, with both of its tokens.

use crate::event_stream::EventStream;
use crate::mcp_http::{Answer, Endpoint, answer, begin, try_answer, try_begin};
use crate::program::Program;
use crate::world::World;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// An upper bound for the time until something becomes true, also on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server with its API.
pub struct Api {
    /// The server.
    pub endpoint: Endpoint,
    /// The sender of requests with the operator's token.
    pub operator: Sender,
    /// The sender of requests with the clients' token.
    pub client: Sender,
}

/// Sends requests to a server, with the same headers.
#[derive(Debug, Clone)]
pub struct Sender {
    address: String,
    headers: Vec<(String, String)>,
}

impl Api {
    /// Starts the program for a world, and waits until it is ready.
    #[must_use]
    pub fn start(world: &World, words: &[&str]) -> Self {
        Self::of(Program::new(world), &world.home(), words)
    }

    /// Starts a program whose home is at this path.
    #[must_use]
    pub fn of(program: Program<'_>, home: &Path, words: &[&str]) -> Self {
        Self::at("127.0.0.1:0", program, home, words)
    }

    /// Starts a program at this address, and waits until it is ready.
    ///
    /// # Panics
    ///
    /// If the server keeps no tokens, or is never ready.
    #[must_use]
    pub fn at(address: &str, program: Program<'_>, home: &Path, words: &[&str]) -> Self {
        let endpoint = Endpoint::at(address, program, words);
        let address = endpoint.address.clone();
        let token = |kind: &str| {
            let file = token_file(home, &address, kind);
            fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
        };
        let sender = |kind: &str| Sender::new(&address).bearer(token(kind).trim());
        let api = Self { operator: sender(".operator"), client: sender(""), endpoint };
        until("the server is ready", || api.client.get("/readyz").status == 200);
        api
    }

    /// Opens a session of a client with this id.
    ///
    /// # Panics
    ///
    /// If the server refuses it.
    #[track_caller]
    pub fn session(&self, id: &str) {
        let opened = self.client.post("/sessions", &json!({"id": id}));
        assert_eq!(opened.status, 201, "{opened:?}");
    }

    /// Sends a signal to the server.
    ///
    /// # Panics
    ///
    /// If it has ended.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.endpoint.child()), signal).expect("it can be signalled");
    }
}

/// Returns the file of a token that a server at this address keeps.
#[must_use]
pub fn token_file(home: &Path, address: &str, kind: &str) -> PathBuf {
    let name = format!("{}{kind}.token", address.replace(':', "-"));
    home.join(".local/state/palisade/tokens").join(name)
}

/// Waits until something is true.
///
/// # Panics
///
/// If it is not within a minute.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

impl Sender {
    /// Creates a sender without credentials.
    #[must_use]
    pub fn new(address: &str) -> Self {
        Self { address: address.to_owned(), headers: Vec::new() }
    }

    /// Adds a header to every request.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends a bearer token with every request.
    #[must_use]
    pub fn bearer(self, token: &str) -> Self {
        self.with("Authorization", &format!("Bearer {token}"))
    }

    /// Sends a request and reads the whole response.
    #[must_use]
    pub fn send(&self, method: &str, path: &str, body: &str) -> Answer {
        answer(self.begin(method, path, body))
    }

    /// Sends a request and returns its connection, from which nothing is read.
    #[must_use]
    pub fn begin(&self, method: &str, path: &str, body: &str) -> TcpStream {
        begin(&self.address, path, method, &self.headers(), body)
    }

    fn headers(&self) -> Vec<(&str, &str)> {
        self.headers.iter().map(|(name, value)| (&**name, &**value)).collect()
    }

    /// Posts a JSON document to a server that may be killed meanwhile. `None` without a response.
    #[must_use]
    pub fn try_post(&self, path: &str, body: &Value) -> Option<Answer> {
        let headers = self.headers();
        let socket = try_begin(&self.address, path, "POST", &headers, &body.to_string()).ok()?;
        try_answer(socket).ok()
    }

    /// Gets a resource.
    #[must_use]
    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "")
    }

    /// Posts a JSON document.
    #[must_use]
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &body.to_string())
    }

    /// Makes a call in a session and returns its result.
    ///
    /// # Panics
    ///
    /// If the server refuses the request.
    #[track_caller]
    #[must_use]
    pub fn call(&self, session: &str, call: &Value) -> Value {
        let answer = self.post(&format!("/sessions/{session}/calls"), call);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.message()
    }

    /// Makes a call in a session on a thread of its own.
    #[must_use]
    pub fn begin_call(&self, session: &str, call: &Value) -> JoinHandle<Value> {
        let (sender, session, call) = (self.clone(), session.to_owned(), call.clone());
        std::thread::spawn(move || sender.call(&session, &call))
    }

    /// Answers a question, as the line of its event has it.
    #[must_use]
    pub fn decide(&self, question: &Value, decision: &str) -> Answer {
        let part = |key: &str| question[key].as_str().unwrap_or("-").to_owned();
        let (session, turn, id) = (part("session_id"), part("turn_id"), part("request_id"));
        let path = format!("/sessions/{session}/turns/{turn}/confirmations/{id}");
        self.post(&path, &json!({"decision": decision}))
    }

    /// Opens a stream of events at a path, such as `/events?after=0`.
    #[must_use]
    pub fn events(&self, path: &str) -> EventStream {
        EventStream::open(&self.address, path, &self.headers)
    }
}

/// Returns a call that writes a file.
#[must_use]
pub fn write(id: &str, path: &str) -> Value {
    let input = json!({"path": path, "content": "written\n"});
    json!({"tool": "write_file", "id": id, "turn_id": "t1", "input": input})
}
