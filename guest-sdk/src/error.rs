//! The error type of tools, and the conversion from other errors.

use std::error::Error as StdError;
use std::{fmt, io};

use crate::bindings::palisade::tool::types::{InvalidInput, ToolError};

/// The result type of tools and of the functions that they call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of a tool.
///
/// `?` converts any error: `io::Error`, `serde_json::Error`, any type that implements
/// `std::error::Error`, `anyhow::Error`, `String` and `&str`. The message is the error and all its
/// sources, joined with `": "`, without the system's error numbers. If the error or one of its
/// sources is an `io::Error` of the kind `NotFound` or `PermissionDenied`, the kind is kept; all
/// other errors become [`ErrorKind::Failed`].
///
/// Like `anyhow::Error`, this type does not implement `std::error::Error` itself, because that
/// would conflict with the conversion.
#[derive(Clone, PartialEq)]
pub struct Error(ToolError);

/// The kinds of [`Error`], as in the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input conforms to the schema, but is not usable.
    InvalidInput,
    /// An object that the input names does not exist.
    NotFound,
    /// The tool lacks a permission.
    PermissionDenied,
    /// Any other failure.
    Failed,
    /// The tool stopped because the caller cancelled the call.
    Cancelled,
}

impl Error {
    /// Returns an error for input that conforms to the schema, but is not usable. `field` is the
    /// field's name or a JSON pointer to it; `reason` names the problem and the accepted values.
    #[must_use]
    pub fn invalid_input(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self(ToolError::InvalidInput(InvalidInput { field: field.into(), reason: reason.into() }))
    }

    /// Returns an error for an object that does not exist.
    #[must_use]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self(ToolError::NotFound(message.into()))
    }

    /// Returns an error for a missing permission.
    #[must_use]
    pub fn permission_denied(message: impl Into<String>) -> Self {
        Self(ToolError::PermissionDenied(message.into()))
    }

    /// Returns an error for any other failure.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self(ToolError::Failed(message.into()))
    }

    /// Returns the error of a tool that stopped because
    /// [`Context::cancelled`](crate::Context::cancelled) returned true.
    #[must_use]
    pub fn cancelled() -> Self {
        Self(ToolError::Cancelled)
    }

    /// Puts `message` and `": "` before the message. The kind is kept; an error of the kind
    /// `Cancelled` has no message and is unchanged.
    #[must_use]
    pub fn context(mut self, message: impl fmt::Display) -> Self {
        if let Some(text) = self.text() {
            *text = format!("{message}: {text}");
        }
        self
    }

    /// Returns the kind of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self.0 {
            ToolError::InvalidInput(_) => ErrorKind::InvalidInput,
            ToolError::NotFound(_) => ErrorKind::NotFound,
            ToolError::PermissionDenied(_) => ErrorKind::PermissionDenied,
            ToolError::Failed(_) => ErrorKind::Failed,
            ToolError::Cancelled => ErrorKind::Cancelled,
        }
    }

    /// Returns the message without the field: the text for the model.
    #[must_use]
    pub fn message(&self) -> &str {
        match &self.0 {
            ToolError::InvalidInput(InvalidInput { reason: text, .. })
            | ToolError::NotFound(text)
            | ToolError::PermissionDenied(text)
            | ToolError::Failed(text) => text,
            ToolError::Cancelled => "the call was cancelled",
        }
    }

    /// Returns the field of an error of the kind `InvalidInput`.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        match &self.0 {
            ToolError::InvalidInput(InvalidInput { field, .. }) => Some(field),
            _ => None,
        }
    }

    fn text(&mut self) -> Option<&mut String> {
        match &mut self.0 {
            ToolError::InvalidInput(InvalidInput { reason: text, .. })
            | ToolError::NotFound(text)
            | ToolError::PermissionDenied(text)
            | ToolError::Failed(text) => Some(text),
            ToolError::Cancelled => None,
        }
    }
}

/// Adds context to the error of a result.
pub trait ResultExt<T> {
    /// Puts `message` and `": "` before the error's message, as [`Error::context`] does.
    ///
    /// # Errors
    /// The error of this result.
    fn context(self, message: impl fmt::Display) -> Result<T>;

    /// Adds a message that is only built if there is an error.
    ///
    /// # Errors
    /// The error of this result.
    fn with_context<D: fmt::Display>(self, message: impl FnOnce() -> D) -> Result<T>;
}

impl<T, E: Into<Error>> ResultExt<T> for Result<T, E> {
    fn context(self, message: impl fmt::Display) -> Result<T> {
        self.with_context(|| message)
    }

    fn with_context<D: fmt::Display>(self, message: impl FnOnce() -> D) -> Result<T> {
        self.map_err(|error| error.into().context(message()))
    }
}

impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for Error {
    fn from(error: E) -> Self {
        convert(error.into().as_ref())
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        error.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field() {
            Some(field) if !field.is_empty() => write!(f, "{field}: {}", self.message()),
            _ => f.write_str(self.message()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({:?})", self.kind(), self.to_string())
    }
}

fn convert(error: &(dyn StdError + 'static)) -> Error {
    let mut message = String::new();
    let mut make: fn(String) -> Error = Error::failed;
    let mut next = Some(error);
    while let Some(error) = next {
        append(&mut message, &text_of(error));
        make = constructor(error).unwrap_or(make);
        next = error.source();
    }
    make(message)
}

/// Returns the text of an error without the system's error number, which in the sandbox is a WASI
/// number and has another meaning elsewhere.
fn text_of(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    if let Some(code) = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
        let length = text.strip_suffix(&format!(" (os error {code})")).map_or(text.len(), str::len);
        text.truncate(length);
    }
    text
}

/// Appends a source's text, unless the message ends with it: many errors repeat their source.
fn append(message: &mut String, text: &str) {
    if message.is_empty() {
        message.push_str(text);
    } else if !message.ends_with(text) {
        message.push_str(": ");
        message.push_str(text);
    }
}

fn constructor(error: &(dyn StdError + 'static)) -> Option<fn(String) -> Error> {
    let error = error.downcast_ref::<io::Error>()?;
    match error.kind() {
        io::ErrorKind::NotFound => Some(Error::not_found),
        io::ErrorKind::PermissionDenied => Some(Error::permission_denied),
        // `source()` of an `io::Error` skips the error that it wraps.
        _ => error.get_ref().and_then(|inner| constructor(inner)),
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
