//! What a request has to pass before anybody looks at what it asks for.

use super::body;
use super::names::Names;
use super::rates::{Rates, Source};
use super::refusal::Refusal;
use super::settings::{Access, Settings, Token};
use bytes::Bytes;
use hyper::body::Body;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::http::request::Parts;
use hyper::{Method, Request};
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use tokio::time::Instant;

/// What a wrong token costs, in requests.
const WRONG: u32 = 20;

/// Whoever asks, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Caller {
    /// Anybody on this machine: no token is asked for.
    Anybody,
    /// Who has the token of this digest.
    Bearer(blake3::Hash),
}

/// A request that was let in. Only a [`Gate`] makes one.
#[derive(Debug)]
pub(crate) struct Admitted {
    caller: Caller,
    request: Request<Bytes>,
}

impl Admitted {
    /// Who asks.
    pub(crate) fn caller(&self) -> Caller {
        self.caller
    }

    /// What is asked: without the token, and with its [`Caller`] among the extensions.
    pub(crate) fn into_request(self) -> Request<Bytes> {
        self.request
    }
}

/// What a request has to pass.
#[derive(Debug)]
pub(super) struct Gate {
    names: Names,
    access: Access,
    paths: Vec<&'static str>,
    rates: Mutex<Rates>,
}

impl Gate {
    /// The gate of a server that listens at this address, and serves these paths.
    pub(super) fn new(settings: &Settings, bound: SocketAddr, paths: Vec<&'static str>) -> Self {
        let names = Names::new(bound, &settings.hosts, &settings.origins);
        Self { names, access: settings.access, paths, rates: Mutex::new(Rates::new(Instant::now())) }
    }

    /// Lets a request in, with all of its body.
    pub(super) async fn admit<B>(&self, request: Request<B>, from: IpAddr) -> Result<Admitted, Refusal>
    where
        B: Body<Data = Bytes>,
        B::Error: Display,
    {
        let (mut head, body) = request.into_parts();
        let caller = self.check(&head, Source::of(from))?;
        let body = body::read(body).await?;
        // What comes after needs it for nothing, and could show it.
        head.headers.remove(AUTHORIZATION);
        head.extensions.insert(caller);
        Ok(Admitted { caller, request: Request::from_parts(head, body) })
    }

    /// What is told of a path where nothing is.
    pub(super) fn nowhere(&self) -> Refusal {
        Refusal::Path(self.paths.clone())
    }

    fn check(&self, head: &Parts, source: Source) -> Result<Caller, Refusal> {
        self.check_host(head)?;
        self.check_origin(&head.headers)?;
        if !self.paths.contains(&head.uri.path()) {
            return Err(self.nowhere());
        }
        let caller = self.identify(&head.headers, source)?;
        match head.method {
            Method::POST | Method::GET | Method::DELETE => Ok(caller),
            _ => Err(Refusal::Method),
        }
    }

    /// A name in the request's own line counts as one in `Host`, and there is no request without either.
    fn check_host(&self, head: &Parts) -> Result<(), Refusal> {
        let named = head.uri.authority().is_none_or(|authority| self.names.has_host(authority.as_str()));
        let host = only(&head.headers, &HOST)?.ok_or(Refusal::Host)?;
        (named && self.names.has_host(host)).then_some(()).ok_or(Refusal::Host)
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        match only(headers, &ORIGIN)? {
            Some(origin) if !self.names.has_origin(origin) => Err(Refusal::Origin),
            _ => Ok(()),
        }
    }

    /// Nobody is told whether a token was right once there were too many requests: so that tokens cannot be tried out.
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

/// A header that may be there once.
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
