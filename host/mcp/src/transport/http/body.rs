//! The body of a request, parsed within bounds.

use super::super::fast_path::SimpleCall;
use super::headers;
use crate::handler::prepare::Prepare;
use crate::lists::filter::Cut;
use crate::messages::offload;
use crate::messages::parse::RejectedMessage;
use crate::messages::request_id;
use crate::protocol::lifecycle::{Dialect, Lifecycle, VERSION_KEY, negotiate};
use crate::protocol::methods::is_subscription;
use bytes::Bytes;
use hyper::header::HeaderMap;
use hyper::{Method, Request};
use palisade::internal::Account;
use rmcp::model::{ErrorData, ProtocolVersion, RequestId};
use serde::Deserialize as _;
use serde_json::Value;
use std::{io, mem};

/// The JSON object of a `POST` request; `None` for other methods.
pub(super) struct RequestBody(Option<Value>);

impl RequestBody {
    /// Parses the body and checks the headers of a request.
    pub(super) async fn parse(
        request: &Request<Bytes>,
        account: &Account,
    ) -> Result<Self, RejectedMessage> {
        let value = match *request.method() {
            Method::POST => Some(offload::parse(request.body().clone(), account).await?),
            _ => None,
        };
        let body = Self(value);
        if let Some(name) = headers::repeated(request.headers()) {
            let text = format!("the header `{name}` is there more than once: send it once");
            let error = ErrorData::header_mismatch(text, None);
            return Err(RejectedMessage { id: body.id(), error });
        }
        if let Some(value) = &body.0
            && value.get("id").is_some()
            && lacks_session(request.headers(), value)
        {
            let text = "a request of this revision belongs to a session: initialize first";
            let error = ErrorData::invalid_request(text, None);
            return Err(RejectedMessage { id: request_id::of_object(value), error });
        }
        Ok(body)
    }

    /// Returns the id of a request. Other messages have no response.
    pub(super) fn id(&self) -> Option<RequestId> {
        let request = self.0.as_ref().filter(|value| value.get("method").is_some());
        request.and_then(request_id::of_object)
    }

    /// Returns true for the request that begins a session.
    pub(super) fn is_initialize(&self) -> bool {
        self.0.as_ref().is_some_and(|value| value["method"] == "initialize")
    }

    /// Returns the dialect of the revision that a handshake selects; `None` for other messages.
    pub(super) fn handshake_dialect(&self) -> Option<Dialect> {
        let version =
            &self.0.as_ref().filter(|_| self.is_initialize())?["params"]["protocolVersion"];
        let version = ProtocolVersion::deserialize(version).ok()?;
        Some(Dialect::of_version(&negotiate(&version)))
    }

    /// Returns the name of the tool that a call names.
    pub(super) fn tool(&self) -> Option<&str> {
        self.0.as_ref()?["params"]["name"].as_str()
    }

    /// Prepares the message for its handler, if that is necessary. Returns the new body if the
    /// message has changed.
    pub(super) async fn prepare<H: Prepare>(
        &mut self,
        handler: impl FnOnce() -> io::Result<H>,
        account: &Account,
    ) -> Result<Option<Bytes>, RejectedMessage> {
        let id = self.id();
        let rejected = |error| RejectedMessage { id, error };
        let message = self.0.as_mut().filter(|message| is_subscription(message));
        let Some(message) = message else { return Ok(None) };
        // `rmcp` reports a handler that cannot be created.
        let Ok(handler) = handler() else { return Ok(None) };
        match handler.prepare(message, account).await {
            Ok(Cut::Resources) => {}
            Ok(Cut::Nothing) => return Ok(None),
            Err(error) => return Err(rejected(error)),
        }
        let message = mem::take(message);
        let (message, body) = offload::to_text(message, account).await.map_err(rejected)?;
        self.0 = Some(message);
        Ok(Some(body))
    }

    /// Takes the message if it is a simple call.
    pub(super) fn take_simple_call(&mut self) -> Option<SimpleCall> {
        let call = SimpleCall::from_message(self.0.take()?);
        call.map_err(|other| self.0 = Some(other)).ok()
    }
}

/// Returns true if a request names a revision of the stateful lifecycle, and belongs to no session.
fn lacks_session(headers: &HeaderMap, request: &Value) -> bool {
    let is_stateful = |version: &str| Lifecycle::of_version(version) == Lifecycle::Stateful;
    headers::session(headers).is_none()
        && request["method"].as_str().is_some_and(|method| method != "initialize")
        && headers::version(headers).is_none_or(is_stateful)
        && request["params"]["_meta"][VERSION_KEY].as_str().is_some_and(is_stateful)
}
