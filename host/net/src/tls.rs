//! The configuration of TLS.

use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use rustls_platform_verifier::Verifier;
use std::sync::Arc;
use tokio_rustls::TlsConnector;

/// Returns the connector of TLS, which trusts what the platform trusts, and the given certificates.
///
/// # Errors
///
/// If the platform's certificates cannot be read.
pub(crate) fn tls(extra: Vec<CertificateDer<'static>>) -> Result<TlsConnector, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier::new_with_extra_roots(extra, provider.clone())?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}
