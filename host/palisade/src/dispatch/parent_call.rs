//! The call that makes another one, as that one knows it.

use super::stops::Stops;
use crate::confirm::CallingTool;
use crate::execution::Nesting;
use crate::execution::account::Account;
use crate::execution::clock::CallClock;
use std::sync::Arc;

/// The call that makes another one.
#[derive(Clone)]
pub(super) struct ParentCall {
    /// The call, as events and questions name it.
    pub(super) caller: CallingTool,
    /// The signals that stop the call.
    pub(super) stops: Arc<Stops>,
    /// The clock of the call, which stands still while a question is open.
    pub(super) clock: Arc<CallClock>,
    /// The account of the call.
    pub(super) account: Account,
    /// The state that all calls that it makes share.
    pub(super) nesting: Nesting,
}
