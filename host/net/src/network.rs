//! The network of a process: the thread that drives connections, the resolver, the configuration of
//! TLS, and the places for connections.

use crate::limits;
use crate::resolve::{Resolver, SystemResolver};
use crate::tls::tls;
use palisade::internal::{Pool, runtime_of};
use rustls::pki_types::CertificateDer;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

/// The network that the plugins of a host share. Clones share it. Nothing is started before the
/// first request.
#[derive(Clone)]
pub struct Network(Arc<Shared>);

struct Shared {
    resolver: Arc<dyn Resolver>,
    certificates: Vec<CertificateDer<'static>>,
    tls: OnceLock<Result<TlsConnector, String>>,
    /// The threads of calls may have a runtime without input and output, so that connections have
    /// one of their own.
    runtime: OnceLock<Runtime>,
    places: Pool,
    lookups: Pool,
}

/// The network cannot be used on this machine.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NetworkError {
    /// The thread of the network cannot be started.
    #[error("the thread of the network cannot be started: {0}")]
    Thread(String),
    /// The certificates of the platform cannot be read.
    #[error("the certificates of this machine cannot be used: {0}")]
    Certificates(String),
}

impl Default for Network {
    fn default() -> Self {
        Self::new(Arc::new(SystemResolver), Vec::new())
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").field("resolver", &self.0.resolver).finish_non_exhaustive()
    }
}

impl Network {
    /// Creates a network with this resolver. Servers are trusted as the platform trusts them, and
    /// by the given certificates, such as that of an organisation.
    #[must_use]
    pub fn new(resolver: Arc<dyn Resolver>, certificates: Vec<CertificateDer<'static>>) -> Self {
        Self(Arc::new(Shared {
            resolver,
            certificates,
            tls: OnceLock::new(),
            runtime: OnceLock::new(),
            places: Pool::new(limits::CONNECTIONS),
            lookups: Pool::new(limits::LOOKUPS),
        }))
    }

    pub(crate) fn resolver(&self) -> &dyn Resolver {
        &*self.0.resolver
    }

    pub(crate) fn places(&self) -> &Pool {
        &self.0.places
    }

    pub(crate) fn lookups(&self) -> &Pool {
        &self.0.lookups
    }

    /// Returns the configuration of TLS. The first use reads the certificates of the platform.
    pub(crate) fn tls(&self) -> Result<&TlsConnector, NetworkError> {
        let made = self
            .0
            .tls
            .get_or_init(|| tls(self.0.certificates.clone()).map_err(|error| error.to_string()));
        made.as_ref().map_err(|error| NetworkError::Certificates(error.clone()))
    }

    /// Runs a task on the thread of the network.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Result<Task<T>, NetworkError> {
        let runtime = runtime_of(&self.0.runtime, "palisade-net");
        let runtime = runtime.map_err(|error| NetworkError::Thread(error.to_string()))?;
        Ok(Task(runtime.spawn(task)))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // A runtime must not be dropped where blocking is forbidden.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A task on the thread of the network, which ends when this is dropped.
pub(crate) struct Task<T>(JoinHandle<T>);

impl<T> Task<T> {
    /// Waits for the end. Returns `None` if the task panicked.
    pub(crate) async fn ended(mut self) -> Option<T> {
        (&mut self.0).await.ok()
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
