//! Waiting for a place among the calls of a session. The call's own clock does not run here; the queue has its own bound.

use super::Road;
use crate::sandbox::limits;
use crate::session::Admission;
use crate::tool::{ErrorKind, Limit};

/// A place for the call, once one is free.
pub(super) async fn admit<'a>(road: &Road<'a>) -> Result<Admission<'a>, ErrorKind> {
    let tool = road.tool.definition().name().as_str();
    if road.cancel.is_cancelled() {
        return Err(ErrorKind::Cancelled);
    }
    if let Some(place) = road.slots.try_admit(tool) {
        return Ok(place);
    }
    tokio::select! {
        biased;
        () = road.cancel.cancelled() => Err(ErrorKind::Cancelled),
        place = tokio::time::timeout(limits::QUEUE_TIMEOUT, road.slots.admit(tool)) => place.map_err(|_| exhausted()),
    }
}

fn exhausted() -> ErrorKind {
    let value = u64::try_from(limits::QUEUE_TIMEOUT.as_millis()).unwrap_or(u64::MAX);
    ErrorKind::ResourceExhausted { limit: Limit::Queue, value }
}
