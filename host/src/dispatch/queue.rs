//! Waiting for a place among the calls of a session. The call's own clock does not run here; the queue has its own bound.

use super::Road;
use crate::sandbox::limits::{self, QUEUE_TIMEOUT};
use crate::session::Admission;
use crate::tool::{ErrorKind, Limit};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

/// A call's place, in the session and in its message; free again when dropped.
pub(super) struct Place<'a> {
    _session: Admission<'a>,
    _message: Option<SemaphorePermit<'a>>,
    /// How much longer the call may wait for a sandbox: all that it waits for is bounded together.
    pub(super) patience: Duration,
}

/// A place for the call, once one is free, where it has waited so long before.
pub(super) async fn admit<'a>(road: &Road<'a>, waited: Duration) -> Result<Place<'a>, ErrorKind> {
    if road.cancel.is_cancelled() {
        return Err(ErrorKind::Cancelled);
    }
    let patience = QUEUE_TIMEOUT.saturating_sub(waited);
    match try_admit(road, patience) {
        Some(place) => Ok(place),
        // In a box, as is all that most calls do without: their state is moved about.
        None => Box::pin(wait(road, patience)).await,
    }
}

/// A place without waiting, and so without a timer.
fn try_admit<'a>(road: &Road<'a>, patience: Duration) -> Option<Place<'a>> {
    let session = road.session.slots().try_admit(name(road))?;
    let message = road.message.map(Semaphore::try_acquire).transpose().ok()?;
    Some(Place { _session: session, _message: message, patience })
}

async fn wait<'a>(road: &Road<'a>, patience: Duration) -> Result<Place<'a>, ErrorKind> {
    tokio::select! {
        biased;
        () = road.cancel.cancelled() => Err(ErrorKind::Cancelled),
        place = turn(road, patience) => place,
    }
}

/// The message's place comes last, so that a call which waits for its tool's own cap holds up no other call of the message.
async fn turn<'a>(road: &Road<'a>, patience: Duration) -> Result<Place<'a>, ErrorKind> {
    let _waiting = crate::execution::wait(road.tool.queue())?;
    let begun = Instant::now();
    let places = async {
        let session = road.session.slots().admit(name(road)).await;
        let message = match road.message {
            Some(places) => places.acquire().await.ok(),
            None => None,
        };
        Place { _session: session, _message: message, patience: patience.saturating_sub(begun.elapsed()) }
    };
    tokio::time::timeout(patience, places).await.map_err(|_| exhausted())
}

/// Nothing became free in time.
pub(super) fn exhausted() -> ErrorKind {
    ErrorKind::ResourceExhausted { limit: Limit::Queue, value: limits::QUEUE_MILLIS }
}

fn name<'a>(road: &'a Road<'_>) -> &'a str {
    road.tool.definition().name().as_str()
}
