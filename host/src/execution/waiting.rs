//! The places for calls that wait: a flood is refused at once, and leaves places to others.

use super::share::{Full, Grant, Share};
use crate::tool::{ErrorKind, Limit};
use std::sync::Arc;

/// Calls of the process that wait at once. Each holds its input, of up to 1 MiB.
pub const WAITING_CALLS: usize = 1024;

/// Counts a call that begins to wait among those of its owner, until the grant is dropped.
///
/// # Errors
///
/// `resource_exhausted` where too many wait already.
pub(crate) fn wait(queue: &Arc<Share>) -> Result<Grant, ErrorKind> {
    queue.try_take(1).map_err(|Full { bound }| ErrorKind::ResourceExhausted { limit: Limit::Waiting, value: bound })
}
