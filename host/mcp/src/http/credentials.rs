//! The credentials of a request: a bearer token, or the operator's cookie.

use super::client_address::ClientAddress;
use super::logins::{COOKIE_TIME, Logins};
use super::rejection::Rejection;
use super::same_origin::{Answer, accepts_cookie};
use super::settings::{Access, Settings, Token};
use hyper::header::{AUTHORIZATION, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use palisade::tool::Digest;
use std::fmt::Write as _;
use std::io;

/// The identity of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Caller {
    /// A client without credentials.
    Unauthenticated,
    /// A client that sent the token with this digest.
    Bearer(blake3::Hash),
    /// A browser of the operator, with the cookie of this digest.
    Browser(blake3::Hash),
}

impl Caller {
    /// Returns the name by which the shares of this caller are told from those of others. All
    /// sessions of a caller at one address are within its shares.
    pub(crate) fn at(self, address: ClientAddress) -> Digest {
        Digest::of(format!("{self:?} at {address:?}").as_bytes())
    }

    /// Returns a name under which the requests of the client can be recorded. It reveals nothing of
    /// the credentials, and is the same as long as they are.
    #[must_use]
    pub fn id(&self) -> String {
        let (kind, digest) = match self {
            Self::Unauthenticated => return "unauthenticated".to_owned(),
            Self::Bearer(digest) => ("token", digest),
            Self::Browser(digest) => ("browser", digest),
        };
        let derived = blake3::derive_key("palisade 2026 id of an HTTP caller", digest.as_bytes());
        derived.iter().take(8).fold(format!("{kind}-"), |mut id, byte| {
            let _ = write!(id, "{byte:02x}");
            id
        })
    }
}

/// What a caller may do. Each service decides what that means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// A client: it makes calls, and answers for none of them.
    Client,
    /// The operator, who has the operator's token or logged in with a code.
    Operator,
}

/// Whether the cookie counts at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cookies {
    /// The path is for pages of this server, and answers in this way.
    Accepted(Answer),
    /// The path is for programs.
    Ignored,
}

/// The credentials that a server accepts.
#[derive(Debug)]
pub(super) struct Credentials {
    access: Access,
    operator: Option<Operator>,
}

#[derive(Debug)]
struct Operator {
    token: Token,
    logins: Logins,
    /// The name of the cookie. Browsers send the cookies of a host to each of its ports.
    cookie: String,
}

impl Credentials {
    /// Creates the credentials of a server bound to this port.
    pub(super) fn new(settings: &Settings, port: u16) -> Self {
        let cookie = format!("palisade_operator_{port}");
        let logins = Logins::default();
        let operator = settings.operator.map(|token| Operator { token, logins, cookie });
        Self { access: settings.access, operator }
    }

    /// Sets the logins of the operator.
    pub(super) fn with_logins(self, logins: Logins) -> Self {
        let operator = self.operator.map(|operator| Operator { logins, ..operator });
        Self { operator, ..self }
    }

    /// Returns true if an operator can log in.
    pub(super) fn has_operator(&self) -> bool {
        self.operator.is_some()
    }

    /// Identifies the sender of a request. Credentials that do not count are refused, also where
    /// none are needed.
    pub(super) fn identify(
        &self,
        head: &Parts,
        cookies: Cookies,
    ) -> Result<(Caller, Role), Rejection> {
        let token = match (&self.access, &self.operator) {
            (Access::Unauthenticated, None) => None,
            _ => only(&head.headers, &AUTHORIZATION)?.and_then(bearer).map(Token::from_header),
        };
        if let Some(token) = token {
            return self.of_token(token);
        }
        if let (Cookies::Accepted(answer), Some(operator)) = (cookies, &self.operator)
            && let Some(caller) = operator.of_cookie(head, answer)?
        {
            return Ok((caller, Role::Operator));
        }
        match self.access {
            Access::Unauthenticated => Ok((Caller::Unauthenticated, Role::Client)),
            Access::Token(_) => Err(Rejection::NoToken),
        }
    }

    fn of_token(&self, token: Token) -> Result<(Caller, Role), Rejection> {
        let caller = Caller::Bearer(token.digest());
        if self.operator.as_ref().is_some_and(|operator| operator.token == token) {
            return Ok((caller, Role::Operator));
        }
        if self.access == Access::Token(token) {
            return Ok((caller, Role::Client));
        }
        Err(Rejection::WrongToken)
    }

    /// Exchanges a code for the `Set-Cookie` of a login.
    pub(super) fn log_in(&self, code: &str, headers: &HeaderMap) -> Result<HeaderValue, Rejection> {
        let operator = self.operator.as_ref().ok_or(Rejection::WrongCode)?;
        let broken = |error: io::Error| Rejection::Broken(error.to_string());
        let value = operator.logins.redeem(code).map_err(broken)?.ok_or(Rejection::WrongCode)?;
        Ok(operator.set_cookie(&value, COOKIE_TIME.as_secs(), headers))
    }

    /// Completes when the login of a browser has ended. Never, for any other caller.
    pub(super) fn login_over(&self, caller: Caller) -> impl Future<Output = ()> + Send + use<> {
        let login = match (caller, &self.operator) {
            (Caller::Browser(digest), Some(operator)) => Some(operator.logins.over(&digest)),
            _ => None,
        };
        async move {
            match login {
                Some(over) => over.await,
                None => std::future::pending().await,
            }
        }
    }

    /// Ends the logins of a request's cookies, and returns the `Set-Cookie` that removes them.
    pub(super) fn log_out(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let operator = self.operator.as_ref()?;
        operator.cookies(headers).for_each(|value| operator.logins.end(value));
        Some(operator.set_cookie("", 0, headers))
    }
}

impl Operator {
    /// Returns the caller of the request's cookie. `None` without a cookie of this server.
    fn of_cookie(&self, head: &Parts, answer: Answer) -> Result<Option<Caller>, Rejection> {
        let mut values = self.cookies(&head.headers).peekable();
        if values.peek().is_none() {
            return Ok(None);
        }
        // Another port of this host may have set a cookie with the same name.
        let digest = values.find_map(|value| self.logins.find(value));
        let digest = digest.ok_or(Rejection::LoginEnded)?;
        let is_own = accepts_cookie(head, answer);
        is_own.then_some(Some(Caller::Browser(digest))).ok_or(Rejection::CrossSite)
    }

    /// Returns the values of the server's cookie in a request.
    fn cookies<'a>(&'a self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
        lines.flat_map(|line| line.split(';')).filter_map(move |pair| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == self.cookie).then_some(value)
        })
    }

    fn set_cookie(&self, value: &str, seconds: u64, headers: &HeaderMap) -> HeaderValue {
        let name = &self.cookie;
        // Behind a proxy with TLS, no unencrypted request may show the cookie.
        let is_secure =
            headers.get(ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https:"));
        let secure = if is_secure { "; Secure" } else { "" };
        let line =
            format!("{name}={value}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Strict{secure}");
        // Consists of a fixed text, digits, and hexadecimal digits.
        HeaderValue::try_from(line).unwrap_or_else(|_| HeaderValue::from_static(""))
    }
}

/// Returns the value of a header that may occur once at most.
pub(super) fn only<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, Rejection> {
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
