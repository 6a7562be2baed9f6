//! The credentials of a request: a bearer token, or both halves of the operator's login in a
//! browser.

use super::client_address::ClientAddress;
use super::login_halves::{Halves, PAGE_KEY};
use super::logins::{LOGIN_TIME, Logins};
use super::rejection::Rejection;
use super::same_origin::{Answer, accepts_login};
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
    /// A browser of the operator, with the login of this digest.
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

/// The role of a caller. Each service decides which rights a role has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// A client: it makes calls, and answers for none of them.
    Client,
    /// The operator, who has the operator's token or logged in with a code.
    Operator,
}

/// Whether the login of a browser counts at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Browsers {
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

/// The credentials that a browser gets for a code.
pub(super) struct LoggedIn {
    /// The `Set-Cookie` with one half of the login.
    pub(super) cookie: HeaderValue,
    /// The other half.
    pub(super) page_key: String,
}

#[derive(Debug)]
struct Operator {
    token: Token,
    logins: Logins,
    /// The name of the cookie. Browsers send the cookies of a host to each of its ports, so that
    /// servers at two ports need two names.
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
        browsers: Browsers,
    ) -> Result<(Caller, Role), Rejection> {
        let token = match (&self.access, &self.operator) {
            (Access::Unauthenticated, None) => None,
            _ => only(&head.headers, &AUTHORIZATION)?.and_then(bearer).map(Token::from_header),
        };
        if let Some(token) = token {
            return self.of_token(token);
        }
        if let (Browsers::Accepted(answer), Some(operator)) = (browsers, &self.operator)
            && let Some(caller) = operator.of_login(head, answer)?
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

    /// Exchanges a code for a login.
    pub(super) fn log_in(&self, code: &str, headers: &HeaderMap) -> Result<LoggedIn, Rejection> {
        let operator = self.operator.as_ref().ok_or(Rejection::WrongCode)?;
        let broken = |error: io::Error| Rejection::Broken(error.to_string());
        let redeemed = operator.logins.redeem(code).map_err(broken)?;
        let Halves { cookie, page_key } = redeemed.ok_or(Rejection::WrongCode)?;
        let cookie = operator.set_cookie(&cookie, LOGIN_TIME.as_secs(), headers);
        Ok(LoggedIn { cookie, page_key })
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

    /// Ends the login of a request, if it has not ended, and returns the `Set-Cookie` that removes
    /// its cookie. A cookie without a page key ends no login.
    pub(super) fn log_out(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, Rejection> {
        let Some(operator) = &self.operator else { return Ok(None) };
        operator.shown(headers)?.iter().flatten().for_each(|halves| operator.logins.end(halves));
        Ok(Some(operator.set_cookie("", 0, headers)))
    }
}

impl Operator {
    /// Returns the caller of the request's login. `None` without any half of a login.
    fn of_login(&self, head: &Parts, answer: Answer) -> Result<Option<Caller>, Rejection> {
        let Some(shown) = self.shown(&head.headers)? else { return Ok(None) };
        let digest = shown.iter().find_map(|halves| self.logins.find(halves));
        let digest = digest.ok_or(Rejection::LoginEnded)?;
        let is_own = accepts_login(head, answer);
        is_own.then_some(Some(Caller::Browser(digest))).ok_or(Rejection::CrossSite)
    }

    /// Returns the halves that a request shows, once for each cookie of this name: another port of
    /// this host may have set one. `None` without any half, and an empty list for a page key
    /// without a cookie.
    fn shown<'a>(&self, headers: &'a HeaderMap) -> Result<Option<Vec<Halves<&'a str>>>, Rejection> {
        let cookies: Vec<&str> = self.cookies(headers).collect();
        match only(headers, &PAGE_KEY)? {
            None if cookies.is_empty() => Ok(None),
            None => Err(Rejection::NoPageKey),
            Some(page_key) => {
                let halves = cookies.into_iter().map(|cookie| Halves { cookie, page_key });
                Ok(Some(halves.collect()))
            }
        }
    }

    /// Returns the values of the server's cookie in a request.
    fn cookies<'a>(&self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
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
        _ if *name == PAGE_KEY => Rejection::LoginEnded,
        _ => Rejection::WrongToken,
    }
}

fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

#[cfg(test)]
mod tests;
