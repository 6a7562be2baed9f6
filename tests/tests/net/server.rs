//! A server on this machine, with its own thread for each connection. It counts what arrives.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A running server, until the end of the process.
#[derive(Clone)]
pub(super) struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts a server that answers each request, given as its text, and then closes the
    /// connection.
    pub(super) fn start(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1", 0, answer)
    }

    /// Starts a server at an address of this machine, with a free port if that is 0.
    pub(super) fn start_at(
        address: &str,
        port: u16,
        answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((address, port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Self { port, requests: Arc::default() };
        let (requests, answer) = (server.requests.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (requests, answer) = (requests.clone(), answer.clone());
                std::thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    let Some(request) = read(&mut stream) else { return };
                    requests.lock().unwrap().push(request.clone());
                    answer(&request, &mut stream);
                });
            }
        });
        server
    }

    /// Starts a server that answers each request with its own text.
    pub(super) fn echo() -> Self {
        Self::start(|request, stream| {
            let _ = stream.write_all(&ok(request.as_bytes()));
        })
    }

    /// Returns the port.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the host and the port, by the name of this machine.
    pub(super) fn authority(&self) -> String {
        format!("localhost:{}", self.port)
    }

    /// Returns a rule for the server.
    pub(super) fn rule(&self, methods: &str) -> String {
        format!("{methods} http://{} private", self.authority())
    }

    /// Returns the requests that have arrived.
    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// Returns a whole response.
pub(super) fn ok(body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Reads a request with its body, whose length the head has, or which is chunked.
fn read(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    let mut byte = [0];
    loop {
        let head = String::from_utf8_lossy(&text).into_owned();
        if let Some((head, body)) = head.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let is_whole = match head.split("content-length: ").nth(1) {
                Some(length) => {
                    let length = length.lines().next()?.trim().parse::<usize>().ok()?;
                    body.len() >= length
                }
                None => !head.contains("chunked") || body.ends_with("0\r\n\r\n"),
            };
            if is_whole {
                return String::from_utf8(text).ok();
            }
        }
        stream.read_exact(&mut byte).ok()?;
        text.push(byte[0]);
    }
}
