//! The error of a plugin with functions of other types than the contract's.

use crate::sandbox::error_text::error_line;

/// The error of a plugin whose functions have the right names but other types. Only an instance
/// reveals it.
#[derive(Debug, thiserror::Error)]
#[error("the types of its functions are not those of the contract: {0}")]
pub(super) struct TypeMismatch(String);

impl TypeMismatch {
    pub(super) fn wrap(error: &wasmtime::Error) -> wasmtime::Error {
        wasmtime::Error::new(Self(error_line(error)))
    }
}
