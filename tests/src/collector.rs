//! A telemetry collector that either answers and records requests, or leaves them without an
//! answer.

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// An upper bound for the time until a request arrives, also on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A collector that listens on its own port.
pub struct Collector {
    address: String,
    requests: Receiver<Request>,
}

/// A received request.
#[derive(Debug)]
pub struct Request {
    /// The path of the request line.
    pub path: String,
    /// The request line and the header lines, in lower case.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// Parses the body as JSON.
    ///
    /// # Panics
    ///
    /// If the body is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }
}

/// The collector's treatment of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Every request is answered with status 200.
    Takes,
    /// No request is answered, and every connection stays open.
    Hangs,
}

impl Collector {
    /// Starts to listen.
    ///
    /// # Panics
    ///
    /// If no port can be bound.
    #[must_use]
    pub fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let (send, requests) = channel();
        std::thread::spawn(move || serve(&listener, manner, &send));
        Self { address, requests }
    }

    /// Returns the URL of the collector.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Waits for the next request.
    ///
    /// # Panics
    ///
    /// If no request arrives in time.
    #[track_caller]
    #[must_use]
    pub fn next(&self) -> Request {
        self.requests.recv_timeout(PATIENCE).expect("something is sent")
    }

    /// Returns the received requests that were not taken by [`next`](Self::next).
    #[must_use]
    pub fn rest(&self) -> Vec<Request> {
        self.requests.try_iter().collect()
    }
}

/// Serves one connection after the other, so that a request is recorded before the next one is
/// read.
fn serve(listener: &TcpListener, manner: Manner, send: &Sender<Request>) {
    let mut open = Vec::new();
    for mut stream in listener.incoming().map_while(Result::ok) {
        let Some(request) = read(&stream) else { continue };
        if send.send(request).is_err() {
            return;
        }
        match manner {
            Manner::Takes => {
                drop(stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"))
            }
            Manner::Hangs => open.push(stream),
        }
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        (reader.read_line(&mut head).ok()? > 0).then_some(())?;
    }
    let path = head.split(' ').nth(1)?.to_owned();
    let head = head.to_lowercase();
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length:"))?.trim().parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { path, head, body })
}
