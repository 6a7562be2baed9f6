//! The tools, and their definitions in the formats of providers.

use super::extract::{Caller, Ids, Parameters};
use super::names::{named, one_of};
use super::pages::{List, MOST, PageQuery};
use super::problem::ApiError;
use super::sessions::reachable;
use super::state::App;
use crate::role::Role;
use axum::Json;
use axum::extract::State;
use palisade::Session;
use palisade::formats::{Format, Strictness, Weakening};
use palisade::registry::Registered;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::schema::Object;
use utoipa::{IntoParams, ToSchema};

/// A tool.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ToolView {
    name: String,
    title: Option<String>,
    description: String,
    /// `none`, `read`, `write`, `execute` or `network`.
    class: &'static str,
    /// The plugin's name, or `null` for a native tool.
    plugin: Option<String>,
    /// The plugin's digest, or `null` for a native tool.
    digest: Option<String>,
    /// True if a repeated call leaves the same state as a single call.
    idempotent: bool,
    /// The JSON Schema of the input.
    #[schema(value_type = Object)]
    input_schema: Value,
    /// The JSON Schema of the output, if the tool promises one.
    #[schema(value_type = Option<Object>)]
    output_schema: Option<Value>,
}

impl From<&Registered> for ToolView {
    fn from(tool: &Registered) -> Self {
        let definition = tool.definition();
        Self {
            name: definition.name().to_string(),
            title: definition.title().map(str::to_owned),
            description: definition.description().to_owned(),
            class: definition.side_effects().as_str(),
            plugin: tool.origin().plugin().map(str::to_owned),
            digest: tool.origin().digest().map(|digest| digest.to_string()),
            idempotent: definition.is_idempotent(),
            input_schema: definition.parameters().clone(),
            output_schema: definition.output_schema().map(|schema| schema.as_value().clone()),
        }
    }
}

/// Lists the tools that the host's own session lists, in listing order.
#[utoipa::path(
    get,
    path = "/tools",
    tag = "tools",
    params(PageQuery),
    responses((status = 200, description = "A page of tools", body = List<ToolView>))
)]
pub(super) async fn tools(
    State(app): State<App>,
    Caller(_): Caller,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<List<ToolView>>, ApiError> {
    let limit = super::pages::limit(query.limit.or(Some(MOST)))?;
    let begin = super::pages::cursor(query.cursor.as_deref())?.unwrap_or(0);
    let begin = usize::try_from(begin).unwrap_or(usize::MAX);
    let tools = app.host.tools(app.host.session());
    let items: Vec<ToolView> =
        tools.iter().skip(begin).take(limit).map(|tool| ToolView::from(&**tool)).collect();
    let end = begin.saturating_add(items.len());
    let next_cursor = (end < tools.len()).then(|| end.to_string());
    Ok(Json(List { items, next_cursor }))
}

/// The format of definitions.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct FormatQuery {
    /// Default: `openai`.
    #[param(schema_with = format_schema, required = false)]
    #[serde(default = "default_format", deserialize_with = "named")]
    format: Format,
    /// True to change the schemas for the provider's strict mode where that is possible.
    strict: Option<bool>,
}

/// The format of a request that names none.
const fn default_format() -> Format {
    Format::OpenAi
}

fn format_schema() -> Object {
    one_of(Format::ALL.map(Format::as_str))
}

/// The definitions of a session's tools.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Definitions {
    format: &'static str,
    /// The definitions, as the provider's request takes them.
    definitions: Value,
    /// The parts that the format cannot express.
    weakened: Vec<Weakened>,
}

/// A part of a definition that the format cannot carry unchanged.
#[derive(Debug, Serialize, ToSchema)]
struct Weakened {
    tool: String,
    /// A JSON pointer into the input schema.
    pointer: String,
    keyword: String,
    effect: String,
}

impl From<&Weakening> for Weakened {
    fn from(of: &Weakening) -> Self {
        let Weakening { tool, pointer, keyword, effect, .. } = of.clone();
        Self { tool, pointer, keyword, effect }
    }
}

/// Returns the definitions of the tools that a session lists, in a provider's format.
#[utoipa::path(
    get,
    path = "/sessions/{session_id}/definitions",
    tag = "sessions",
    params(("session_id" = String, Path, description = "The session's id"), FormatQuery),
    responses((status = 200, description = "The definitions", body = Definitions))
)]
pub(super) async fn definitions(
    State(app): State<App>,
    Caller(role): Caller,
    Ids(id): Ids<String>,
    Parameters(query): Parameters<FormatQuery>,
) -> Result<Json<Definitions>, ApiError> {
    let session = first(&app, &role, &id)?;
    let format = query.format;
    let strictness = match query.strict {
        Some(true) => Strictness::Transform,
        Some(false) | None => Strictness::AsIs,
    };
    let exported = app.host.export(&session, format, strictness);
    Ok(Json(Definitions {
        format: format.as_str(),
        definitions: exported.definitions.clone(),
        weakened: exported.weakened.iter().map(Weakened::from).collect(),
    }))
}

fn first(app: &App, role: &Role, id: &str) -> Result<Session, ApiError> {
    reachable(app, role, id)?.into_iter().next().ok_or(ApiError::NoSuchSession)
}
