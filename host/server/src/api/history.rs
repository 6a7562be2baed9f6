//! The calls in the journal: a list with filters, each call's page, and their summary.

mod filter;
mod page;
mod row;
mod summary;

pub(super) use page::CallPageView;
pub(super) use row::CallRowView;
pub(super) use summary::SummaryView;

use super::extract::{Ids, Operator, Parameters};
use super::pages::List;
use super::problem::ApiError;
use super::state::App;
use crate::journal::{CallKey, CallRef, Timestamp};
use axum::Json;
use axum::extract::State;
use filter::CallQuery;
use serde::Deserialize;
use utoipa::IntoParams;

/// Lists the calls that the journal knows, the newest first.
#[utoipa::path(
    get,
    path = "/calls",
    tag = "journal",
    params(CallQuery),
    responses((status = 200, description = "A page of calls", body = List<CallRowView>))
)]
pub(super) async fn list(
    State(app): State<App>,
    Operator(_): Operator,
    Parameters(query): Parameters<CallQuery>,
) -> Result<Json<List<CallRowView>>, ApiError> {
    filter::calls(&app, &query).await.map(Json)
}

/// Describes a call: its input, output, use of resources, questions and events.
#[utoipa::path(
    get,
    path = "/calls/{key}",
    tag = "journal",
    params(("key" = String, Path,
        description = "The call's key in the journal, or its caller's id: the newest such call")),
    responses((status = 200, description = "The call", body = CallPageView))
)]
pub(super) async fn show(
    State(app): State<App>,
    Operator(_): Operator,
    Ids(key): Ids<String>,
) -> Result<Json<CallPageView>, ApiError> {
    let by_key = key.parse::<u64>().ok().map(|key| CallRef::Key(CallKey::new(key)));
    let by_id = CallRef::Id { id: key.as_str().into(), client: None };
    for of in by_key.into_iter().chain([by_id]) {
        if let Some(call) = app.journal().call(of).await? {
            return Ok(Json(CallPageView::from(call)));
        }
    }
    Err(ApiError::NoSuchCall)
}

/// The beginning of the summed up time.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct SummaryQuery {
    /// A time as in RFC 3339. Default: everything that is kept.
    #[param(format = "date-time")]
    since: Option<String>,
}

/// Sums up the calls by tool: outcomes and latency.
#[utoipa::path(
    get,
    path = "/summary",
    tag = "journal",
    params(SummaryQuery),
    responses((status = 200, description = "The summary", body = SummaryView))
)]
pub(super) async fn summary(
    State(app): State<App>,
    Operator(_): Operator,
    Parameters(query): Parameters<SummaryQuery>,
) -> Result<Json<SummaryView>, ApiError> {
    let since = filter::time("since", query.since.as_deref())?;
    let until = Timestamp::now();
    let summary = app.journal().summary(since.unwrap_or_default()).await?;
    Ok(Json(SummaryView::of(&app, summary, until)))
}
