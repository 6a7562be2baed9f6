//! Why a tool could not do its work, and how any other error becomes one of these.

use std::error::Error as StdError;
use std::{fmt, io};

use crate::bindings::palisade::tool::types::{InvalidInput, ToolError};

/// The result of a tool, and of whatever it calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a tool could not do its work.
///
/// `?` makes one of any error: of `io::Error`, `serde_json::Error`, any type that implements `std::error::Error`, of `anyhow::Error`, and of
/// `String` and `&str`. The message is the error and all its sources, joined with `": "`, without the system's error numbers. Where the
/// error or one of its sources is an `io::Error` of the kind `NotFound` or `PermissionDenied`, the kind is kept; everything else becomes
/// [`ErrorKind::Failed`].
///
/// The type does not implement `std::error::Error` itself, for the reason that `anyhow::Error` does not.
#[derive(Clone, PartialEq)]
pub struct Error(ToolError);

/// The kinds of [`Error`], which are those of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input conforms to the schema, yet cannot be used.
    InvalidInput,
    /// Something that the input names does not exist.
    NotFound,
    /// Something that the tool needs is not permitted.
    PermissionDenied,
    /// Everything else.
    Failed,
    /// The tool stopped because the caller wanted it to.
    Cancelled,
}

impl Error {
    /// The input conforms to the schema, yet cannot be used. `field` is the field's name or a JSON pointer to it; `reason` says what is
    /// wrong with it and what would be accepted.
    #[must_use]
    pub fn invalid_input(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self(ToolError::InvalidInput(InvalidInput { field: field.into(), reason: reason.into() }))
    }

    /// Something that the input names does not exist.
    #[must_use]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self(ToolError::NotFound(message.into()))
    }

    /// Something that the tool needs is not permitted.
    #[must_use]
    pub fn permission_denied(message: impl Into<String>) -> Self {
        Self(ToolError::PermissionDenied(message.into()))
    }

    /// Everything else.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self(ToolError::Failed(message.into()))
    }

    /// The tool stopped because [`Context::cancelled`](crate::Context::cancelled) returned true.
    #[must_use]
    pub fn cancelled() -> Self {
        Self(ToolError::Cancelled)
    }

    /// Puts `message` and `": "` before the message. The kind stays; an error of the kind `Cancelled` has no message and stays as it is.
    #[must_use]
    pub fn context(mut self, message: impl fmt::Display) -> Self {
        if let Some(text) = self.text() {
            *text = format!("{message}: {text}");
        }
        self
    }

    /// What kind of error this is.
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

    /// The message without the field: what the model reads.
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

    /// The field of an error of the kind `InvalidInput`.
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

/// Adds what was being done to the error of a result.
pub trait ResultExt<T> {
    /// Puts `message` and `": "` before the error's message, as [`Error::context`] does.
    ///
    /// # Errors
    /// The error of this result.
    fn context(self, message: impl fmt::Display) -> Result<T>;

    /// The same with a message that is made only when it is needed.
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

/// What the error says, without the system's number: in the sandbox that is a number of WASI, which means something else everywhere else.
fn text_of(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    if let Some(code) = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
        let length = text.strip_suffix(&format!(" (os error {code})")).map_or(text.len(), str::len);
        text.truncate(length);
    }
    text
}

/// Many errors already say what their source says; twice is noise.
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
        // An `io::Error` around another is not its source.
        _ => error.get_ref().and_then(|inner| constructor(inner)),
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
