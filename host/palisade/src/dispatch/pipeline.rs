//! The environment of one call, which the stages of its pipeline share.

use super::dispatcher::Dispatcher;
use super::requester::Requester;
use crate::events::CallSink;
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
}
