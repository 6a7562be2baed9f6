//! The reasons why a transfer fails.

use palisade::tool::Digest;
use palisade_net::ExchangeError;
use palisade_trust::SignatureError;
use std::io;
use std::path::PathBuf;

/// The reason why a plugin cannot be fetched or published. Texts of servers are cut and escaped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// A file cannot be read.
    #[error("cannot read `{}`: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error, or the limit.
        reason: io::Error,
    },
    /// The file beside a plugin that is published is no signature.
    #[error("`{}` is not published: {reason}", path.display())]
    Signature {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: SignatureError,
    },
    /// The exchange with a server failed.
    #[error("`{url}`: {reason}")]
    Exchange {
        /// The URL, without its query.
        url: String,
        /// The reason.
        reason: ExchangeError,
    },
    /// A redirect is not followed.
    #[error("the redirect of `{url}` is not followed: {reason}")]
    Redirect {
        /// The URL, without its query.
        url: String,
        /// The reason.
        reason: String,
    },
    /// A server answered with the status of a failure.
    #[error("`{url}`: the server answered {status}{said}")]
    Status {
        /// The URL, without its query.
        url: String,
        /// The status.
        status: u16,
        /// The explanation of the server, with a separator, if there is one.
        said: String,
    },
    /// The registry refuses the access.
    #[error(
        "the registry `{registry}` refuses the access: {reason}; `docker login {registry}` stores credentials, or set PALISADE_REGISTRY={registry}, PALISADE_REGISTRY_USER and PALISADE_REGISTRY_PASSWORD"
    )]
    Access {
        /// The registry.
        registry: String,
        /// The reason.
        reason: String,
    },
    /// The credentials cannot be read.
    #[error("the credentials in `{}` cannot be used: {reason}", path.display())]
    Credentials {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// The artifact has another layout.
    #[error(
        "the artifact has another layout: {reason}; accepted is a manifest with a config of type `application/vnd.wasm.config.v0+json` and one layer of type `application/wasm`, as `palisade publish` and `wkg oci push` make it"
    )]
    Layout {
        /// The difference.
        reason: String,
    },
    /// The bytes are not those that were named.
    #[error("the {part} has other bytes than its digest says: {found}, and {named} was named")]
    OtherBytes {
        /// `manifest`, `layer` or `file`.
        part: &'static str,
        /// The digest of the bytes.
        found: Digest,
        /// The digest that was named.
        named: Digest,
    },
    /// The bytes are no component.
    #[error("the file is no WebAssembly component: {reason}; archives are not unpacked")]
    NoComponent {
        /// The reason.
        reason: String,
    },
    /// The tag has other bytes already.
    #[error(
        "`{reference}` exists with other bytes ({found}); another tag is accepted, or --replace"
    )]
    Exists {
        /// The reference.
        reference: String,
        /// The digest of its layer.
        found: String,
    },
    /// An artifact is published under a tag.
    #[error("a digest names what exists already; `oci://HOST/REPOSITORY:TAG` is accepted")]
    NoTag,
}
