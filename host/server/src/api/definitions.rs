//! The tools, and their definitions in the formats of providers. Plugins choose their number and
//! size, so that they are converted once, off the threads that serve requests, and a page of tools
//! has a bounded length.

mod texts;

pub(super) use texts::DefinitionTexts;

use super::answers::Answer;
use super::extract::{Caller, Ids, Parameters};
use super::names::{named, one_of};
use super::offload;
use super::pages::{List, MOST, PageQuery};
use super::problem::ApiError;
use super::sessions::reachable;
use super::state::App;
use crate::role::Role;
use axum::extract::State;
use axum::http::StatusCode;
use palisade::Session;
use palisade::formats::{Format, Strictness, Weakening};
use palisade::internal::{Account, answer_turns};
use palisade::registry::Registered;
use palisade::tool::budget::{Budget, Exhausted};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use texts::{Form, ToolText};
use utoipa::openapi::schema::Object;
use utoipa::{IntoParams, ToSchema};

/// The length of a page of tools to which no further tool is added, in bytes.
const PAGE: usize = 1 << 20;
/// The longest text that is joined on a thread that serves requests, in bytes.
const JOINED_IN_PLACE: usize = 1 << 20;

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

/// Lists the tools that the host's own session lists, in listing order. A page ends early if it
/// reaches 1 MiB.
#[utoipa::path(
    get,
    path = "/tools",
    tag = "tools",
    params(PageQuery),
    responses((status = 200, description = "A page of tools", body = List<ToolView>))
)]
pub(super) async fn tools(
    State(app): State<App>,
    Caller(role): Caller,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Answer, ApiError> {
    let limit = super::pages::limit(query.limit.or(Some(MOST)))?;
    let begin = super::pages::cursor(query.cursor.as_deref())?.unwrap_or(0);
    let begin = usize::try_from(begin).unwrap_or(usize::MAX);
    let account = app.account_for(&role, 0)?;
    let tools = app.host.tools(app.host.session());
    let all = tools.len();
    let tools: Vec<_> = tools.into_iter().skip(begin).take(limit).collect();
    let texts = texts_of(&app, tools, Form::Listed, PAGE, &account).await?;
    let end = begin.saturating_add(texts.len());
    let next = if end < all { format!("\"{end}\"") } else { "null".to_owned() };
    let tail = format!("],\"next_cursor\":{next}}}");
    joined(texts, account, move |texts| {
        let items = texts.iter().map(|text| &*text.tool);
        [vec!["{\"items\":["], commas(items), vec![&*tail]].concat().concat()
    })
    .await
}

/// Returns the texts of the first of these tools, until they reach a length in bytes. Those that are
/// not known are converted in the turns of all answers.
async fn texts_of(
    app: &App,
    tools: Vec<Arc<Registered>>,
    form: Form,
    most: usize,
    account: &Account,
) -> Result<Vec<Arc<ToolText>>, ApiError> {
    let known = |tool: &Arc<Registered>| app.definitions.known(tool, form).ok_or(());
    if let Ok(texts) = first_texts(&tools, most, known) {
        return Ok(texts);
    }
    let app = app.clone();
    let convert = move |budget: &dyn Budget| {
        let text = |tool: &Arc<Registered>| {
            budget.check()?;
            let text = app.definitions.get(tool, form);
            // Charged to the request, so that the texts of many tools end at its limit.
            budget.reserve(text.length() as u64).map(|()| text)
        };
        first_texts(&tools, most, text)
    };
    let converted = offload::in_turns_of(answer_turns(), account, convert).await;
    converted.flatten().map_err(ApiError::NoMemory)
}

fn first_texts<E>(
    tools: &[Arc<Registered>],
    most: usize,
    text: impl Fn(&Arc<Registered>) -> Result<Arc<ToolText>, E>,
) -> Result<Vec<Arc<ToolText>>, E> {
    let mut length = 0;
    let mut texts = Vec::new();
    for tool in tools {
        if length >= most {
            break;
        }
        let text = text(tool)?;
        length += text.tool.len();
        texts.push(text);
    }
    Ok(texts)
}

/// Joins texts to an answer, whose memory is reserved first.
async fn joined(
    texts: Vec<Arc<ToolText>>,
    account: Account,
    join: impl FnOnce(&[Arc<ToolText>]) -> String + Send + 'static,
) -> Result<Answer, ApiError> {
    /// The text around one tool, and around all of them.
    const AROUND: usize = 256;
    let lengths = texts.iter().map(|text| text.length() + 2);
    let length = lengths.sum::<usize>() + AROUND;
    let own = account.clone();
    let answer = move || {
        let room = own.charge(length as u64)?;
        Ok::<_, Exhausted>(Answer::of_text(StatusCode::OK, join(&texts), room))
    };
    let answer = match length <= JOINED_IN_PLACE {
        true => answer(),
        false => {
            let joining = offload::in_turns_of(answer_turns(), &account, |_| answer()).await;
            joining.flatten()
        }
    };
    answer.map_err(ApiError::NoMemory)
}

/// Puts commas between texts.
fn commas<'t>(texts: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    texts.filter(|text| !text.is_empty()).flat_map(|text| [",", text]).skip(1).collect()
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

impl From<Weakening> for Weakened {
    fn from(of: Weakening) -> Self {
        let Weakening { tool, pointer, keyword, effect, .. } = of;
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
) -> Result<Answer, ApiError> {
    let session = first(&app, &role, &id)?;
    let format = query.format;
    let strictness = match query.strict {
        Some(true) => Strictness::Transform,
        Some(false) | None => Strictness::AsIs,
    };
    let account = app.account_for(&role, 0)?;
    let tools = app.host.tools(&session);
    let form = Form::Exported(format, strictness);
    let texts = texts_of(&app, tools, form, usize::MAX, &account).await?;
    joined(texts, account, move |texts| {
        let [before, after] = around(format);
        let head = format!("{{\"definitions\":{before}");
        let middle = format!("{after},\"format\":\"{format}\",\"weakened\":[");
        let tools = commas(texts.iter().map(|text| &*text.tool));
        let weakened = commas(texts.iter().map(|text| &*text.weakened));
        [vec![&*head], tools, vec![&*middle], weakened, vec!["]}"]].concat().concat()
    })
    .await
}

/// Returns the text around the list of tools in the request of a provider.
const fn around(format: Format) -> [&'static str; 2] {
    match format {
        Format::Gemini => ["[{\"functionDeclarations\":[", "]}]"],
        Format::Mcp => ["{\"tools\":[", "]}"],
        _ => ["[", "]"],
    }
}

fn first(app: &App, role: &Role, id: &str) -> Result<Session, ApiError> {
    reachable(app, role, id)?.into_iter().next().ok_or(ApiError::NoSuchSession)
}
