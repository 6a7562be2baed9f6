//! A connection to the server on which requests follow each other.

use std::fmt::Write as _;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// Where connections lead, and with which token.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) address: String,
    pub(crate) token: &'static str,
}

/// A connection that sends the same token with each request.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    /// The lines that the heads of all requests share.
    headers: String,
}

impl Address {
    /// Opens a connection.
    pub(crate) async fn connect(&self) -> Connection {
        let Self { address, token } = self;
        let stream = TcpStream::connect(address).await.expect("the server listens");
        stream.set_nodelay(true).expect("an option of a socket");
        let headers = format!(
            "Host: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        );
        Connection { stream: BufReader::new(stream), headers }
    }
}

impl Connection {
    /// Posts a JSON document and returns the body of the response, which is no error.
    pub(crate) async fn post(&mut self, path: &str, body: &str) -> String {
        let more = format!("Content-Length: {}\r\n", body.len());
        self.request("POST", path, &more, body).await;
        let (status, length) = self.head().await;
        let body = self.body(length).await;
        assert!(matches!(status, 200 | 201), "{status}: {body}");
        body
    }

    /// Gets a resource and returns the status with the body of the response.
    pub(crate) async fn get(&mut self, path: &str) -> (u16, String) {
        self.request("GET", path, "", "").await;
        let (status, length) = self.head().await;
        (status, self.body(length).await)
    }

    /// Begins a response that has no end, and returns what its bytes come from.
    pub(crate) async fn stream(mut self, path: &str) -> BufReader<TcpStream> {
        // Of HTTP/1.0, so that the body has no frames of its own.
        let head = format!("GET {path} HTTP/1.0\r\n{}\r\n", self.headers);
        self.stream.write_all(head.as_bytes()).await.expect("the server reads");
        let (status, _) = self.head().await;
        assert_eq!(status, 200, "the server streams");
        self.stream
    }

    async fn request(&mut self, method: &str, path: &str, more: &str, body: &str) {
        let mut request = String::with_capacity(512 + body.len());
        let _ = write!(request, "{method} {path} HTTP/1.1\r\n{}{more}\r\n{body}", self.headers);
        self.stream.write_all(request.as_bytes()).await.expect("the server reads");
    }

    /// Reads the head of a response: its status, and the length of its body.
    async fn head(&mut self) -> (u16, usize) {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.expect("the server answers");
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status: {line}"));
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line).await.expect("the server answers");
            match line.trim_end().split_once(':') {
                None => return (status, length),
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().expect("a length");
                }
                Some(_) => {}
            }
        }
    }

    async fn body(&mut self, length: usize) -> String {
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await.expect("the server answers");
        String::from_utf8(body).expect("the server answers in UTF-8")
    }
}
