//! The reasons why a text is no source.

/// The reason why a text is no source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The URL is not one that a plugin may come from.
    #[error(
        "`{text}` is refused: {reason}; a path, `https://HOST/FILE.wasm` and `oci://HOST/REPOSITORY:TAG` are accepted, and `http://` for this machine only"
    )]
    Url {
        /// The text, cut.
        text: String,
        /// The fault.
        reason: String,
    },
    /// The text is no reference of a registry.
    #[error(
        "the reference is refused: {reason}; `oci://HOST[:PORT]/REPOSITORY[:TAG][@sha256:DIGEST]` is accepted"
    )]
    Reference {
        /// The fault.
        reason: String,
    },
    /// The text is no name of a plugin.
    #[error(
        "`{text}` is no name of a plugin; 1 to 64 letters, digits, `-`, `_` and `.` are accepted, with a letter or digit first; give one with --name"
    )]
    Name {
        /// The text, cut.
        text: String,
    },
    /// The path cannot be made absolute, or has no text.
    #[error("the path `{text}` cannot be used: {reason}")]
    Path {
        /// The path, cut.
        text: String,
        /// The fault.
        reason: String,
    },
}
