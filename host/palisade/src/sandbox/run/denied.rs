//! The end of a call for whose answer to the guest there is no memory.

use crate::tool::budget::Exhausted;

/// A host function found no memory for its answer, which ends the call.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("no memory for the answer of a host function: {0}")]
pub(super) struct Denied(pub(super) Exhausted);
