//! The refusals of requests, each with a stable code.

use crate::host_name::HostName;
use crate::limits;
use crate::target::Target;
use http::Method;
use std::fmt::Display;

/// The reason why a request is refused before it is sent, or its response before it is read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetRefused {
    /// The URL is not one that a request may have.
    #[error(
        "the URL is refused: {reason}; `https://host/path` is accepted, with a port if need be"
    )]
    Url {
        /// The fault of the URL.
        reason: String,
    },
    /// The class of the tool does not allow the method.
    #[error(
        "a tool of class {class} sends no {method} request; class read, write and execute send GET and HEAD, class network sends every granted method"
    )]
    Class {
        /// The class of the tool.
        class: palisade::SideEffects,
        /// The method of the request.
        method: Method,
    },
    /// No rule of the plugin allows the request.
    #[error("no grant allows {method} {target}")]
    NoRule {
        /// The method of the request.
        method: Method,
        /// The target of the request.
        target: Target,
    },
    /// The host has no address that the rule reaches.
    #[error(
        "`{host}` has no address that its grant reaches: {found} of its addresses are private or reserved"
    )]
    Address {
        /// The host.
        host: HostName,
        /// The number of addresses that the name has.
        found: usize,
    },
    /// The name of the host cannot be resolved.
    #[error("the name `{host}` cannot be resolved: {reason}")]
    Name {
        /// The host.
        host: HostName,
        /// The error of the resolver.
        reason: String,
    },
    /// The call has too many requests under way.
    #[error(
        "at most {} requests of a call are under way at once; end one first",
        limits::CONNECTIONS_OF_CALL
    )]
    Connections,
    /// A request with a secret asks for a part of a document.
    #[error(
        "a request that carries a secret asks for no part of a document (`Range`), because a secret that the server repeats would come back in parts; leave out the header"
    )]
    Part,
    /// A secret is not sent without encryption.
    #[error(
        "the secret `{name}` is not sent to `{target}` without encryption; request it by `https://`"
    )]
    PlainSecret {
        /// The name of the secret.
        name: String,
        /// The target of the request.
        target: Target,
    },
    /// A request that carries a secret without encryption goes to a private address alone.
    #[error(
        "`{host}` has a public address, to which no secret is sent without encryption; request it by `https://`"
    )]
    PlainAddress {
        /// The host.
        host: HostName,
    },
    /// The secret has no usable value.
    #[error("the secret `{name}` has no usable value: {reason}")]
    SecretValue {
        /// The name of the secret.
        name: String,
        /// The fault of its value.
        reason: &'static str,
    },
    /// The response to a request with a secret is encoded, so that a repeated secret is not found.
    #[error(
        "the server encoded its response (`{encoding}`) to a request with a secret, which asked for none; such a response is not read"
    )]
    Encoded {
        /// The encoding, if it is a usual one.
        encoding: &'static str,
    },
    /// A request that has no body comes with one.
    #[error(
        "a {method} request has no body: a server that does not read it would take it for another request; send it with POST, or without a body"
    )]
    Body {
        /// The method of the request.
        method: Method,
    },
    /// No rule can allow the method.
    #[error(
        "the method of the request is none of GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS, which rules can allow"
    )]
    Method,
}

impl NetRefused {
    /// Returns the stable code of the refusal.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Url { .. } => "url_invalid",
            Self::Class { .. } => "class_refused",
            Self::NoRule { .. } => "no_rule",
            Self::Address { .. } => "address_refused",
            Self::Name { .. } => "name_unresolved",
            Self::Connections => "too_many_requests",
            Self::Part => "part_of_secret_refused",
            Self::PlainSecret { .. } | Self::PlainAddress { .. } => "secret_unencrypted",
            Self::SecretValue { .. } => "secret_unusable",
            Self::Encoded { .. } => "response_encoded",
            Self::Body { .. } => "body_refused",
            Self::Method => "method_refused",
        }
    }

    /// Returns what the operator can do about the refusal. No model reads it.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::NoRule { method, target } => Some(format!(
                "the operator can grant it (`palisade grant PLUGIN net \"{method} {target}\"`, with `private` at its end for a host of a private network)"
            )),
            Self::Address { .. } => Some(
                "a grant for this exact name that ends with `private` reaches private addresses, and none reaches metadata services"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    pub(crate) fn url(reason: impl Display) -> Self {
        Self::Url { reason: reason.to_string() }
    }
}
