//! Waiting for a place among the calls of a session. The call's own clock does not run here; the queue has its own bound.

use super::Road;
use crate::sandbox::limits;
use crate::session::Admission;
use crate::tool::{ErrorKind, Limit};
use tokio::sync::SemaphorePermit;

/// A call's place, in the session and in its message; free again when dropped.
pub(super) struct Place<'a> {
    _message: Option<SemaphorePermit<'a>>,
    _session: Admission<'a>,
}

/// A place for the call, once one is free.
pub(super) async fn admit<'a>(road: &Road<'a>) -> Result<Place<'a>, ErrorKind> {
    if road.cancel.is_cancelled() {
        return Err(ErrorKind::Cancelled);
    }
    tokio::select! {
        biased;
        () = road.cancel.cancelled() => Err(ErrorKind::Cancelled),
        place = wait(road) => place,
    }
}

/// A timer is made only where there is something to wait for.
async fn wait<'a>(road: &Road<'a>) -> Result<Place<'a>, ErrorKind> {
    let tool = road.tool.definition().name().as_str();
    if road.message.is_none()
        && let Some(place) = road.session.slots().try_admit(tool)
    {
        return Ok(Place { _message: None, _session: place });
    }
    let _waiting = crate::execution::wait(road.tool.share())?;
    let places = async {
        let message = match road.message {
            Some(places) => places.acquire().await.ok(),
            None => None,
        };
        Place { _message: message, _session: road.session.slots().admit(tool).await }
    };
    tokio::time::timeout(limits::QUEUE_TIMEOUT, places).await.map_err(|_| exhausted())
}

fn exhausted() -> ErrorKind {
    let value = u64::try_from(limits::QUEUE_TIMEOUT.as_millis()).unwrap_or(u64::MAX);
    ErrorKind::ResourceExhausted { limit: Limit::Queue, value }
}
