//! The network of one call: its grants, its limits, and the hooks of `wasi:http`.

use crate::body::Allowance;
use crate::connect::ConnectError;
use crate::current::CurrentGrants;
use crate::limits;
use crate::network::Network;
use crate::plugin_grants::{Allowed, is_read_as};
use crate::redact::Redaction;
use crate::refusal::NetRefused;
use crate::send::{SendError, send};
use http::{HeaderName, Request, Response, header};
use palisade::internal::{Account, Charge, Grant, PoweredCall};
use std::future::Future;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime_wasi_http::{
    DEFAULT_FORBIDDEN_HEADERS, Error, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpHooks,
};

/// The header that says where a body ends, which a server could read under another spelling as
/// well.
const CONTENT_LENGTH: &str = "content-length";

/// The data of one call: the context of `wasi:http`, and the hooks. The default has no network.
pub(crate) struct CallData {
    pub(crate) context: WasiHttpCtx,
    pub(crate) hooks: Hooks,
}

/// The hooks of `wasi:http`.
#[derive(Default)]
pub(crate) struct Hooks(Option<CallNetwork>);

/// The network of one call. Clones share it.
#[derive(Clone)]
pub(crate) struct CallNetwork(Arc<Inner>);

struct Inner {
    network: Network,
    grants: Arc<CurrentGrants>,
    call: PoweredCall,
    places: Arc<Semaphore>,
    sent: Allowance,
    received: Allowance,
}

/// The place of one connection. Dropping it frees the place.
pub(crate) struct Place {
    _of_call: OwnedSemaphorePermit,
    _of_process: Grant,
    _descriptor: Grant,
    _memory: Charge,
}

/// The place of one look-up of a name. It is kept until the system has answered.
pub(crate) struct LookupPlace {
    _of_process: Grant,
    _descriptor: Grant,
}

impl CallData {
    pub(crate) fn new(network: &Network, grants: &Arc<CurrentGrants>, call: PoweredCall) -> Self {
        let inner = Inner {
            network: network.clone(),
            grants: grants.clone(),
            call,
            places: Arc::new(Semaphore::new(limits::CONNECTIONS_OF_CALL)),
            sent: Allowance::new(limits::REQUEST_BODIES),
            received: Allowance::new(limits::RESPONSE_BODIES),
        };
        Self { hooks: Hooks(Some(CallNetwork(Arc::new(inner)))), ..Self::default() }
    }
}

impl Default for CallData {
    fn default() -> Self {
        let mut context = WasiHttpCtx::new();
        context.set_field_size_limit(limits::REQUEST_HEADERS);
        Self { context, hooks: Hooks::default() }
    }
}

impl CallNetwork {
    pub(crate) fn network(&self) -> &Network {
        &self.0.network
    }

    pub(crate) fn redaction(&self) -> Option<Redaction> {
        self.0.grants.now().redaction().cloned()
    }

    pub(crate) fn sent(&self) -> Allowance {
        self.0.sent.clone()
    }

    pub(crate) fn received(&self) -> Allowance {
        self.0.received.clone()
    }

    /// Takes a place for a connection. Waits for one of the process, and for none of the call,
    /// which may wait for itself.
    pub(crate) async fn place(&self) -> Result<Place, SendError> {
        let of_call =
            self.0.places.clone().try_acquire_owned().map_err(|_| NetRefused::Connections)?;
        let of_process = self.0.call.take(self.0.network.places()).await;
        let descriptor = self.0.call.descriptor().await;
        let account: &Account = &self.0.call.account;
        let memory = account.charge(limits::CONNECTION_MEMORY);
        let memory = memory.map_err(|error| SendError::Memory(error.to_string()))?;
        Ok(Place {
            _of_call: of_call,
            _of_process: of_process,
            _descriptor: descriptor,
            _memory: memory,
        })
    }

    /// Waits for the place of a look-up.
    pub(crate) async fn lookup_place(&self) -> LookupPlace {
        let of_process = self.0.call.take(self.0.network.lookups()).await;
        LookupPlace { _of_process: of_process, _descriptor: self.0.call.descriptor().await }
    }

    fn check(&self, request: &mut Request<WasiBody>) -> Result<Allowed, NetRefused> {
        let path = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
        if path > limits::PATH {
            return Err(NetRefused::url("its path and query are longer than 16 KiB"));
        }
        let (method, uri) = (request.method().clone(), request.uri().clone());
        self.0.grants.now().check(self.0.call.class, &method, &uri, request.headers_mut())
    }

    /// Notes a failure for the person, and returns it for the guest. No failure has a secret: none
    /// quotes a header or a body, and the guest does not know the secrets.
    fn failed(&self, error: SendError) -> Error {
        let refused = match &error {
            SendError::Connect(ConnectError::Refused(refused)) => Some(refused),
            _ => None,
        };
        let code = refused.map_or("request_failed", NetRefused::code);
        let advice = refused.and_then(NetRefused::advice);
        tracing::debug!(code, "a request of a plugin failed: {error}");
        self.0.call.refusals.note(&format!("{error} ({code})"), advice.as_deref());
        error.into()
    }
}

impl Hooks {
    fn answer(
        &mut self,
        mut request: Request<WasiBody>,
        options: RequestOptions,
    ) -> impl Future<Output = Result<(Response<WasiBody>, Connection), Error>> + Send + use<> {
        let call = self.0.clone();
        async move {
            let Some(call) = call else { return Err(Error::HttpRequestDenied) };
            let allowed =
                call.check(&mut request).map_err(|refused| call.failed(refused.into()))?;
            match send(call.clone(), allowed, request, options).await {
                Ok((response, connection)) => {
                    let ended = async move {
                        connection.ended().await;
                        Ok(())
                    };
                    Ok((response, Box::new(ended) as Connection))
                }
                Err(error) => Err(call.failed(error)),
            }
        }
    }
}

/// The end of a connection. Dropping it closes the connection.
type Connection = Box<dyn Future<Output = Result<(), Error>> + Send>;

impl WasiHttpHooks for Hooks {
    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _sent: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Result<(Response<WasiBody>, Connection), Error>> + Send> {
        Box::new(self.answer(request, options.unwrap_or_default()))
    }

    fn is_forbidden_header(&mut self, name: &HeaderName) -> bool {
        DEFAULT_FORBIDDEN_HEADERS.iter().any(|it| is_read_as(name, it.as_str()))
            || (name != header::CONTENT_LENGTH && is_read_as(name, CONTENT_LENGTH))
            || self.0.as_ref().is_some_and(|call| call.0.grants.now().reserves(name))
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        limits::PIECE
    }

    fn p2_error_from_hyper(
        &mut self,
        error: &hyper::Error,
    ) -> wasmtime_wasi_http::p2::bindings::http::types::ErrorCode {
        use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;
        tracing::debug!("an exchange with a server failed: {error}");
        match error.is_incomplete_message() {
            true => ErrorCode::HttpResponseIncomplete,
            false => ErrorCode::HttpProtocolError,
        }
    }
}
