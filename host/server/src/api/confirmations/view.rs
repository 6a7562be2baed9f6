//! How questions are shown.

use super::super::problem::ApiError;
use super::super::state::App;
use super::super::store::{PastQuestion, whole_millis};
use super::input::{Shown, shown};
use crate::confirmations::{FileChange, Question, Settlement, file_changes, unread_changes};
use crate::journal::Timestamp;
use palisade::confirm::ConfirmationRequest;
use palisade::internal::run_blocking;
use palisade::workspace::Workspace;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use utoipa::ToSchema;

/// The time for reading and comparing the files of a question.
const READING: Duration = Duration::from_secs(5);

/// A call that waits for an answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Question)]
pub(in crate::api) struct QuestionView {
    request_id: String,
    /// The caller's id of the call.
    call_id: String,
    /// The key of the call in the journal, for `/calls/{key}`; `null` if it has none yet.
    call_key: Option<String>,
    session_id: Option<String>,
    turn_id: Option<String>,
    /// The name of the session's client.
    client: Option<String>,
    /// The path of the session's workspace.
    workspace: Option<String>,
    tool: String,
    title: Option<String>,
    /// The name of the plugin or the server, such as `mcp/git`, or `null` for a native tool.
    plugin: Option<String>,
    /// The plugin's digest, or `null` for a tool of no plugin.
    digest: Option<String>,
    class: String,
    /// The running tool that makes the call, with the place in its program; `null` if the client
    /// makes it, or if the question is over.
    called_by: Option<String>,
    /// The grants of the plugin beyond its class, one on each line. They are `null` if the question
    /// is over: its event in the journal has them.
    grants: Option<Vec<String>>,
    /// The input, escaped and shortened in the middle.
    input_summary: String,
    /// The paths that the call would change, as its input names them.
    projected_modifications: Vec<String>,
    /// The decisions that are accepted.
    decisions: Vec<&'static str>,
    requested_at: String,
    expires_at: String,
    valid_for_ms: u64,
    /// The time that is left by the server's clock; 0 if the question is over.
    remaining_ms: u64,
}

/// A question with all that is known about it.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct QuestionPage {
    #[serde(flatten)]
    question: QuestionView,
    /// The whole input as indented JSON, with control and direction characters escaped; `null` if
    /// it is not known any more, or has more than 1 MiB.
    input: Option<String>,
    input_bytes: u64,
    input_truncated: bool,
    /// The files that would change; `null` if the question is over.
    files: Option<Vec<FileChange>>,
    /// The outcome; `null` while the question is open.
    resolution: Option<Settlement>,
}

impl QuestionView {
    /// Describes an open question.
    pub(in crate::api) async fn of(app: &App, question: &Question) -> Self {
        let request = &question.request;
        let session = request.session_id.as_deref();
        let workspace = workspace(app, session);
        let tool = app.host.registry().get(&request.tool).ok();
        let title = tool.as_deref().and_then(|tool| tool.definition().title().map(str::to_owned));
        Self {
            request_id: request.id.to_string(),
            call_id: request.call_id.to_string(),
            call_key: app.call_key(&request.id).await,
            session_id: session.map(str::to_owned),
            turn_id: request.turn_id.as_deref().map(str::to_owned),
            client: match session {
                Some(session) => app.client_of(session).await,
                None => None,
            },
            workspace: workspace.map(|workspace| workspace.root().display().to_string()),
            tool: request.tool.clone(),
            title,
            plugin: request.plugin.clone(),
            digest: request.digest.map(|digest| digest.to_string()),
            class: request.side_effects.as_str().to_owned(),
            called_by: request.called_by.as_ref().map(ToString::to_string),
            grants: Some(request.grants.clone()),
            input_summary: request.input_summary.clone(),
            projected_modifications: request.projected_modifications.clone(),
            decisions: vec!["allow", "always", "deny"],
            requested_at: Timestamp::from(request.expires).before(request.valid_for).to_string(),
            expires_at: Timestamp::from(request.expires).to_string(),
            valid_for_ms: whole_millis(request.valid_for),
            remaining_ms: whole_millis(question.remaining),
        }
    }
}

impl QuestionPage {
    /// Describes a question that is over.
    pub(super) fn of_past(past: PastQuestion) -> Self {
        let PastQuestion { row, call, input, settlement } = past;
        let valid_for = row.expires.micros().saturating_sub(row.asked.micros());
        let Shown { text, truncated, .. } = shown(input.text.as_deref());
        let kept = input.text.as_ref().map_or(0, |text| text.len() as u64);
        Self {
            question: QuestionView {
                request_id: row.request_id,
                call_id: row.call_id,
                call_key: Some(row.call.to_string()),
                session_id: row.session_id,
                turn_id: row.turn_id,
                client: call
                    .as_ref()
                    .and_then(|call| call.client_name.clone().or_else(|| call.client.clone())),
                workspace: None,
                tool: row.tool,
                title: None,
                plugin: call.as_ref().and_then(|call| call.plugin.clone()),
                digest: call.and_then(|call| call.digest),
                class: row.class.unwrap_or_default(),
                called_by: None,
                grants: None,
                input_summary: row.input_summary,
                projected_modifications: row.projected_modifications,
                decisions: Vec::new(),
                requested_at: row.asked.to_string(),
                expires_at: row.expires.to_string(),
                valid_for_ms: valid_for.unsigned_abs() / 1000,
                remaining_ms: 0,
            },
            input: text,
            input_bytes: input.length,
            input_truncated: truncated || kept < input.length,
            files: None,
            resolution: settlement,
        }
    }

    /// Describes an open question.
    pub(in crate::api) async fn of_open(app: &App, question: &Question) -> Result<Self, ApiError> {
        let request = &question.request;
        let Shown { text, truncated, .. } = shown(request.input.as_deref());
        let text_is_missing = text.is_none();
        Ok(Self {
            question: QuestionView::of(app, question).await,
            input: text,
            input_bytes: request.input_bytes.into(),
            // A request leaves out a very long input.
            input_truncated: truncated || text_is_missing,
            files: Some(files(app, request).await?),
            resolution: None,
        })
    }
}

/// Returns the workspace of a session, if its id says which it is.
fn workspace(app: &App, session: Option<&str>) -> Option<Arc<Workspace>> {
    let Some(session) = session else { return Some(app.host.workspace().clone()) };
    let sessions = app.host.sessions(session);
    let mut workspaces = sessions.iter().map(palisade::Session::workspace);
    let first = workspaces.next()?;
    workspaces.all(|other| other.root() == first.root()).then(|| first.clone())
}

/// Returns the files that a call would change. Reading them may block, so it has a thread of its
/// own.
async fn files(app: &App, request: &ConfirmationRequest) -> Result<Vec<FileChange>, ApiError> {
    let workspace = workspace(app, request.session_id.as_deref());
    let (host, asked, reading) = (app.host.clone(), request.clone(), app.reading.clone());
    let work = async {
        let Ok(turn) = reading.acquire_owned().await else { return Err(ApiError::Internal) };
        let look = move || {
            // Held until the end of the work, whether anyone still waits for it or not.
            let _turn = turn;
            file_changes(&host, workspace.as_deref(), &asked)
        };
        run_blocking(look).await.map_err(|_| ApiError::Internal)
    };
    // The question can be answered without the differences.
    let late = "the file was not read within 5 s; ask for the question again to see its difference";
    timeout(READING, work).await.unwrap_or_else(|_| Ok(unread_changes(request, late)))
}
