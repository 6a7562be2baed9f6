//! Slots for queued calls: a flood of calls is refused at once and leaves slots for other owners.

use super::share::{Full, Grant, Share};
use crate::tool::{ErrorKind, Limit};
use std::sync::Arc;

/// The most queued calls in the process. Each holds its input of up to 1 MiB.
pub const WAITING_CALLS: usize = 1024;

/// Takes a queue slot for a call of this owner until the grant is dropped.
///
/// # Errors
///
/// `resource_exhausted` if too many calls are queued.
pub(crate) fn enter_queue(queue: &Arc<Share>) -> Result<Grant, ErrorKind> {
    queue.try_take(1).map_err(|Full { bound }| ErrorKind::ResourceExhausted {
        limit: Limit::Waiting,
        value: bound,
    })
}
