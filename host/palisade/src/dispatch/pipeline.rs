//! The environment of one call, which the stages of its pipeline share.

use super::dispatcher::Dispatcher;
use super::requester::Requester;
use crate::events::CallSink;
use crate::execution::share::Share;
use crate::execution::{OwnerShares, ToolContext};
use crate::registry::Registered;
use crate::session::Session;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// The pipeline of one call.
pub(super) struct Pipeline<'a> {
    pub(super) dispatcher: &'a Dispatcher,
    pub(super) session: &'a Session,
    pub(super) message: Option<&'a Semaphore>,
    pub(super) requester: &'a Requester,
    pub(super) sink: &'a Arc<CallSink>,
    pub(super) tool: Arc<Registered>,
    /// The time limit of the call.
    pub(super) time: Duration,
    pub(super) cancel: &'a CancellationToken,
    /// The shares that the call is charged to, if its session has shares of its own.
    pub(super) shares: Option<Arc<OwnerShares>>,
}

impl Pipeline<'_> {
    /// Returns the share of the queue slots that the call is charged to.
    pub(super) fn queue(&self) -> &Arc<Share> {
        self.shares.as_ref().map_or_else(|| self.tool.queue(), |shares| &shares.queue)
    }
}

/// Returns the share of the queue slots that a call of this tool is charged to.
pub(super) fn queue_of<'a>(tool: &'a Registered, context: &'a ToolContext) -> &'a Arc<Share> {
    context.shares().map_or_else(|| tool.queue(), |shares| &shares.queue)
}
