//! The checks that every request passes before routing: host, origin, path, rate limit, token,
//! method and body.

use super::Body as Whole;
use super::body;
use super::names::Names;
use super::pages;
use super::rates::{Rates, Source};
use super::refusal::Refusal;
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

/// A request that passed all checks. Only a [`Gate`] creates one.
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
pub(super) struct Gate {
    names: Names,
    access: Access,
    paths: Vec<&'static str>,
    rates: Mutex<Rates>,
}

impl Gate {
    /// Creates the checks for a server bound to this address that serves these paths.
    pub(super) fn new(settings: &Settings, bound: SocketAddr, paths: Vec<&'static str>) -> Self {
        let names = Names::new(bound, &settings.hosts, &settings.origins);
        Self {
            names,
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
    ) -> Result<Admitted, Refusal>
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
    ) -> Option<Result<Response<Whole>, Refusal>> {
        let admitted = || {
            self.check_place(request.uri(), request.headers())?;
            self.rates().take(Instant::now(), Source::of(from)).map_err(Refusal::Rate)?;
            Ok(pages::preflight(request.headers()))
        };
        pages::is_preflight(request).then(admitted)
    }

    /// Returns the `Origin` of a request, if its pages may read the response.
    pub(super) fn reader(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin =
            only(headers, &ORIGIN).ok().flatten().filter(|origin| self.names.has_origin(origin))?;
        HeaderValue::from_str(origin).ok()
    }

    /// Returns the refusal for an unknown path.
    pub(super) fn nowhere(&self) -> Refusal {
        Refusal::Path(self.paths.clone())
    }

    fn check(&self, head: &Parts, source: Source) -> Result<Caller, Refusal> {
        self.check_place(&head.uri, &head.headers)?;
        let caller = self.identify(&head.headers, source)?;
        match head.method {
            Method::POST | Method::GET | Method::DELETE => Ok(caller),
            _ => Err(Refusal::Method),
        }
    }

    /// Checks where a request comes from and where it goes to.
    fn check_place(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        self.check_host(uri, headers)?;
        self.check_origin(headers)?;
        if self.paths.contains(&uri.path()) { Ok(()) } else { Err(self.nowhere()) }
    }

    /// Checks the `Host` header, which is required, and the authority of an absolute-form target if
    /// there is one.
    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let named = uri.authority().is_none_or(|authority| self.names.has_host(authority.as_str()));
        let host = only(headers, &HOST)?.ok_or(Refusal::Host)?;
        (named && self.names.has_host(host)).then_some(()).ok_or(Refusal::Host)
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        // Clients other than browsers send no `Origin`.
        match only(headers, &ORIGIN)? {
            Some(origin) if !self.names.has_origin(origin) => Err(Refusal::Origin),
            _ => Ok(()),
        }
    }

    /// Checks the token. The rate limit comes first, so that a rate-limited client learns nothing
    /// about its token and cannot brute-force it.
    fn identify(&self, headers: &HeaderMap, source: Source) -> Result<Caller, Refusal> {
        let now = Instant::now();
        self.rates().take(now, source).map_err(Refusal::Rate)?;
        let expected = match &self.access {
            Access::Token(expected) => expected,
            Access::Anybody => return Ok(Caller::Anybody),
        };
        let given = only(headers, &AUTHORIZATION)?.and_then(bearer);
        match given.map(Token::of) {
            Some(given) if given == *expected => Ok(Caller::Bearer(expected.digest())),
            wrong => {
                self.rates().fine(now, source, WRONG - 1);
                Err(wrong.map_or(Refusal::NoToken, |_| Refusal::WrongToken))
            }
        }
    }

    fn rates(&self) -> std::sync::MutexGuard<'_, Rates> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the value of a header that may occur once at most.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| refusal_of(name)),
        (Some(_), Some(_)) => Err(refusal_of(name)),
    }
}

fn refusal_of(name: &HeaderName) -> Refusal {
    match *name {
        HOST => Refusal::Host,
        ORIGIN => Refusal::Origin,
        _ => Refusal::WrongToken,
    }
}

fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

#[cfg(test)]
mod tests;
