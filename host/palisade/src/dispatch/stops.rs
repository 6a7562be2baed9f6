//! Everything that stops a call together with others. The cancellation of each call arrives on its
//! own, so one of them may end first and free a slot, a sandbox or a turn to ask that another one
//! waits for. That one looks here before it goes on.

use crate::session::{CallInFlight, CallSlot, Session};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_util::sync::CancellationToken;

/// Everything that stops a call together with others.
#[derive(Clone)]
pub(super) struct Stops {
    session: Session,
    /// The call among those of its session.
    call: CallSlot,
    /// The token of the caller, which calls may share.
    caller: CancellationToken,
    /// True once the message of the call is ended.
    message: Option<Arc<AtomicBool>>,
    /// The signals that stop the call that makes this one.
    parent: Option<Arc<Self>>,
}

impl Stops {
    /// `message` is true once the message of the call is ended, and `parent` is what stops the call
    /// that makes this one.
    pub(super) fn new(
        session: &Session,
        call: &CallInFlight<'_>,
        caller: &CancellationToken,
        message: Option<&Arc<AtomicBool>>,
        parent: Option<&Arc<Self>>,
    ) -> Self {
        Self {
            session: session.clone(),
            call: call.slot(),
            caller: caller.clone(),
            message: message.cloned(),
            parent: parent.cloned(),
        }
    }

    /// Returns the token of the caller.
    pub(super) fn caller(&self) -> &CancellationToken {
        &self.caller
    }

    /// Returns true if the call must not go on: it is cancelled, or about to be.
    pub(super) fn is_stopped(&self) -> bool {
        self.caller.is_cancelled()
            || self.message.as_ref().is_some_and(|ended| ended.load(Ordering::SeqCst))
            || self.session.is_stopped(self.call)
            || self.parent.as_ref().is_some_and(|parent| parent.is_stopped())
    }

    /// Runs the work of the call. The token of the call is cancelled before a poll if the call is
    /// stopped, so that each wait within the work ends with the cancellation.
    pub(super) async fn guard<T>(
        &self,
        cancel: &CancellationToken,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = pin!(work);
        poll_fn(|cx| {
            if !cancel.is_cancelled() && self.is_stopped() {
                cancel.cancel();
            }
            work.as_mut().poll(cx)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;
    use crate::policy::Policy;
    use crate::tool::CallId;
    use crate::workspace::Workspace;
    use std::future::ready;

    fn session() -> (tempfile::TempDir, Session) {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Arc::new(Workspace::open(folder.path()).unwrap());
        (folder, Session::new("s", workspace, Policy::default()))
    }

    #[test]
    fn call_that_another_one_makes_is_stopped_with_its_message() {
        let (_folder, session) = session();
        let [outer, inner] = ["a", "a.1"].map(|id| session.enter(&CallId::new(id), None));
        let (is_ended, token) = (Arc::new(AtomicBool::new(false)), CancellationToken::new());
        let outer = Arc::new(Stops::new(&session, &outer, &token, Some(&is_ended), None));
        let inner = Stops::new(&session, &inner, outer.caller(), None, Some(&outer));
        assert!(!inner.is_stopped());
        is_ended.store(true, Ordering::SeqCst);
        assert!(inner.is_stopped());
    }

    #[tokio::test]
    async fn wait_ends_with_the_cancellation_although_a_place_is_free() {
        let (_folder, session) = session();
        let call = session.enter(&CallId::new("a"), None);
        let (is_ended, token) = (Arc::new(AtomicBool::new(false)), CancellationToken::new());
        let stops = Stops::new(&session, &call, &token, Some(&is_ended), None);
        let wait = async || {
            tokio::select! {
                biased;
                () = call.cancellation().cancelled() => "cancelled",
                () = ready(()) => "gone on",
            }
        };
        assert_eq!(stops.guard(call.cancellation(), wait()).await, "gone on");
        is_ended.store(true, Ordering::SeqCst);
        assert_eq!(stops.guard(call.cancellation(), wait()).await, "cancelled");
    }
}
