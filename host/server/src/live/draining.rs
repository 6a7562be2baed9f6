//! The event that says that the server ends soon. It is of no journal, and has no number.

use crate::journal::{Timestamp, event_line};
use palisade::CancellationToken;

/// The name of the event.
pub(super) const NAME: &str = "server.draining";

/// The notice of the end of the server for one reader.
#[derive(Debug)]
pub(crate) struct Draining {
    begins: CancellationToken,
    is_told: bool,
}

impl Draining {
    /// Creates the state of a new reader. The token is cancelled when the server begins to end.
    pub(crate) fn of(begins: CancellationToken) -> Self {
        Self { begins, is_told: false }
    }

    /// Returns the line of the event as soon as the server begins to end, and then never again.
    /// Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> String {
        if self.is_told {
            return std::future::pending().await;
        }
        self.begins.cancelled().await;
        self.is_told = true;
        event_line(NAME, Timestamp::now(), "null", "")
    }
}
