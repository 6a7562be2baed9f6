//! A stream of server-sent events, read from its raw bytes.

use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// An upper bound for the time until an event arrives, also on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEvent {
    /// The place in the journal. Empty if the event has none.
    pub id: String,
    /// The name.
    pub name: String,
    /// The data, as it came.
    pub data: String,
}

/// A stream of events. HTTP/1.0, so that the body has no frames of its own.
pub struct EventStream {
    socket: TcpStream,
    /// The bytes that belong to no event yet.
    rest: Vec<u8>,
    /// The last `id`, also one without an event.
    last: String,
}

impl StreamEvent {
    /// Returns the data as JSON.
    ///
    /// # Panics
    ///
    /// If the data is no JSON.
    #[track_caller]
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {}", self.data))
    }
}

impl EventStream {
    /// Opens a stream, and reads the head of the response.
    ///
    /// # Panics
    ///
    /// If the server does not stream.
    #[track_caller]
    #[must_use]
    pub fn open(address: &str, path: &str, headers: &[(String, String)]) -> Self {
        let mut socket = TcpStream::connect(address).expect("the server listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time can be set");
        let more: String =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!(
            "GET {path} HTTP/1.0\r\nHost: {address}\r\nAccept: text/event-stream\r\n{more}\r\n"
        );
        socket.write_all(head.as_bytes()).expect("the server reads");
        let mut stream = Self { socket, rest: Vec::new(), last: String::new() };
        let head = loop {
            if let Some(head) = stream.take_until(b"\r\n\r\n") {
                break head;
            }
            assert!(stream.read(4096) > 0, "no stream: {}", String::from_utf8_lossy(&stream.rest));
        };
        assert!(head.contains(" 200 ") && head.contains("text/event-stream"), "{head}");
        stream
    }

    /// Returns the next event, or `None` at the end.
    ///
    /// # Panics
    ///
    /// If the stream goes on, and no event arrives in time.
    #[track_caller]
    pub fn next_event(&mut self) -> Option<StreamEvent> {
        self.event_before(Instant::now() + PATIENCE)
    }

    #[track_caller]
    fn event_before(&mut self, end: Instant) -> Option<StreamEvent> {
        loop {
            if let Some(event) = self.take_event() {
                return Some(event);
            }
            // Heartbeats keep the stream open without an event.
            assert!(Instant::now() < end, "the event did not arrive within {PATIENCE:?}");
            if self.read(4096) == 0 {
                return None;
            }
        }
    }

    /// Returns the next event that is wanted.
    ///
    /// # Panics
    ///
    /// If the stream ends before, or the event does not arrive in time.
    #[track_caller]
    pub fn find(&mut self, is_wanted: impl Fn(&StreamEvent) -> bool) -> StreamEvent {
        let start = Instant::now();
        loop {
            let event = self.event_before(start + PATIENCE).expect("the stream has the event");
            if is_wanted(&event) {
                return event;
            }
        }
    }

    /// Returns the data of the next event of this name and call.
    #[track_caller]
    pub fn of_call(&mut self, name: &str, call: &str) -> Value {
        let is_its = |event: &StreamEvent| event.json()["tool_use_id"] == call;
        self.find(|event| event.name == name && is_its(event)).json()
    }

    /// Returns the next event that is complete in what was read.
    pub fn take_event(&mut self) -> Option<StreamEvent> {
        loop {
            let block = self.take_until(b"\n\n")?;
            let field = |name: &str| {
                let mut values = block.lines().filter_map(|line| line.strip_prefix(name));
                values.next().map(|value| value.trim_start().to_owned())
            };
            if let Some(id) = field("id:") {
                self.last = id;
            }
            if let Some(data) = field("data:") {
                let name = field("event:").unwrap_or_default();
                return Some(StreamEvent { id: field("id:").unwrap_or_default(), name, data });
            }
        }
    }

    /// Reads at most this many bytes, and returns their number. 0 at the end.
    pub fn read(&mut self, most: usize) -> usize {
        let mut bytes = vec![0; most];
        let count = self.socket.read(&mut bytes).unwrap_or(0);
        self.rest.extend(bytes.get(..count).unwrap_or_default());
        count
    }

    /// Returns the place to resume after.
    #[must_use]
    pub fn last(&self) -> &str {
        &self.last
    }

    fn take_until(&mut self, end: &[u8]) -> Option<String> {
        let at = self.rest.windows(end.len()).position(|part| part == end)?;
        let rest = self.rest.split_off(at + end.len());
        let taken = std::mem::replace(&mut self.rest, rest);
        Some(String::from_utf8(taken).expect("the stream is UTF-8"))
    }
}
