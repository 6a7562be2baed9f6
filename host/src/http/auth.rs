//! The checks that every request passes before routing: host, origin, path, rate limit, token,
//! method and body.

use super::Body as Whole;
use super::allowed_hosts::AllowedHosts;
use super::body;
use super::cors;
use super::rates::{Rates, Source};
use super::rejection::Rejection;
use super::settings::{Access, Settings, Token};
use bytes::Bytes;
use hyper::body::Body;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, Uri};
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use tokio::time::Instant;

/// The cost of a missing or wrong token, in requests of the rate limit.
const WRONG: u32 = 20;

/// The identity of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Caller {
    /// Any local client: the server has no token.
    Anybody,
    /// A client that sent the token with this digest.
    Bearer(blake3::Hash),
}

/// A request that passed all checks. Only an [`Auth`] creates one.
#[derive(Debug)]
pub(crate) struct Admitted {
    caller: Caller,
    request: Request<Bytes>,
}

impl Admitted {
    /// Returns the identity of the client.
    pub(crate) fn caller(&self) -> Caller {
        self.caller
    }

    /// Returns the request: without its token, and with its [`Caller`] as an extension.
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
    rates: Mutex<Rates>,
}

impl Auth {
    /// Creates the checks for a server bound to this address that serves these paths.
    pub(super) fn new(settings: &Settings, bound: SocketAddr, paths: Vec<&'static str>) -> Self {
        let allowed = AllowedHosts::new(bound, &settings.hosts, &settings.origins);
        Self {
            allowed,
            access: settings.access,
            paths,
            rates: Mutex::new(Rates::new(Instant::now())),
        }
    }

    /// Checks a request and reads its whole body.
    pub(super) async fn admit<B>(
        &self,
        request: Request<B>,
        from: IpAddr,
    ) -> Result<Admitted, Rejection>
    where
        B: Body<Data = Bytes>,
        B::Error: Display,
    {
        let (mut head, body) = request.into_parts();
        let caller = self.check(&head, Source::of(from))?;
        let body = body::read(body).await?;
        // Strip the credential, so that handlers cannot log it.
        head.headers.remove(AUTHORIZATION);
        head.extensions.insert(caller);
        Ok(Admitted { caller, request: Request::from_parts(head, body) })
    }

    /// Answers the preflight of a browser, which carries no token. `None` for any other request.
    pub(super) fn preflight<B>(
        &self,
        request: &Request<B>,
        from: IpAddr,
    ) -> Option<Result<Response<Whole>, Rejection>> {
        let admitted = || {
            self.check_target(request.uri(), request.headers())?;
            self.rates().take(Instant::now(), Source::of(from)).map_err(Rejection::Rate)?;
            Ok(cors::preflight(request.headers()))
        };
        cors::is_preflight(request).then(admitted)
    }

    /// Returns the `Origin` of a request, if its pages may read the response.
    pub(super) fn allowed_origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = only(headers, &ORIGIN)
            .ok()
            .flatten()
            .filter(|origin| self.allowed.allows_origin(origin))?;
        HeaderValue::from_str(origin).ok()
    }

    /// Returns the refusal for an unknown path.
    pub(super) fn unknown_path(&self) -> Rejection {
        Rejection::Path(self.paths.clone())
    }

    fn check(&self, head: &Parts, source: Source) -> Result<Caller, Rejection> {
        self.check_target(&head.uri, &head.headers)?;
        let caller = self.identify(&head.headers, source)?;
        match head.method {
            Method::POST | Method::GET | Method::DELETE => Ok(caller),
            _ => Err(Rejection::Method),
        }
    }

    /// Checks where a request comes from and where it goes to.
    fn check_target(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Rejection> {
        self.check_host(uri, headers)?;
        self.check_origin(headers)?;
        if self.paths.contains(&uri.path()) { Ok(()) } else { Err(self.unknown_path()) }
    }

    /// Checks the `Host` header, which is required, and the authority of an absolute-form target if
    /// there is one.
    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Rejection> {
        let named =
            uri.authority().is_none_or(|authority| self.allowed.allows_host(authority.as_str()));
        let host = only(headers, &HOST)?.ok_or(Rejection::Host)?;
        (named && self.allowed.allows_host(host)).then_some(()).ok_or(Rejection::Host)
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Rejection> {
        // Clients other than browsers send no `Origin`.
        match only(headers, &ORIGIN)? {
            Some(origin) if !self.allowed.allows_origin(origin) => Err(Rejection::Origin),
            _ => Ok(()),
        }
    }

    /// Checks the token. The rate limit comes first, so that a rate-limited client learns nothing
    /// about its token and cannot brute-force it.
    fn identify(&self, headers: &HeaderMap, source: Source) -> Result<Caller, Rejection> {
        let now = Instant::now();
        self.rates().take(now, source).map_err(Rejection::Rate)?;
        let expected = match &self.access {
            Access::Token(expected) => expected,
            Access::Anybody => return Ok(Caller::Anybody),
        };
        let given = only(headers, &AUTHORIZATION)?.and_then(bearer);
        match given.map(Token::from_header) {
            Some(given) if given == *expected => Ok(Caller::Bearer(expected.digest())),
            wrong => {
                self.rates().fine(now, source, WRONG - 1);
                Err(wrong.map_or(Rejection::NoToken, |_| Rejection::WrongToken))
            }
        }
    }

    fn rates(&self) -> std::sync::MutexGuard<'_, Rates> {
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

#[cfg(test)]
mod tests;
