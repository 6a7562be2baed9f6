//! The reads of rows: pages of calls, sessions, questions and plugins, single ones, and their sums.

use super::{
    CallFilter, CallPage, CallRef, CallRow, ConfirmationFilter, ConfirmationRow, Journal,
    JournalError, Listing, Page, PluginRow, SessionFilter, SessionRow, Summary, Timestamp, reads,
};

impl Journal {
    /// Returns a page of calls, the newest first.
    ///
    /// # Errors
    ///
    /// [`JournalError::NotRead`] if the file cannot be read.
    pub async fn calls(
        &self,
        filter: &CallFilter,
        page: Page,
    ) -> Result<Listing<CallRow>, JournalError> {
        let filter = filter.clone();
        self.read(move |conn| reads::calls::page(conn, &filter, page)).await
    }

    /// Returns a call with its questions and events, or `None` if it is not kept.
    ///
    /// # Errors
    ///
    /// [`JournalError::NotRead`] if the file cannot be read.
    pub async fn call(&self, of: CallRef) -> Result<Option<CallPage>, JournalError> {
        self.read(move |conn| reads::calls::one(conn, &of)).await
    }

    /// Returns a page of sessions, the newest first.
    ///
    /// # Errors
    ///
    /// [`JournalError::NotRead`] if the file cannot be read.
    pub async fn sessions(
        &self,
        filter: &SessionFilter,
        page: Page,
    ) -> Result<Listing<SessionRow>, JournalError> {
        let filter = filter.clone();
        self.read(move |conn| reads::sessions::page(conn, &filter, page)).await
    }

    /// Returns the newest session of this id, or `None` if it is not kept.
    ///
    /// # Errors
    ///
    /// [`JournalError::NotRead`] if the file cannot be read.
    pub async fn session(&self, id: &str) -> Result<Option<SessionRow>, JournalError> {
        let id = id.to_owned();
        self.read(move |conn| reads::sessions::one(conn, &id)).await
    }

    /// Returns what the calls of a session tell of it, or `None` if none is kept: for a session
    /// without a record of its own. It counts as closed at its last call.
    ///
    /// # Errors
    ///
    /// [`JournalError::NotRead`] if the file cannot be read.
    pub async fn session_of_calls(&self, id: &str) -> Result<Option<SessionRow>, JournalError> {
        let id = id.to_owned();
        self.read(move |conn| reads::sessions::of_calls(conn, &id)).await
    }

    /// Returns a page of questions, the newest first.
    ///
    /// # Errors
    ///
    /// [`JournalError::NotRead`] if the file cannot be read.
    pub async fn confirmations(
        &self,
        filter: &ConfirmationFilter,
        page: Page,
    ) -> Result<Listing<ConfirmationRow>, JournalError> {
        let filter = filter.clone();
        self.read(move |conn| reads::confirmations::page(conn, &filter, page)).await
    }

    /// Returns a page of the plugins that were loaded, the one that was new last first.
    ///
    /// # Errors
    ///
    /// [`JournalError::NotRead`] if the file cannot be read.
    pub async fn plugins(&self, page: Page) -> Result<Listing<PluginRow>, JournalError> {
        self.read(move |conn| reads::plugins::page(conn, page)).await
    }

    /// Sums up the calls since this time by tool; the newest 20,000 at most.
    ///
    /// # Errors
    ///
    /// [`JournalError::NotRead`] if the file cannot be read.
    pub async fn summary(&self, since: Timestamp) -> Result<Summary, JournalError> {
        self.read(move |conn| reads::summary::since(conn, since)).await
    }
}
