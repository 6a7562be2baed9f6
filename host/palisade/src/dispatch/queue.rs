//! The queue of a session's calls. The call's clock does not run here; the queue has its own time
//! limit.

use super::approve::check_not_revoked;
use super::errors::queue_timeout;
use super::pipeline::Pipeline;
use crate::execution::enter_queue;
use crate::sandbox::limits::QUEUE_TIMEOUT;
use crate::session::{SessionPermits, Slots};
use crate::tool::ErrorKind;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

/// The wait after which the approval is asked for again. That reads files, and a shorter wait adds
/// little to the two seconds in which a host notices a revocation.
const LONG_WAIT: Duration = Duration::from_millis(100);

/// A call's slots, of its session and its message, released on drop.
pub(super) struct CallPermits<'a> {
    _session: SessionPermits<'a>,
    _message: Option<SemaphorePermit<'a>>,
    /// The remaining time for which the call may wait for a sandbox. All waits of a call share one
    /// limit.
    pub(super) patience: Duration,
}

/// Waits for the call's slots. `waited` is the time that the call has already spent in queues. A
/// call that is stopped meanwhile does not begin, also if a slot comes free before its cancellation
/// arrives, nor does one whose plugin is revoked meanwhile.
pub(super) async fn admit<'a>(
    pipeline: &Pipeline<'a>,
    waited: Duration,
) -> Result<CallPermits<'a>, ErrorKind> {
    if pipeline.cancel.is_cancelled() {
        return Err(ErrorKind::Cancelled);
    }
    let patience = QUEUE_TIMEOUT.saturating_sub(waited);
    let permits = match try_admit(pipeline, patience) {
        Some(permits) => permits,
        // Boxed, because few calls wait and the state of a call is moved often.
        None => {
            Box::pin(async {
                let permits = wait(pipeline, patience).await?;
                if patience.saturating_sub(permits.patience) >= LONG_WAIT {
                    check_not_revoked(pipeline).await?;
                }
                Ok::<_, ErrorKind>(permits)
            })
            .await?
        }
    };
    pipeline.check_not_stopped()?;
    Ok(permits)
}

/// Returns the slots that a call takes. A call that another call makes takes none of the session,
/// since the other call holds it.
fn slots(pipeline: &Pipeline<'_>) -> Slots {
    match pipeline.requester.parent {
        Some(_) => Slots::Tool,
        None => Slots::ToolAndSession,
    }
}

/// Takes the slots without waiting, and so without a timer.
fn try_admit<'a>(pipeline: &Pipeline<'a>, patience: Duration) -> Option<CallPermits<'a>> {
    let session = pipeline.session.concurrency().try_admit(&pipeline.tool, slots(pipeline))?;
    let message = pipeline.message.slots.map(Semaphore::try_acquire).transpose().ok()?;
    Some(CallPermits { _session: session, _message: message, patience })
}

async fn wait<'a>(
    pipeline: &Pipeline<'a>,
    patience: Duration,
) -> Result<CallPermits<'a>, ErrorKind> {
    tokio::select! {
        biased;
        () = pipeline.cancel.cancelled() => Err(ErrorKind::Cancelled),
        permits = wait_in_queue(pipeline, patience) => permits,
    }
}

/// Waits in the queue. The message's slot comes last, so that a call waiting for its tool's limit
/// does not hold up other calls of the message.
async fn wait_in_queue<'a>(
    pipeline: &Pipeline<'a>,
    patience: Duration,
) -> Result<CallPermits<'a>, ErrorKind> {
    let _waiting = enter_queue(pipeline.queue())?;
    let start = Instant::now();
    let permits = async {
        let session = pipeline.session.concurrency().admit(&pipeline.tool, slots(pipeline)).await;
        let message = match pipeline.message.slots {
            Some(semaphore) => semaphore.acquire().await.ok(),
            None => None,
        };
        CallPermits {
            _session: session,
            _message: message,
            patience: patience.saturating_sub(start.elapsed()),
        }
    };
    tokio::time::timeout(patience, permits).await.map_err(|_| queue_timeout())
}
