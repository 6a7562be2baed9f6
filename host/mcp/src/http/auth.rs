//! The checks that every request passes before routing: host, origin, path, rate limit, token,
//! method and body.

use super::allowed_hosts::AllowedHosts;
use super::body_memory::BodyMemory;
use super::client_address::ClientAddress;
use super::cors;
use super::rejection::Rejection;
use super::request_body;
use super::request_rates::RequestRates;
use super::response_body::Body;
use super::settings::{Access, Settings, Token};
use bytes::Bytes;
use hyper::body::Body as HttpBody;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{Method, Request, Response, Uri};
use palisade::internal::{Account, ClientShares, client_shares};
use palisade::sandbox::limits::Limits;
use palisade::tool::Digest;
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// The head of an admitted request. Its extensions contain the [`Caller`] and its
/// [`ClientAddress`].
pub(crate) type RequestHead = Parts;

/// The identity of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Caller {
    /// Any local client: the server has no token.
    Unauthenticated,
    /// A client that sent the token with this digest.
    Bearer(blake3::Hash),
}

/// A request that passed all checks. Only an [`Auth`] creates one.
#[derive(Debug)]
pub(crate) struct Admitted {
    caller: Caller,
    request: Request<Bytes>,
    account: Account,
}

impl Admitted {
    /// Returns the identity of the client.
    pub(crate) fn caller(&self) -> Caller {
        self.caller
    }

    /// Returns the memory account of the request, which counts the body as long as it exists.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// Returns the request: without its token, and with its [`Caller`] and address as
    /// extensions.
    pub(crate) fn into_request(self) -> Request<Bytes> {
        self.request
    }
}

/// The admission checks of a server.
#[derive(Debug)]
pub(super) struct Auth {
    allowed: AllowedHosts,
    access: Access,
    paths: Vec<&'static str>,
    rates: Mutex<RequestRates>,
    bodies: BodyMemory,
}

impl Auth {
    /// Creates the checks for a server bound to this address that serves these paths. The memory of
    /// requests counts against `limits`.
    pub(super) fn new(
        settings: &Settings,
        bound: SocketAddr,
        paths: Vec<&'static str>,
        limits: Limits,
    ) -> Self {
        Self {
            allowed: AllowedHosts::new(bound, &settings.hosts, &settings.origins),
            access: settings.access,
            paths,
            rates: Mutex::new(RequestRates::new(Instant::now())),
            bodies: BodyMemory::new(limits),
        }
    }

    /// Creates an account for memory that counts against the limits of the server.
    pub(super) fn account(&self) -> Account {
        self.bodies.account()
    }

    /// Checks the head of a request, and then reads its whole body. `session` returns the session
    /// of the caller that the request belongs to.
    pub(super) async fn admit<B>(
        &self,
        request: Request<B>,
        from: IpAddr,
        session: impl FnOnce(&RequestHead, Caller) -> Option<String>,
    ) -> Result<Admitted, Rejection>
    where
        B: HttpBody<Data = Bytes>,
        B::Error: Display,
    {
        let (mut head, body) = request.into_parts();
        let caller = self.check(&head, from.into())?;
        let address = ClientAddress::from(from);
        let session = session(&head, caller);
        let account = self.bodies.account_of(client(caller, address, session.as_deref()));
        let body = request_body::read(body, self.bodies.buffer(address, &account)).await?;
        // Strip the credential, so that handlers cannot log it.
        head.headers.remove(AUTHORIZATION);
        head.extensions.insert(caller);
        head.extensions.insert(address);
        Ok(Admitted { caller, request: Request::from_parts(head, body), account })
    }

    /// Answers the preflight of a browser, which carries no token. It has no rate limit: its answer
    /// costs as little as a refusal, and a shared limit would let one client use up the preflights
    /// of another.
    pub(super) fn preflight<B>(&self, request: &Request<B>) -> Result<Response<Body>, Rejection> {
        self.check_target(request.uri(), request.headers())?;
        Ok(cors::preflight(request.headers()))
    }

    /// Returns the `Origin` of a request, if its pages may read the response.
    pub(super) fn allowed_origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = only(headers, &ORIGIN).ok().flatten();
        let allowed = origin.filter(|origin| self.allowed.allows_origin(origin))?;
        HeaderValue::from_str(allowed).ok()
    }

    /// Returns the rejection of an unknown path.
    pub(super) fn unknown_path(&self) -> Rejection {
        Rejection::Path(self.paths.clone())
    }

    fn check(&self, head: &Parts, client: ClientAddress) -> Result<Caller, Rejection> {
        self.check_target(&head.uri, &head.headers)?;
        let caller = self.authenticate(&head.headers, client)?;
        match head.method {
            Method::POST | Method::GET | Method::DELETE => Ok(caller),
            _ => Err(Rejection::Method),
        }
    }

    /// Checks the host, the origin and the path of a request.
    fn check_target(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Rejection> {
        self.check_host(uri, headers)?;
        self.check_origin(headers)?;
        if self.paths.contains(&uri.path()) { Ok(()) } else { Err(self.unknown_path()) }
    }

    /// Checks the `Host` header, which is required, and the authority of an absolute-form target if
    /// there is one.
    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Rejection> {
        let host = only(headers, &HOST)?.ok_or(Rejection::Host)?;
        let mut named = uri.authority().map(Authority::as_str).into_iter().chain([host]);
        named.all(|host| self.allowed.allows_host(host)).then_some(()).ok_or(Rejection::Host)
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Rejection> {
        // Clients other than browsers send no `Origin`.
        match only(headers, &ORIGIN)? {
            Some(origin) if !self.allowed.allows_origin(origin) => Err(Rejection::Origin),
            _ => Ok(()),
        }
    }

    /// Checks the token within the rate limits. Right and wrong tokens have separate limits: on
    /// loopback, and behind a proxy, all clients have one address, and guesses of one client must
    /// not keep out another one that has the token.
    fn authenticate(
        &self,
        headers: &HeaderMap,
        client: ClientAddress,
    ) -> Result<Caller, Rejection> {
        let now = Instant::now();
        match self.identify(headers) {
            Ok(caller) => {
                self.rates().requests.take(client, now).map_err(Rejection::Rate)?;
                Ok(caller)
            }
            Err(rejection) => {
                self.rates().failures.take(client, now).map_err(Rejection::FailureRate)?;
                Err(rejection)
            }
        }
    }

    fn identify(&self, headers: &HeaderMap) -> Result<Caller, Rejection> {
        match &self.access {
            Access::Unauthenticated => Ok(Caller::Unauthenticated),
            Access::Token(expected) => {
                let given = only(headers, &AUTHORIZATION)?.and_then(bearer);
                let given = Token::from_header(given.ok_or(Rejection::NoToken)?);
                if given != *expected {
                    return Err(Rejection::WrongToken);
                }
                Ok(Caller::Bearer(expected.digest()))
            }
        }
    }

    fn rates(&self) -> MutexGuard<'_, RequestRates> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the value of a header that may occur once at most.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Rejection> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| rejection_of(name)),
        (Some(_), Some(_)) => Err(rejection_of(name)),
    }
}

fn rejection_of(name: &HeaderName) -> Rejection {
    match *name {
        HOST => Rejection::Host,
        ORIGIN => Rejection::Origin,
        _ => Rejection::WrongToken,
    }
}

fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// Returns the shares of the client that sent a request.
fn client(caller: Caller, address: ClientAddress, session: Option<&str>) -> ClientShares {
    let identity = format!("{caller:?} at {address:?} in session {session:?}");
    client_shares(Digest::of(identity.as_bytes()))
}

#[cfg(test)]
mod tests;
