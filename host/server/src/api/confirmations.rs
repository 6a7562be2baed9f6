//! Confirmation requests: the open ones, what each would change, and the answer.

mod input;
mod view;

pub(super) use view::{QuestionPage, QuestionView};

use super::extract::{Ids, JsonBody, Operator};
use super::pages::List;
use super::problem::{ApiError, Problem};
use super::state::App;
use super::store::PastQuestion;
use crate::confirmations::{NotAnswered, Settlement};
use axum::Json;
use axum::extract::State;
use palisade::confirm::{Answer, RequestId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An answer to a question.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerRequest {
    decision: Decision,
}

/// The decision on a call.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Decision {
    /// This call may run.
    Allow,
    /// This call must not run.
    Deny,
    /// This call may run, and so may later calls of the same tool of the same plugin in this
    /// session.
    Always,
}

impl From<Decision> for Answer {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Allow => Self::Allow,
            Decision::Deny => Self::Deny,
            Decision::Always => Self::Always,
        }
    }
}

/// An answer that was taken.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Answered {
    request_id: String,
    decision: String,
    answered_by: Option<String>,
    answered_at: String,
}

/// Lists the open questions, the oldest first.
#[utoipa::path(
    get,
    path = "/confirmations",
    tag = "confirmations",
    responses((status = 200, description = "All open questions", body = List<QuestionView>))
)]
pub(super) async fn list(
    State(app): State<App>,
    Operator(_): Operator,
) -> Result<Json<List<QuestionView>>, ApiError> {
    let mut items = Vec::new();
    for question in app.wiring.confirmer.questions() {
        items.push(QuestionView::of(&app, &question).await);
    }
    Ok(Json(List { items, next_cursor: None }))
}

/// Describes a question: the whole input, and each file that would change with its diff. Of a
/// question that is over, as long as the journal knows it, the outcome.
#[utoipa::path(
    get,
    path = "/confirmations/{request_id}",
    tag = "confirmations",
    params(("request_id" = String, Path, description = "The id of the confirmation request")),
    responses((status = 200, description = "The question", body = QuestionPage))
)]
pub(super) async fn show(
    State(app): State<App>,
    Operator(_): Operator,
    Ids(id): Ids<String>,
) -> Result<Json<QuestionPage>, ApiError> {
    let id = RequestId::new(&id);
    match app.wiring.confirmer.question(&id) {
        Some(question) => Ok(Json(QuestionPage::of_open(&app, &question).await?)),
        None => {
            let past = app.past_question(&id).await?.ok_or(ApiError::NoSuchConfirmation)?;
            Ok(Json(QuestionPage::of_past(past)))
        }
    }
}

/// Answers a question. The first answer wins.
#[utoipa::path(
    post,
    path = "/sessions/{session_id}/turns/{turn_id}/confirmations/{request_id}",
    tag = "confirmations",
    params(
        ("session_id" = String, Path, description = "The session of the call; `-` for none"),
        ("turn_id" = String, Path, description = "The turn of the call; `-` for none"),
        ("request_id" = String, Path, description = "The id of the confirmation request"),
    ),
    request_body = AnswerRequest,
    responses(
        (status = 200, description = "The answer was taken", body = Answered),
        (status = 409, description = "`already_answered`: `resolution` says what won",
            body = Problem, content_type = "application/problem+json"),
        (status = 410, description = "`confirmation_expired`: `resolution` says why",
            body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn answer(
    State(app): State<App>,
    Operator(name): Operator,
    Ids((session, turn, id)): Ids<(String, String, String)>,
    body: JsonBody<AnswerRequest>,
) -> Result<Json<Answered>, ApiError> {
    let id = RequestId::new(&id);
    let given = |id: &str| if id == "-" { None } else { Some(id.to_owned()) };
    let (session, turn) = (given(&session), given(&turn));
    let place = (session.as_deref(), turn.as_deref());
    let answer = body.value.decision.into();
    match app.wiring.confirmer.answer(place, &id, answer, &name).await {
        Ok(Settlement { decision, answered_by, answered_at }) => {
            Ok(Json(Answered { request_id: id.to_string(), decision, answered_by, answered_at }))
        }
        Err(NotAnswered::Already(settlement)) => Err(ApiError::AlreadyAnswered(settlement)),
        Err(NotAnswered::Over(settlement)) => Err(ApiError::ConfirmationExpired(settlement)),
        Err(NotAnswered::Unknown) => Err(refusal_of_past(&app, place, &id).await),
    }
}

/// Returns why a question that ended long ago cannot be answered.
async fn refusal_of_past(
    app: &App,
    place: (Option<&str>, Option<&str>),
    id: &RequestId,
) -> ApiError {
    let past = match app.past_question(id).await {
        Ok(past) => past,
        Err(error) => return error,
    };
    let is_its = |past: &PastQuestion| {
        (past.row.session_id.as_deref(), past.row.turn_id.as_deref()) == place
    };
    match past.filter(is_its).map(|past| past.settlement) {
        None => ApiError::NoSuchConfirmation,
        Some(Some(settlement)) if settlement.is_answer() => ApiError::AlreadyAnswered(settlement),
        Some(settlement) => ApiError::ConfirmationExpired(
            settlement.unwrap_or_else(|| Settlement::now("cancelled", None)),
        ),
    }
}
