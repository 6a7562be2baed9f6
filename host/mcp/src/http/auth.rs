//! The checks that every request passes before routing: host, origin, path, rate limit,
//! credentials, method and body.

use super::allowed_hosts::AllowedHosts;
use super::body_memory::BodyMemory;
use super::client_address::ClientAddress;
use super::cors;
use super::credentials::{Browsers, Credentials, only};
pub use super::credentials::{Caller, Role};
use super::login_halves::PAGE_KEY;
use super::logins::Logins;
use super::rejection::Rejection;
use super::request_body;
use super::request_rates::{AddressBuckets, RequestRates};
use super::response_body::Body;
use super::same_origin::Answer;
use super::settings::Settings;
use bytes::Bytes;
use hyper::body::Body as HttpBody;
use hyper::header::{AUTHORIZATION, COOKIE, HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, Uri};
use palisade::internal::{Account, client_shares};
use palisade::sandbox::limits::Limits;
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The head of an admitted request. Its extensions contain the [`Caller`], the [`Role`] if it has
/// one, and `hyper`'s `OnUpgrade` if the client asks for another protocol.
pub type RequestHead = Parts;

/// A request that passed all checks. Only the server creates one.
#[derive(Debug)]
pub struct Admitted {
    caller: Caller,
    role: Option<Role>,
    address: ClientAddress,
    request: Request<Bytes>,
    account: Account,
}

impl Admitted {
    /// Returns the identity of the client.
    #[must_use]
    pub fn caller(&self) -> Caller {
        self.caller
    }

    /// Returns the role of the client. `None` for a request without credentials to a public path.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        self.role
    }

    /// Returns the address of the client.
    pub(crate) fn address(&self) -> ClientAddress {
        self.address
    }

    /// Returns the method and the path of the request.
    #[must_use]
    pub fn target(&self) -> (&Method, &str) {
        (self.request.method(), self.request.uri().path())
    }

    /// Returns the memory account of the request, which counts the body as long as it exists.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// Returns the request: without its credentials, and with what a [`RequestHead`] contains. Its
    /// memory account is an extension, so that the body counts as long as its service keeps that.
    #[must_use]
    pub fn into_request(mut self) -> Request<Bytes> {
        self.request.extensions_mut().insert(self.account);
        self.request
    }
}

/// The kind of a request's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It has a service of its own, for programs.
    Named,
    /// It belongs to the service of all other paths.
    Beside,
    /// As [`Beside`](Self::Beside), and the answer lasts.
    Stream,
    /// As [`Beside`](Self::Beside), and the request needs no credentials.
    Public,
}

/// The paths of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paths {
    /// Those with a service of their own.
    Named,
    /// All: those without a service of their own belong to one.
    All,
}

/// The admission checks of a server.
#[derive(Debug)]
pub(super) struct Auth {
    allowed: AllowedHosts,
    credentials: Credentials,
    named: Vec<&'static str>,
    paths: Paths,
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
            allowed: settings.allowed_hosts(bound),
            credentials: Credentials::new(settings, bound.port()),
            named: paths,
            paths: Paths::Named,
            rates: Mutex::new(RequestRates::new(Instant::now())),
            bodies: BodyMemory::new(limits),
        }
    }

    /// Sets which paths are served.
    pub(super) fn with_paths(self, paths: Paths) -> Self {
        Self { paths, ..self }
    }

    /// Sets the logins of the operator.
    pub(super) fn with_logins(self, logins: Logins) -> Self {
        Self { credentials: self.credentials.with_logins(logins), ..self }
    }

    /// Returns the credentials that the server accepts.
    pub(super) fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Creates an account for memory that counts against the limits of the server.
    pub(super) fn account(&self) -> Account {
        self.bodies.account()
    }

    /// Checks the head of a request to a path with a service of its own, as
    /// [`admit_at`](Self::admit_at) does.
    #[cfg(test)]
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
        self.admit_at(Place::Named, request, from, session).await
    }

    /// Checks the head of a request, and then reads its whole body. `session` returns the session
    /// of the caller that the request belongs to.
    pub(super) async fn admit_at<B>(
        &self,
        place: Place,
        request: Request<B>,
        from: IpAddr,
        session: impl FnOnce(&RequestHead, Caller) -> Option<String>,
    ) -> Result<Admitted, Rejection>
    where
        B: HttpBody<Data = Bytes>,
        B::Error: Display,
    {
        let (mut head, body) = request.into_parts();
        let (caller, role) = self.check(&head, place, from)?;
        // A client without credentials holds no memory.
        if role.is_none() && !body.is_end_stream() {
            return Err(Rejection::TooLong(0));
        }
        let address = ClientAddress::from(from);
        let session = session(&head, caller);
        let shares = client_shares(caller.at(address), session.as_deref());
        let account = self.bodies.account_of(shares);
        let body = request_body::read(body, self.bodies.buffer(address, &account)).await?;
        // Strip the credentials, so that handlers cannot log them. The cookies of other servers on
        // this host are with them.
        head.headers.remove(AUTHORIZATION);
        head.headers.remove(COOKIE);
        head.headers.remove(PAGE_KEY);
        head.extensions.insert(caller);
        head.extensions.insert(address);
        if let Some(role) = role {
            head.extensions.insert(role);
        }
        if place == Place::Named || role.is_none() {
            // Services for programs keep heads, and know no other protocol.
            head.extensions.remove::<OnUpgrade>();
        }
        Ok(Admitted { caller, role, address, request: Request::from_parts(head, body), account })
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
        Rejection::Path(self.named.clone())
    }

    /// Checks the host, the origin and the path of a request.
    pub(super) fn check_target(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Rejection> {
        self.check_host(uri, headers)?;
        self.check_origin(headers)?;
        let is_served = self.paths == Paths::All || self.named.contains(&uri.path());
        if is_served { Ok(()) } else { Err(self.unknown_path()) }
    }

    /// Counts a request that needs no credentials.
    pub(super) fn admit_public(&self, from: IpAddr) -> Result<(), Rejection> {
        self.take(|rates| &mut rates.public, from.into(), Rejection::Rate)
    }

    /// Counts a failed authentication. Returns its rejection, or that of too many.
    pub(super) fn note_failure(&self, from: IpAddr, rejection: Rejection) -> Rejection {
        let counted = self.take(|rates| &mut rates.failures, from.into(), Rejection::FailureRate);
        counted.err().unwrap_or(rejection)
    }

    /// Reads the body of a request that needs no credentials.
    pub(super) async fn read_public<B>(&self, body: B, from: IpAddr) -> Result<Bytes, Rejection>
    where
        B: HttpBody<Data = Bytes>,
        B::Error: Display,
    {
        let address = ClientAddress::from(from);
        let account =
            self.bodies.account_of(client_shares(Caller::Unauthenticated.at(address), None));
        request_body::read(body, self.bodies.buffer(address, &account)).await
    }

    fn check(
        &self,
        head: &Parts,
        place: Place,
        from: IpAddr,
    ) -> Result<(Caller, Option<Role>), Rejection> {
        self.check_target(&head.uri, &head.headers)?;
        let known = self.authenticate(head, place, from)?;
        match (place, &head.method) {
            (Place::Named, &Method::POST | &Method::GET | &Method::DELETE) => Ok(known),
            // A service with paths of its own knows which methods each has.
            (Place::Beside | Place::Stream | Place::Public, method)
                if *method != Method::CONNECT =>
            {
                Ok(known)
            }
            _ => Err(Rejection::Method),
        }
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

    /// Checks the credentials within the rate limits. Right and wrong ones have separate limits: on
    /// loopback, and behind a proxy, all clients have one address, and guesses of one client must
    /// not keep out another one that has the token. So must requests that need none.
    fn authenticate(
        &self,
        head: &Parts,
        place: Place,
        from: IpAddr,
    ) -> Result<(Caller, Option<Role>), Rejection> {
        let browsers = match place {
            Place::Named => Browsers::Ignored,
            Place::Stream => Browsers::Accepted(Answer::Stream),
            Place::Beside | Place::Public => Browsers::Accepted(Answer::Whole),
        };
        match self.credentials.identify(head, browsers) {
            Ok((caller, role)) => {
                self.take(|rates| &mut rates.requests, from.into(), Rejection::Rate)?;
                Ok((caller, Some(role)))
            }
            Err(
                Rejection::NoToken
                | Rejection::NoPageKey
                | Rejection::LoginEnded
                | Rejection::CrossSite,
            ) if place == Place::Public => {
                self.admit_public(from)?;
                Ok((Caller::Unauthenticated, None))
            }
            Err(rejection) => Err(self.note_failure(from, rejection)),
        }
    }

    fn take(
        &self,
        of: impl FnOnce(&mut RequestRates) -> &mut AddressBuckets,
        client: ClientAddress,
        refusal: impl FnOnce(Duration) -> Rejection,
    ) -> Result<(), Rejection> {
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        of(&mut rates).take(client, Instant::now()).map_err(refusal)
    }
}

#[cfg(test)]
mod tests;
