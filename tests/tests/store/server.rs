//! A web server on this machine, with or without TLS, and with its own thread for each connection.
//! It keeps what arrives.

use base64::Engine as _;
use palisade_tests::World;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// A request that has arrived.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    /// The head, in lower case.
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

/// A reply.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// The length that is announced, if it is not that of the body.
    pub(super) length: Option<u64>,
}

impl Reply {
    pub(super) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), length: None }
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A running server, until the end of the process.
#[derive(Clone)]
pub(super) struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
}

type Answer = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;

impl Server {
    /// Starts a server without TLS.
    pub(super) fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::serve(Arc::new(answer), None)
    }

    /// Starts a server with TLS for `localhost`. Also returns the file of its authority.
    pub(super) fn secure(
        world: &World,
        answer: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> (Self, PathBuf) {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate().unwrap();
        let certificate = authority.self_signed(&authority_key).unwrap();
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate().unwrap();
        let own = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let own = own.signed_by(&key, &issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.der().clone()], key)
            .unwrap();
        let text = base64::engine::general_purpose::STANDARD.encode(certificate.der());
        let pem = format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
        let file = world.outer().join("authority.pem");
        std::fs::write(&file, pem).unwrap();
        (Self::serve(Arc::new(answer), Some(Arc::new(config))), file)
    }

    fn serve(answer: Answer, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self { port: listener.local_addr().unwrap().port(), requests: Arc::default() };
        let requests = server.requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (requests, answer, tls) = (requests.clone(), answer.clone(), tls.clone());
                std::thread::spawn(move || {
                    let stream = stream.unwrap();
                    match tls {
                        None => serve(stream, &requests, &answer),
                        Some(tls) => {
                            let connection = ServerConnection::new(tls).unwrap();
                            serve(StreamOwned::new(connection, stream), &requests, &answer);
                        }
                    }
                });
            }
        });
        server
    }

    /// Returns the host and the port, by the name of this machine.
    pub(super) fn authority(&self) -> String {
        format!("localhost:{}", self.port)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(mut stream: impl Read + Write, requests: &Mutex<Vec<Request>>, answer: &Answer) {
    let Some(request) = read(&mut stream) else { return };
    requests.lock().unwrap().push(request.clone());
    let reply = answer(&request);
    let length = reply.length.unwrap_or(reply.body.len() as u64);
    let mut head = format!("HTTP/1.1 {} x\r\ncontent-length: {length}\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("connection: close\r\n\r\n");
    let _ = stream.write_all(head.as_bytes());
    if request.method != "HEAD" {
        let _ = stream.write_all(&reply.body);
    }
    let _ = stream.flush();
}

/// Reads a request with its body, whose length the head has.
fn read(stream: &mut impl Read) -> Option<Request> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?;
    let mut words = head.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let head = head.to_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap())];
    stream.read_exact(&mut body).ok()?;
    Some(Request { method, path, head, body })
}
