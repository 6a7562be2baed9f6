//! The shares of one client of a server in the work that its messages cause before a plugin is
//! known: reading, checking and keeping inputs.

use super::counters::Counter;
use crate::execution::share::Share;
use std::sync::Arc;

/// The shares of one client, for the messages that it sends. Clones are the same shares.
#[derive(Debug, Clone)]
pub struct ClientShares {
    turns: Arc<Share>,
    memory: Arc<Counter>,
}

impl ClientShares {
    /// Creates the shares of a client from those of its pools.
    pub(crate) fn new(turns: Arc<Share>, memory: Arc<Counter>) -> Self {
        Self { turns, memory }
    }

    /// Returns the turns in which the inputs of this client are read and checked.
    pub(crate) fn turns(&self) -> &Arc<Share> {
        &self.turns
    }

    /// Returns the counter of the memory that the client's messages hold.
    pub(super) fn memory(&self) -> &Counter {
        &self.memory
    }
}
