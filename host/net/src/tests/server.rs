//! An HTTP server of the tests' own, which speaks the protocol by hand, so that it can break it.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A running server. It ends when this is dropped.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

/// The answer to a request: bytes of the wire, by the head of the request.
pub(super) type Answer = Arc<dyn Fn(&str) -> Wire + Send + Sync>;

/// The bytes of an answer.
pub(super) enum Wire {
    /// These, and the end.
    Bytes(Vec<u8>),
    /// These, and nothing more, while the connection stays open.
    Silence(Vec<u8>),
    /// The first ones, and the second ones again and again.
    Endless(Vec<u8>, Vec<u8>),
}

impl Server {
    pub(super) async fn start(answer: Answer) -> Self {
        Self::start_at(IpAddr::from([127, 0, 0, 1]), 0, answer).await
    }

    pub(super) async fn start_at(ip: IpAddr, port: u16, answer: Answer) -> Self {
        let listener = TcpListener::bind((ip, port)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = heads.clone();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, answer.clone(), seen.clone()));
            }
        });
        Self { address, heads, task }
    }

    /// A server that answers every request with its path.
    pub(super) async fn echo() -> Self {
        Self::start(Arc::new(|head| {
            let path = head.split(' ').nth(1).unwrap_or_default();
            Wire::Bytes(ok(path.as_bytes()))
        }))
        .await
    }

    /// Returns the heads of all requests that have arrived.
    pub(super) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns a whole response.
pub(super) fn ok(body: &[u8]) -> Vec<u8> {
    with_headers("", body)
}

/// Returns a whole response with more headers.
pub(super) fn with_headers(headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Serves one connection, which carries one request.
pub(super) async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: Answer,
    heads: Arc<Mutex<Vec<String>>>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    heads.lock().unwrap().push(head.clone());
    match answer(&head) {
        Wire::Bytes(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.flush().await;
        }
        Wire::Silence(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.flush().await;
            let _ = stream.read_u8().await;
        }
        Wire::Endless(first, again) => {
            let _ = stream.write_all(&first).await;
            while stream.write_all(&again).await.is_ok() {}
        }
    }
}
