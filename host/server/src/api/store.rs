//! The reads and the writes of the API in the journal.

use super::health::JournalReadiness;
use super::open_sessions::{OpenSession, Owner};
use super::pages::List;
use super::problem::ApiError;
use super::sessions::SessionView;
use super::state::Shared;
use crate::confirmations::Settlement;
use crate::journal::{
    Body, CallPage, CallRef, CallRow, ConfirmationFilter, ConfirmationRow, Cursor, HealthState,
    Importance, Journal, JournalError, NewEvent, Page, Record, SessionFilter, SessionOpened,
    SessionRow, Timestamp, event_line,
};
use crate::role::Role;
use palisade::confirm::RequestId;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

impl From<JournalError> for ApiError {
    fn from(error: JournalError) -> Self {
        Self::Journal(error.to_string())
    }
}

/// A question in the journal.
pub(super) struct PastQuestion {
    pub(super) row: ConfirmationRow,
    pub(super) call: Option<CallRow>,
    pub(super) input: Body,
    /// The outcome, if it is known.
    pub(super) settlement: Option<Settlement>,
}

/// Returns a duration in whole milliseconds.
pub(super) fn whole_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the outcome of a question in the journal.
pub(super) fn settlement(row: &ConfirmationRow) -> Option<Settlement> {
    let (decision, at) = row.resolution.clone().zip(row.resolved)?;
    let answered_by = row.answered_by.clone();
    Some(Settlement { decision, answered_by, answered_at: at.to_string() })
}

/// Returns the page that a request asks for.
pub(super) fn page(cursor: Option<&str>, limit: usize) -> Result<Page, ApiError> {
    let after = super::pages::cursor(cursor)?.map(Cursor::new);
    Ok(Page { after, limit })
}

impl Shared {
    pub(super) fn journal(&self) -> &Journal {
        self.wiring.journal()
    }

    /// Writes that a session was opened, before anything else of it.
    pub(super) async fn session_opened(&self, open: &OpenSession) -> Result<(), ApiError> {
        if let Err(error) = self.journal().commit(opened_record(open)).await {
            self.sessions.close(&open.id, || {});
            return Err(error.into());
        }
        self.journal().record(opened_event(open));
        Ok(())
    }

    /// Records that a session was attached, without waiting for the commit.
    pub(super) fn record_attached(&self, open: &OpenSession) {
        self.journal().record(opened_record(open));
        self.journal().record(opened_event(open));
    }

    /// Records that a session was closed, without waiting for the commit.
    pub(super) fn session_closed(&self, id: &str) {
        let at = Timestamp::now();
        self.journal().record(session_event("session.closed", id, &json!({})));
        self.journal().record(Record::SessionClosed { id: id.into(), at });
    }

    /// Returns true if the journal knows a session of this id that belongs to another client.
    pub(super) async fn is_of_another(&self, id: &str, owner: &Owner) -> Result<bool, ApiError> {
        let Some(known) = self.journal().session(id).await? else { return Ok(false) };
        Ok(match owner {
            Owner::Operators => known.client.is_some(),
            Owner::Client(client) => known.client.as_deref() != Some(&**client),
        })
    }

    /// Refuses a session that does not exist for the sender, open or closed.
    pub(super) async fn check_known(&self, role: &Role, id: &str) -> Result<(), ApiError> {
        if self.sessions.find(role, id).is_some() {
            return Ok(());
        }
        let known = self.journalled_session(id).await?;
        let is_its = match role {
            Role::Operator { .. } => known.is_some() || !self.host.sessions(id).is_empty(),
            Role::Client { id } => known.is_some_and(|row| self.is_of_client(&row, id)),
        };
        if is_its { Ok(()) } else { Err(ApiError::NoSuchSession) }
    }

    /// Returns true for a session that this client has opened in this run. The holder of a client's
    /// token now need not be its holder in an earlier run.
    pub(super) fn is_of_client(&self, row: &SessionRow, client: &str) -> bool {
        row.client.as_deref() == Some(client) && self.journal().is_of_this_run(row)
    }

    pub(super) async fn journalled_sessions(
        &self,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<List<SessionView>, ApiError> {
        let page = page(cursor, limit)?;
        let listing = self.journal().sessions(&SessionFilter::default(), page).await?;
        let items = listing.rows.into_iter().map(SessionView::from).collect();
        Ok(List { items, next_cursor: listing.next.map(|cursor| cursor.to_string()) })
    }

    /// Returns what the journal knows of a session: from its record, or else from its calls.
    pub(super) async fn journalled_session(
        &self,
        id: &str,
    ) -> Result<Option<SessionRow>, ApiError> {
        match self.journal().session(id).await? {
            Some(known) => Ok(Some(known)),
            None => Ok(self.journal().session_of_calls(id).await?),
        }
    }

    /// Returns the key of the call that a question is about, if the journal has it already.
    pub(super) async fn call_key(&self, id: &RequestId) -> Option<String> {
        let row = self.confirmation(id).await.ok()??;
        Some(row.call.to_string())
    }

    async fn confirmation(&self, id: &RequestId) -> Result<Option<ConfirmationRow>, ApiError> {
        let filter = ConfirmationFilter {
            request_id: Some(id.as_str().into()),
            ..ConfirmationFilter::default()
        };
        let page = Page { after: None, limit: 1 };
        Ok(self.journal().confirmations(&filter, page).await?.rows.into_iter().next())
    }

    /// Returns how the client of a session is called.
    pub(super) async fn client_of(&self, session: &str) -> Option<String> {
        let row = self.journal().session(session).await.ok()??;
        row.title.or(row.client)
    }

    pub(super) async fn past_question(
        &self,
        id: &RequestId,
    ) -> Result<Option<PastQuestion>, ApiError> {
        let Some(row) = self.confirmation(id).await? else { return Ok(None) };
        let call = self.journal().call(CallRef::Key(row.call)).await?;
        let (call, input) = match call {
            Some(CallPage { call, input, .. }) => (Some(call), input.unwrap_or_default()),
            None => (None, Body::default()),
        };
        // The desk may have the outcome before the journal.
        let settlement = settlement(&row).or_else(|| self.wiring.confirmer.outcome(id));
        Ok(Some(PastQuestion { row, call, input, settlement }))
    }

    pub(super) fn journal_readiness(&self) -> JournalReadiness {
        let health = self.journal().health();
        let (state, detail) = match health.state {
            HealthState::Storing => ("ok", None),
            HealthState::Failing { reason, .. } => ("failing", Some(reason.to_string())),
            HealthState::Closed => ("failing", Some("the journal is closed".to_owned())),
        };
        JournalReadiness { state, lost: health.lost_events, detail }
    }

    /// Returns the number of lost events, and of records that wait.
    pub(super) fn journal_levels(&self) -> (u64, u64) {
        let health = self.journal().health();
        (health.lost_events, health.waiting as u64)
    }
}

fn opened_record(open: &OpenSession) -> Record {
    Record::SessionOpened(Box::new(SessionOpened {
        id: open.id.clone(),
        client: open.client(),
        title: open.title.clone(),
        origin: open.origin.into(),
        protocol: open.protocol.clone(),
        workspace: Some(open.workspace().into()),
        at: open.opened_at,
    }))
}

fn opened_event(open: &OpenSession) -> Record {
    let more = json!({
        "client": open.client().as_deref(),
        "title": open.title.as_deref(),
        "origin": open.origin,
        "protocol": open.protocol.as_deref(),
        "workspace": open.workspace(),
    });
    session_event("session.opened", &open.id, &more)
}

/// Returns an event about a session, in the form of a host's events.
fn session_event(name: &str, id: &str, more: &serde_json::Value) -> Record {
    let time = Timestamp::now();
    // Without its braces, and after a comma.
    let more = more.to_string();
    let more = more.strip_prefix('{').and_then(|more| more.strip_suffix('}')).unwrap_or_default();
    let more = if more.is_empty() { String::new() } else { format!(",{more}") };
    let line = event_line(name, time, &serde_json::Value::from(id).to_string(), &more);
    Record::Event(NewEvent {
        time,
        name: name.into(),
        session_id: Some(id.into()),
        call_id: None,
        call: None,
        importance: Importance::Ordinary,
        line: Arc::from(palisade::tool::text::visible_json(&line)),
    })
}
