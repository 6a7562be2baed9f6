//! The shares of one client of a server in the work that its messages cause before a plugin is
//! known: reading, checking and keeping inputs.

use super::account::Counter;
use super::owner::{input_turns, memory_counter, turns};
use super::share::Share;
use crate::tool::Digest;
use std::sync::Arc;

/// The shares of one client, for the messages that it sends. Clones are the same shares.
#[derive(Debug, Clone)]
pub struct ClientShares {
    turns: Arc<Share>,
    memory: Arc<Counter>,
}

impl ClientShares {
    /// Returns the shares of the client with this identity, which the server chooses.
    #[must_use]
    pub fn of(client: Digest) -> Self {
        let owner = Digest::of(format!("the inputs of client {client}").as_bytes());
        Self { turns: turns().share(owner), memory: memory_counter(owner) }
    }

    /// Returns the counter of the memory that the client's calls hold.
    pub(super) fn memory(&self) -> &Counter {
        &self.memory
    }

    /// Returns the turns in which the inputs of this client are read: those of all programs that
    /// embed the host if there is no client.
    pub(super) fn turns_of(client: Option<&Self>) -> &Arc<Share> {
        client.map_or_else(|| input_turns(), |client| &client.turns)
    }
}
