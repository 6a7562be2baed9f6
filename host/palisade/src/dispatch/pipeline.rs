//! The environment of one call, which the stages of its pipeline share.

use super::dispatcher::Dispatcher;
use super::question_order::QuestionTurn;
use super::requester::Requester;
use super::stops::Stops;
use crate::events::CallSink;
use crate::execution::share::Share;
use crate::execution::{OwnerShares, ToolContext, UnusedInput};
use crate::registry::Registered;
use crate::session::Session;
use crate::tool::ErrorKind;
use crate::workspace::Workspace;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// The pipeline of one call.
pub(super) struct Pipeline<'a> {
    pub(super) dispatcher: &'a Dispatcher,
    pub(super) session: &'a Session,
    pub(super) message: InMessage<'a>,
    pub(super) requester: &'a Requester,
    pub(super) sink: &'a Arc<CallSink>,
    /// Where the input goes unless the tool gets it, if the call is recorded.
    pub(super) unused: Option<&'a Arc<UnusedInput>>,
    pub(super) tool: Arc<Registered>,
    /// The directory that the tool sees, once it is open, if that is not the session's workspace.
    pub(super) subdirectory: OnceLock<Arc<Workspace>>,
    /// The time limit of the call.
    pub(super) time: Duration,
    pub(super) cancel: &'a CancellationToken,
    pub(super) stops: Arc<Stops>,
    /// The shares that the call is charged to, if its session has shares of its own.
    pub(super) shares: Option<Arc<OwnerShares>>,
}

/// The state that a call shares with the other calls of its message, if it is part of one.
#[derive(Clone, Copy, Default)]
pub(super) struct InMessage<'a> {
    /// The slots of the message's concurrent calls.
    pub(super) slots: Option<&'a Semaphore>,
    /// The turn of the call to ask its question.
    pub(super) turn: Option<&'a QuestionTurn>,
    /// True once the message is ended.
    pub(super) is_ended: Option<&'a Arc<AtomicBool>>,
}

impl Pipeline<'_> {
    /// Refuses to go on with a call that is stopped together with others.
    pub(super) fn check_not_stopped(&self) -> Result<(), ErrorKind> {
        match self.cancel.is_cancelled() || self.stops.is_stopped() {
            true => Err(ErrorKind::Cancelled),
            false => Ok(()),
        }
    }

    /// Completes when the earlier calls of the message have asked, or will not ask.
    pub(super) async fn turn_to_ask(&self) {
        if let Some(turn) = self.message.turn {
            turn.comes().await;
        }
    }

    /// Lets the next call of the message ask.
    pub(super) fn pass_turn_to_ask(&self) {
        if let Some(turn) = self.message.turn {
            turn.pass();
        }
    }

    /// Returns the workspace that the tool sees.
    pub(super) fn workspace(&self) -> &Arc<Workspace> {
        self.subdirectory.get().unwrap_or(self.session.workspace())
    }

    /// Returns the share of the queue slots that the call is charged to.
    pub(super) fn queue(&self) -> &Arc<Share> {
        self.shares.as_ref().map_or_else(|| self.tool.queue(), |shares| &shares.queue)
    }
}

/// Returns the share of the queue slots that a call of this tool is charged to.
pub(super) fn queue_of<'a>(tool: &'a Registered, context: &'a ToolContext) -> &'a Arc<Share> {
    context.shares().map_or_else(|| tool.queue(), |shares| &shares.queue)
}
