//! A registry: its requests, with the token or the credentials that it asks for.

use crate::challenge::{Challenge, in_query};
use crate::credentials::{Credentials, CredentialsOf};
use crate::limits;
use crate::redirects::{follow, location, reach, said, send, shown, target};
use crate::reference::OciReference;
use crate::transfer_error::TransferError;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use palisade::tool::Digest;
use palisade_net::{Answer, Exchange, Network, Scheme, Target};
use serde::Deserialize;
use std::cell::Cell;
use std::fmt;

/// The access to a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Pull,
    Push,
}

impl Access {
    fn actions(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::Push => "pull,push",
        }
    }
}

/// A repository of a registry.
pub(crate) struct Registry<'a> {
    network: &'a Network,
    reference: &'a OciReference,
    access: Access,
    credentials: Option<Credentials>,
    /// The credentials or the token that the registry has asked for. They are shown to no one.
    authorization: Option<HeaderValue>,
    /// Whether a server got credentials or a token.
    has_sent: Cell<bool>,
}

impl fmt::Debug for Registry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("reference", &self.reference).finish_non_exhaustive()
    }
}

/// A request to a registry.
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) headers: Vec<(HeaderName, String)>,
    pub(crate) body: Bytes,
    pub(crate) most: u64,
}

impl Call {
    pub(crate) fn new(method: Method, url: String) -> Self {
        Self { method, url, headers: Vec::new(), body: Bytes::new(), most: limits::MANIFEST }
    }

    pub(crate) fn with(mut self, name: HeaderName, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// The answer of a server of tokens. Some name the token in one way, some in the other.
#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl<'a> Registry<'a> {
    pub(crate) fn new(
        network: &'a Network,
        reference: &'a OciReference,
        access: Access,
        credentials: &CredentialsOf,
    ) -> Result<Self, TransferError> {
        let credentials = credentials.of(reference.registry())?;
        let has_sent = Cell::new(false);
        Ok(Self { network, reference, access, credentials, authorization: None, has_sent })
    }

    /// Returns the reference to the artifact.
    pub(crate) fn reference(&self) -> &OciReference {
        self.reference
    }

    /// Sends a request. If the registry itself asks for it, once more with a token or the
    /// credentials. The demand of another server, to which the registry led, is refused.
    pub(crate) fn send(&mut self, call: &Call) -> Result<Answer, TransferError> {
        let (answer, from) = self.attempt(call)?;
        // A token may also have expired.
        if answer.status != StatusCode::UNAUTHORIZED {
            return self.permitted(answer);
        }
        if from != self.server()? {
            // The name of the other server may repeat what the registry got.
            let other = match self.has_sent.get() {
                false => from.to_string(),
                true => "another server".to_owned(),
            };
            return Err(self.refused(&format!(
                "it led to {other}, which asks for credentials, and they are for the registry alone"
            )));
        }
        self.authorization = Some(self.authorize(&answer)?);
        let (answer, _) = self.attempt(call)?;
        self.permitted(answer)
    }

    /// Sends a request once. Returns the target that answered as well.
    fn attempt(&self, call: &Call) -> Result<(Answer, Target), TransferError> {
        let mut headers = HeaderMap::new();
        for (name, value) in &call.headers {
            let value =
                HeaderValue::from_str(value).map_err(|_| self.refused("a header is invalid"))?;
            headers.insert(name.clone(), value);
        }
        // An upload may lead to another server, which gets no credentials.
        let (own, server) = (self.server()?, target(&call.url)?);
        let is_registry = own == server;
        if let Some(value) = self.authorization.as_ref().filter(|_| is_registry) {
            headers.insert(header::AUTHORIZATION, value.clone());
            self.has_sent.set(true);
        }
        let exchange = Exchange {
            method: call.method.clone(),
            url: call.url.clone(),
            headers,
            body: call.body.clone(),
            reach: reach(&own, &server),
            most: call.most,
        };
        match call.method == Method::GET {
            true => follow(self.network, exchange),
            false => Ok((send(self.network, exchange)?, server)),
        }
    }

    fn server(&self) -> Result<Target, TransferError> {
        target(&self.reference.url(""))
    }

    /// Returns the header that a challenge asks for.
    fn authorize(&self, answer: &Answer) -> Result<HeaderValue, TransferError> {
        let challenges = answer.headers.get_all(header::WWW_AUTHENTICATE).iter();
        let mut known = challenges.filter_map(|value| Challenge::parse(value.to_str().ok()?));
        match known.next() {
            Some(Challenge::Basic) => {
                let credentials = self.credentials.as_ref().and_then(Credentials::header);
                credentials.ok_or_else(|| self.refused("it wants a user and a password"))
            }
            Some(Challenge::Bearer { realm, service, scope }) => {
                self.token(&realm, service.as_deref(), scope)
            }
            None => Err(self.refused("it asks for something that this program does not know")),
        }
    }

    /// Fetches a token, with the credentials for the registry if there are any.
    fn token(
        &self,
        realm: &str,
        service: Option<&str>,
        scope: Option<String>,
    ) -> Result<HeaderValue, TransferError> {
        let own =
            || format!("repository:{}:{}", self.reference.repository(), self.access.actions());
        // The first request of a push reads, and a token for reading would be refused later.
        let scope = in_query(&match self.access {
            Access::Pull => scope.unwrap_or_else(own),
            Access::Push => own(),
        });
        let service = service.map(|service| format!("service={}&", in_query(service)));
        let separator = if realm.contains('?') { '&' } else { '?' };
        let url = format!("{realm}{separator}{}scope={scope}", service.unwrap_or_default());
        let own = self.server()?;
        let server = target(&url)?;
        let mut headers = HeaderMap::new();
        if let Some(value) = self.credentials.as_ref().and_then(Credentials::header) {
            headers.insert(header::AUTHORIZATION, value);
            self.has_sent.set(true);
        }
        if own.scheme == Scheme::Https && server.scheme == Scheme::Http {
            return Err(self.refused("it sends the credentials to an unencrypted server"));
        }
        let exchange = Exchange {
            method: Method::GET,
            url: url.clone(),
            headers,
            body: Bytes::new(),
            reach: reach(&own, &server),
            most: limits::TOKEN,
        };
        // A redirect of credentials is not followed.
        let answer = send(self.network, exchange)?;
        if !answer.status.is_success() {
            return Err(match answer.status {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                    self.refused("its server of tokens gives none for these credentials")
                }
                _ => self.failure(&url, &answer),
            });
        }
        let token: Token = serde_json::from_slice(&answer.body)
            .map_err(|_| self.refused("its server of tokens sent none"))?;
        let token = token.token.or(token.access_token).filter(|token| !token.is_empty());
        let token = token.ok_or_else(|| self.refused("its server of tokens sent none"))?;
        let value = HeaderValue::from_str(&format!("Bearer {token}"));
        let mut value = value.map_err(|_| self.refused("its server of tokens sent none"))?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// Turns the refusal of an access into its error.
    fn permitted(&self, answer: Answer) -> Result<Answer, TransferError> {
        match answer.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let said = self.said(&answer);
                let reason = format!("it answered {}{said}", answer.status.as_u16());
                Err(self.refused(&reason))
            }
            _ => Ok(answer),
        }
    }

    /// Returns the error of a request that failed.
    fn failure(&self, url: &str, answer: &Answer) -> TransferError {
        let said = self.said(answer);
        TransferError::Status { url: shown(url), status: answer.status.as_u16(), said }
    }

    /// Returns what the body of a failure says. A server that got credentials or a token may repeat
    /// them, and is not quoted.
    fn said(&self, answer: &Answer) -> String {
        if self.has_sent.get() { String::new() } else { said(answer) }
    }

    fn refused(&self, reason: &str) -> TransferError {
        TransferError::Access {
            registry: self.reference.registry().to_owned(),
            reason: reason.to_owned(),
        }
    }

    /// Returns an error without the words of a server that got credentials or a token: it may
    /// repeat them in a URL, a host name or a manifest.
    pub(crate) fn without_its_words(&self, error: TransferError) -> TransferError {
        if !self.has_sent.get() {
            return error;
        }
        let url = format!("oci://{}", self.reference);
        match error {
            TransferError::Exchange { url: asked, reason }
                if target(&asked)
                    .is_ok_and(|asked| self.server().is_ok_and(|own| own == asked)) =>
            {
                TransferError::Exchange { url, reason }
            }
            TransferError::Exchange { .. } | TransferError::Redirect { .. } => self.refused(
                "it led to another place, and the request there failed; since it got credentials, \
                 the place is not shown",
            ),
            TransferError::Status { status, said, .. } => {
                TransferError::Status { url, status, said }
            }
            TransferError::Layout { .. } => TransferError::Layout {
                reason: "the registry got credentials, so that its words are not shown".to_owned(),
            },
            error => error,
        }
    }

    /// Fetches a manifest by its tag or digest. `None` if there is none.
    pub(crate) fn manifest(&mut self, accept: &str) -> Result<Option<Vec<u8>>, TransferError> {
        let digest = self.reference.digest().map(|digest| digest.to_string());
        let name = digest.or_else(|| self.reference.tag().map(str::to_owned)).unwrap_or_default();
        let url = self.reference.url(&format!("manifests/{name}"));
        let answer =
            self.send(&Call::new(Method::GET, url.clone()).with(header::ACCEPT, accept))?;
        match answer.status {
            StatusCode::NOT_FOUND => Ok(None),
            other if other.is_success() => Ok(Some(answer.body)),
            _ => Err(self.failure(&url, &answer)),
        }
    }

    /// Fetches a blob of at most `most` bytes.
    pub(crate) fn blob(&mut self, digest: Digest, most: u64) -> Result<Vec<u8>, TransferError> {
        let url = self.reference.url(&format!("blobs/{digest}"));
        let answer = self.send(&Call { most, ..Call::new(Method::GET, url.clone()) })?;
        match answer.status.is_success() {
            true => Ok(answer.body),
            false => Err(self.failure(&url, &answer)),
        }
    }

    /// Uploads a blob in one piece, unless the registry has it.
    pub(crate) fn upload(&mut self, digest: Digest, bytes: &Bytes) -> Result<(), TransferError> {
        let known = self.reference.url(&format!("blobs/{digest}"));
        if self.send(&Call::new(Method::HEAD, known))?.status.is_success() {
            return Ok(());
        }
        let begin = self.reference.url("blobs/uploads/");
        let answer = self.send(&Call::new(Method::POST, begin.clone()))?;
        if answer.status != StatusCode::ACCEPTED {
            return Err(self.failure(&begin, &answer));
        }
        let place = location(&begin, &answer)?;
        let separator = if place.contains('?') { '&' } else { '?' };
        let url = format!("{place}{separator}digest={}", in_query(&digest.to_string()));
        let put = Call { body: bytes.clone(), ..Call::new(Method::PUT, url.clone()) };
        let answer = self.send(&put.with(header::CONTENT_TYPE, "application/octet-stream"))?;
        match answer.status {
            StatusCode::CREATED => Ok(()),
            _ => Err(self.failure(&url, &answer)),
        }
    }

    /// Puts a manifest under the tag of the reference.
    pub(crate) fn put_manifest(&mut self, accept: &str, text: &Bytes) -> Result<(), TransferError> {
        let tag = self.reference.tag().ok_or(TransferError::NoTag)?;
        let url = self.reference.url(&format!("manifests/{tag}"));
        let put = Call { body: text.clone(), ..Call::new(Method::PUT, url.clone()) };
        let answer = self.send(&put.with(header::CONTENT_TYPE, accept))?;
        match answer.status {
            StatusCode::CREATED => Ok(()),
            _ => Err(self.failure(&url, &answer)),
        }
    }
}
