//! How sessions are shown.

use crate::api::open_sessions::OpenSession;
use crate::api::pages::{List, PageQuery, cursor, limit};
use crate::api::problem::ApiError;
use crate::api::state::App;
use crate::journal::{SessionRow, UNKNOWN};
use crate::role::Role;
use serde::Serialize;
use utoipa::ToSchema;

/// A session.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub(in crate::api) struct SessionView {
    pub(crate) id: String,
    /// How the client names itself, which nothing verifies, or else its id.
    pub(crate) client: Option<String>,
    /// The id of the client, by its token. `null`: only operators see the session.
    pub(crate) client_id: Option<String>,
    /// The way by which its calls come: `http`, `mcp-http` or `mcp-stdio`; `unknown` for a session
    /// that only its calls tell of.
    pub(crate) origin: String,
    /// The revision of the client's protocol, if it has any.
    pub(crate) protocol: Option<String>,
    /// The path of the workspace.
    pub(crate) workspace: Option<String>,
    /// `open` or `closed`.
    pub(crate) state: &'static str,
    pub(crate) opened_at: String,
    pub(crate) closed_at: Option<String>,
    /// All calls that the journal knows.
    pub(crate) calls: u64,
    /// The calls that wait or run.
    pub(crate) calls_open: u64,
    /// The only tools that the session lists and may call; `null`: all of the host.
    pub(crate) tools: Option<Vec<String>>,
}

impl SessionView {
    /// Describes a session that has just been opened.
    pub(in crate::api) fn of_open(open: &OpenSession) -> Self {
        let client = open.client();
        Self {
            id: open.id.to_string(),
            client: open.title.as_ref().or(client.as_ref()).map(ToString::to_string),
            client_id: client.map(|id| id.to_string()),
            origin: open.origin.to_owned(),
            protocol: open.protocol.as_ref().map(ToString::to_string),
            workspace: Some(open.workspace()),
            state: "open",
            opened_at: open.opened_at.to_string(),
            closed_at: None,
            calls: 0,
            calls_open: open.session.in_flight() as u64,
            tools: open.tools.clone(),
        }
    }
}

impl From<SessionRow> for SessionView {
    fn from(row: SessionRow) -> Self {
        Self {
            id: row.id,
            client: row.title.or_else(|| row.client.clone()),
            client_id: row.client,
            origin: row.origin,
            protocol: row.protocol,
            workspace: row.workspace,
            state: if row.closed.is_some() { "closed" } else { "open" },
            opened_at: row.opened.to_string(),
            closed_at: row.closed.map(|at| at.to_string()),
            calls: row.calls,
            calls_open: 0,
            tools: None,
        }
    }
}

/// Returns a page of sessions.
pub(super) async fn list(
    app: &App,
    role: &Role,
    query: &PageQuery,
) -> Result<List<SessionView>, ApiError> {
    let limit = limit(query.limit)?;
    if role.is_operator() {
        let mut page = app.journalled_sessions(query.cursor.as_deref(), limit).await?;
        for view in &mut page.items {
            complete(app, role, view);
        }
        return Ok(page);
    }
    let before = cursor(query.cursor.as_deref())?.unwrap_or(u64::MAX);
    let own = app.sessions.all().into_iter();
    let own: Vec<OpenSession> = own
        .filter(|open| open.number < before && open.is_of(role))
        .take(limit.saturating_add(1))
        .collect();
    let next_cursor = match own.get(limit.saturating_sub(1)) {
        Some(last) if own.len() > limit => Some(last.number.to_string()),
        _ => None,
    };
    let mut items = Vec::new();
    for open in own.iter().take(limit) {
        items.push(described(app, open).await?);
    }
    Ok(List { items, next_cursor })
}

/// Returns a session, open or closed.
pub(super) async fn one(app: &App, role: &Role, id: &str) -> Result<SessionView, ApiError> {
    if let Some(open) = app.sessions.find(role, id) {
        return described(app, &open).await;
    }
    let known = app.journalled_session(id).await?;
    let may_see = |row: &SessionRow| match role {
        Role::Operator { .. } => true,
        Role::Client { id } => app.is_of_client(row, id),
    };
    let mut view: SessionView = known.filter(may_see).ok_or(ApiError::NoSuchSession)?.into();
    complete(app, role, &mut view);
    if view.origin == UNKNOWN && !app.host.sessions(id).is_empty() {
        (view.state, view.closed_at) = ("open", None);
    }
    Ok(view)
}

/// Describes an open session, with the numbers from the journal.
async fn described(app: &App, open: &OpenSession) -> Result<SessionView, ApiError> {
    let mut view = SessionView::of_open(open);
    if let Some(known) = app.journalled_session(&open.id).await? {
        view.calls = known.calls;
    }
    Ok(view)
}

/// Adds to a session of the journal what only the server knows.
fn complete(app: &App, role: &Role, view: &mut SessionView) {
    if let Some(open) = app.sessions.find(role, &view.id) {
        view.tools = open.tools;
        view.state = "open";
        view.closed_at = None;
    }
    let live = app.host.sessions(&view.id);
    if !live.is_empty() {
        view.calls_open = live.iter().map(|session| session.in_flight() as u64).sum();
    }
}
