//! Requests over TLS, with a certificate of the tests' own authority.

use super::server::{Server, Wire, ok, serve};
use super::{Call, Known, request};
use crate::Network;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use wasmtime_wasi_http::RequestOptions;

/// A server over TLS with a certificate for `server.test`, and the certificate of its authority.
struct Secure {
    port: u16,
    authority: CertificateDer<'static>,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Secure {
    async fn start() -> Self {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate().unwrap();
        let certificate = authority.self_signed(&authority_key).unwrap();
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate().unwrap();
        let own = CertificateParams::new(vec!["server.test".to_owned()]).unwrap();
        let own = own.signed_by(&key, &issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![own.der().clone()],
                PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = heads.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if let Ok(stream) = acceptor.accept(stream).await {
                    serve(stream, Arc::new(|_: &str| Wire::Bytes(ok(b"secure"))), seen.clone())
                        .await;
                }
            }
        });
        Self { port, authority: certificate.der().clone(), heads }
    }

    fn network(&self, authorities: Vec<CertificateDer<'static>>) -> Network {
        let names =
            ["server.test", "other.test"].map(|name| (name, vec!["127.0.0.1".parse().unwrap()]));
        Network::new(Arc::new(Known(names.into_iter().collect())), authorities)
    }

    async fn get(&self, network: &Network, host: &str) -> Result<Vec<u8>, String> {
        let rule = format!("GET https://{host}:{} private", self.port);
        let mut call = Call::with_rules(network, &[&rule]);
        let fetched = call.get(&format!("https://{host}:{}/", self.port)).await;
        fetched.map(|fetched| fetched.body).map_err(|_| format!("{:?}", call.refusals))
    }
}

#[tokio::test]
async fn trusted_server_is_fetched_from_again_and_again() {
    let server = Secure::start().await;
    let network = server.network(vec![server.authority.clone()]);
    for _ in 0..3 {
        assert_eq!(server.get(&network, "server.test").await.unwrap(), b"secure");
    }
    assert_eq!(server.heads.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn unknown_authority_and_wrong_name_are_refused() {
    let server = Secure::start().await;
    let unknown = server.get(&server.network(Vec::new()), "server.test").await.unwrap_err();
    assert!(unknown.contains("no encrypted connection"), "{unknown}");
    let network = server.network(vec![server.authority.clone()]);
    let wrong = server.get(&network, "other.test").await.unwrap_err();
    assert!(wrong.contains("no encrypted connection"), "{wrong}");
    assert!(server.heads.lock().unwrap().is_empty());
}

#[tokio::test]
async fn server_without_tls_gets_no_request_over_https() {
    let plain = Server::echo().await;
    let names = [("server.test", vec!["127.0.0.1".parse().unwrap()])];
    let network = Network::new(Arc::new(Known(names.into_iter().collect())), Vec::new());
    let mut call =
        Call::with_rules(&network, &[&format!("GET https://server.test:{} private", plain.port())]);
    // The server waits for the end of a head, and the handshake for an answer.
    let options = RequestOptions {
        connect_timeout: Some(Duration::from_millis(200)),
        ..RequestOptions::default()
    };
    let url = format!("https://server.test:{}/", plain.port());
    assert!(call.fetch_with(request("GET", &url), options).await.is_err());
    assert!(plain.heads().iter().all(|head| !head.contains("GET")), "{:?}", plain.heads());
}
