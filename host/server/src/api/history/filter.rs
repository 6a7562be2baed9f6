//! The filters of the list of calls.

use super::row::CallRowView;
use crate::api::names::one_of;
use crate::api::pages::{List, limit};
use crate::api::problem::ApiError;
use crate::api::state::App;
use crate::api::store::page;
use crate::journal::{CallFilter, CallRow, CallState, Cursor, Listing, Page, Timestamp};
use palisade::ErrorClass;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa::openapi::schema::Object;

/// The classes of tools.
const CLASSES: [&str; 5] = ["none", "read", "write", "execute", "network"];
/// The classes of errors.
const ERRORS: [ErrorClass; 9] = [
    ErrorClass::NotFound,
    ErrorClass::ValidationError,
    ErrorClass::PermissionDenied,
    ErrorClass::UserDenied,
    ErrorClass::Timeout,
    ErrorClass::ExecutionError,
    ErrorClass::Cancelled,
    ErrorClass::ConfirmationTimeout,
    ErrorClass::ResourceExhausted,
];
/// The longest text of a filter, in characters.
const TEXT: usize = 1024;

/// Selects calls. Each filter that is given must hold.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct CallQuery {
    /// The tool's name.
    #[param(max_length = 1024)]
    tool: Option<String>,
    /// The class of the tool.
    #[param(schema_with = class_schema)]
    class: Option<String>,
    /// A state, a class of error, or `open` for calls that wait or run.
    #[param(schema_with = outcome_schema)]
    outcome: Option<String>,
    /// The session's id.
    #[param(max_length = 1024)]
    session: Option<String>,
    /// A time as in RFC 3339: calls that were requested then or later.
    #[param(format = "date-time")]
    since: Option<String>,
    /// A time as in RFC 3339: calls that were requested before.
    #[param(format = "date-time")]
    until: Option<String>,
    /// A text, in upper or lower case: in the tool's name, the caller's id, the session's id, or
    /// the first 4,096 characters of the input, the output or the error's message.
    #[param(max_length = 1024)]
    q: Option<String>,
    /// The `next_cursor` of the page before.
    #[param(pattern = "^[0-9]{1,19}$")]
    cursor: Option<String>,
    /// The most items of the page.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
}

fn class_schema() -> Object {
    one_of(CLASSES)
}

fn outcome_schema() -> Object {
    let states = CallState::ALL.map(CallState::as_str);
    let errors = ERRORS.map(ErrorClass::as_str);
    one_of(["open"].into_iter().chain(states).chain(errors))
}

/// The outcomes that are selected.
enum Outcome {
    Any,
    Open,
    State(CallState),
    Error(ErrorClass),
}

/// Reads a time.
pub(super) fn time(name: &str, text: Option<&str>) -> Result<Option<Timestamp>, ApiError> {
    let parse = |text: &str| {
        text.parse().map_err(|why| ApiError::Query(format!("`{name}` is not accepted: {why}")))
    };
    text.map(parse).transpose()
}

impl CallQuery {
    fn outcome(&self) -> Result<Outcome, ApiError> {
        let Some(name) = self.outcome.as_deref() else { return Ok(Outcome::Any) };
        let class = ERRORS.into_iter().find(|class| class.as_str() == name);
        match (name, name.parse().ok(), class) {
            ("open", ..) => Ok(Outcome::Open),
            (_, Some(state), _) => Ok(Outcome::State(state)),
            (_, None, Some(class)) => Ok(Outcome::Error(class)),
            _ => Err(ApiError::Query(
                "`outcome` has to be `open`, a state of a call, or a class of error".to_owned(),
            )),
        }
    }

    fn filter(&self) -> Result<CallFilter, ApiError> {
        let texts = [&self.tool, &self.session, &self.q];
        if texts.into_iter().flatten().any(|text| text.chars().nth(TEXT).is_some()) {
            return Err(ApiError::Query(format!("a filter has at most {TEXT} characters")));
        }
        if self.class.as_deref().is_some_and(|class| !CLASSES.contains(&class)) {
            let why = format!("`class` has to be one of {}", CLASSES.join(", "));
            return Err(ApiError::Query(why));
        }
        Ok(CallFilter {
            session_id: self.session.as_deref().map(Into::into),
            tool: self.tool.as_deref().map(Into::into),
            class: self.class.as_deref().map(Into::into),
            since: time("since", self.since.as_deref())?,
            until: time("until", self.until.as_deref())?,
            text: self.q.as_deref().filter(|text| !text.is_empty()).map(Into::into),
            ..CallFilter::default()
        })
    }
}

/// Returns the page of calls that a request asks for.
pub(super) async fn calls(app: &App, query: &CallQuery) -> Result<List<CallRowView>, ApiError> {
    let page = page(query.cursor.as_deref(), limit(query.limit)?)?;
    let mut filter = query.filter()?;
    let listing = match query.outcome()? {
        Outcome::Open => open(app, &filter, page).await?,
        outcome => {
            match outcome {
                Outcome::State(state) => filter.state = Some(state),
                Outcome::Error(class) => filter.error_class = Some(class.as_str().into()),
                Outcome::Any | Outcome::Open => {}
            }
            app.journal().calls(&filter, page).await?
        }
    };
    Ok(List {
        items: listing.rows.into_iter().map(CallRowView::from).collect(),
        next_cursor: listing.next.map(|cursor| cursor.to_string()),
    })
}

/// Returns a page of calls that wait or run.
async fn open(app: &App, filter: &CallFilter, page: Page) -> Result<Listing<CallRow>, ApiError> {
    let of = |state| CallFilter { state: Some(state), ..filter.clone() };
    let waiting = app.journal().calls(&of(CallState::Waiting), page).await?;
    let running = app.journal().calls(&of(CallState::Running), page).await?;
    // Beyond the end of a part, the other part is not complete either.
    let end = waiting.next.into_iter().chain(running.next).max();
    let mut rows = waiting.rows;
    rows.extend(running.rows);
    rows.sort_by_key(|row| std::cmp::Reverse(row.key));
    rows.retain(|row| end.is_none_or(|end| row.key.get() >= end.get()));
    let cut = rows.len() > page.limit;
    rows.truncate(page.limit);
    let last = rows.last().map(|row| Cursor::new(row.key.get()));
    Ok(Listing { rows, next: if cut { last } else { end } })
}
