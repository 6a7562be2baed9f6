//! The queue of a session's calls. The call's clock does not run here; the queue has its own time
//! limit.

use super::pipeline::Road;
use crate::sandbox::limits::{self, QUEUE_TIMEOUT};
use crate::session::Admission;
use crate::tool::{ErrorKind, Limit};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

/// A call's permits, of its session and its message, released on drop.
pub(super) struct Place<'a> {
    _session: Admission<'a>,
    _message: Option<SemaphorePermit<'a>>,
    /// The remaining time for which the call may wait for a sandbox. All waits of a call share one
    /// limit.
    pub(super) patience: Duration,
}

/// Waits for the call's permits. `waited` is the time that the call has already spent in queues.
pub(super) async fn admit<'a>(road: &Road<'a>, waited: Duration) -> Result<Place<'a>, ErrorKind> {
    if road.cancel.is_cancelled() {
        return Err(ErrorKind::Cancelled);
    }
    let patience = QUEUE_TIMEOUT.saturating_sub(waited);
    match try_admit(road, patience) {
        Some(place) => Ok(place),
        // Boxed, because few calls wait and the state of a call is moved often.
        None => Box::pin(wait(road, patience)).await,
    }
}

/// Takes the permits without waiting, and so without a timer.
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

/// Waits in the queue. The message's permit comes last, so that a call waiting for its tool's limit
/// does not hold up other calls of the message.
async fn turn<'a>(road: &Road<'a>, patience: Duration) -> Result<Place<'a>, ErrorKind> {
    let _waiting = crate::execution::wait(road.tool.queue())?;
    let begun = Instant::now();
    let places = async {
        let session = road.session.slots().admit(name(road)).await;
        let message = match road.message {
            Some(places) => places.acquire().await.ok(),
            None => None,
        };
        Place {
            _session: session,
            _message: message,
            patience: patience.saturating_sub(begun.elapsed()),
        }
    };
    tokio::time::timeout(patience, places).await.map_err(|_| exhausted())
}

/// Returns the error of a call that timed out in the queue.
pub(super) fn exhausted() -> ErrorKind {
    ErrorKind::ResourceExhausted { limit: Limit::Queue, value: limits::QUEUE_MILLIS }
}

fn name<'a>(road: &'a Road<'_>) -> &'a str {
    road.tool.definition().name().as_str()
}
