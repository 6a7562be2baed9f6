//! A collector of telemetry that takes what comes and keeps it, or takes nothing and keeps who asks waiting.

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// What no request takes, however slow the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// A collector on a port of its own.
pub struct Collector {
    address: String,
    requests: Receiver<Request>,
}

/// What somebody has sent.
#[derive(Debug)]
pub struct Request {
    /// Its path.
    pub path: String,
    /// The lines of its head, in small letters.
    pub head: String,
    /// Its body.
    pub body: Vec<u8>,
}

impl Request {
    /// The body as JSON.
    ///
    /// # Panics
    ///
    /// Where it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }
}

/// What becomes of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Each is answered with 200.
    Takes,
    /// None is answered, and every connection stays open.
    Hangs,
}

impl Collector {
    /// Begins to listen.
    ///
    /// # Panics
    ///
    /// Where no port can be had.
    #[must_use]
    pub fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let (send, requests) = channel();
        std::thread::spawn(move || serve(&listener, manner, &send));
        Self { address, requests }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Waits for the next request.
    ///
    /// # Panics
    ///
    /// Where none comes.
    #[track_caller]
    #[must_use]
    pub fn next(&self) -> Request {
        self.requests.recv_timeout(PATIENCE).expect("something is sent")
    }

    /// What has come that nobody has waited for.
    #[must_use]
    pub fn rest(&self) -> Vec<Request> {
        self.requests.try_iter().collect()
    }
}

/// One connection after the other, so that a request is kept before the next is taken.
fn serve(listener: &TcpListener, manner: Manner, send: &Sender<Request>) {
    let mut open = Vec::new();
    for mut stream in listener.incoming().map_while(Result::ok) {
        let Some(request) = read(&stream) else { continue };
        if send.send(request).is_err() {
            return;
        }
        match manner {
            Manner::Takes => drop(stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")),
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
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"))?.trim().parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { path, head, body })
}
