//! The plugins, what their sandboxes hold, and why some files were refused.

use super::extract::{Caller, Parameters};
use super::pages::{MOST, PageQuery};
use super::problem::ApiError;
use super::state::App;
use axum::Json;
use axum::extract::State;
use palisade::Definition;
use palisade::internal::{Power, sandbox_contents};
use palisade::plugins::Plugin;
use palisade::registry::Origin;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The name of the entry for native tools.
const NATIVE: &str = "native";

/// The plugins.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PluginList {
    items: Vec<PluginView>,
    /// The refused files; `null` for a client.
    rejected: Option<Vec<RejectedView>>,
    next_cursor: Option<String>,
}

/// A plugin, an MCP server, or the native tools.
#[derive(Debug, Serialize, ToSchema)]
struct PluginView {
    name: String,
    /// The location, or `null` for a server and for native tools.
    file: Option<String>,
    digest: Option<String>,
    tools: Vec<PluginTool>,
    imports: Vec<ImportView>,
    /// The grants of the plugin beyond the classes of its tools, one on each line.
    grants: Vec<String>,
}

/// A tool of a plugin.
#[derive(Debug, Serialize, ToSchema)]
struct PluginTool {
    name: String,
    title: Option<String>,
    description: String,
    class: &'static str,
    /// What the sandbox of a call holds, or what the process of its server may do.
    sandbox: String,
}

/// An import of a plugin.
#[derive(Debug, Serialize, ToSchema)]
struct ImportView {
    name: String,
    /// What the sandbox provides for it.
    gets: &'static str,
}

/// A refused plugin file.
#[derive(Debug, Serialize, ToSchema)]
struct RejectedView {
    file: String,
    reason: String,
}

/// Lists the plugins.
#[utoipa::path(
    get,
    path = "/plugins",
    tag = "tools",
    params(PageQuery),
    responses((status = 200, description = "A page of plugins", body = PluginList))
)]
pub(super) async fn list(
    State(app): State<App>,
    Caller(role): Caller,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<PluginList>, ApiError> {
    let limit = super::pages::limit(query.limit.or(Some(MOST)))?;
    let begin = super::pages::cursor(query.cursor.as_deref())?.unwrap_or(0);
    let begin = usize::try_from(begin).unwrap_or(usize::MAX);
    let mut items: Vec<_> = app.host.plugins().iter().map(PluginView::from).collect();
    items.extend(without_file(&app));
    let count = items.len();
    let items: Vec<_> = items.into_iter().skip(begin).take(limit).collect();
    let end = begin.saturating_add(items.len());
    let rejected = role.is_operator().then(|| {
        let rejected = app.host.rejected().into_iter();
        rejected.map(|it| RejectedView { file: it.file, reason: it.reason }).collect()
    });
    Ok(Json(PluginList { items, rejected, next_cursor: (end < count).then(|| end.to_string()) }))
}

/// Returns the entries of the servers and of the native tools.
fn without_file(app: &App) -> impl Iterator<Item = PluginView> {
    let mut tools: BTreeMap<String, Vec<PluginTool>> = BTreeMap::new();
    for tool in app.host.registry().tools() {
        let (name, rights) = match tool.origin() {
            Origin::Native => (NATIVE, None),
            Origin::Server(server) => (server.name(), Some(server.rights())),
            Origin::Plugin { .. } => continue,
        };
        let mut view = PluginTool::of(tool.definition(), Power::Class);
        view.sandbox = rights.map_or(view.sandbox, str::to_owned);
        tools.entry(name.to_owned()).or_default().push(view);
    }
    tools.into_iter().map(|(name, tools)| PluginView {
        name,
        file: None,
        digest: None,
        tools,
        imports: Vec::new(),
        grants: Vec::new(),
    })
}

impl From<&Plugin> for PluginView {
    fn from(plugin: &Plugin) -> Self {
        let (imports, grants) = (plugin.imports().iter(), plugin.grants());
        let power = Power::of(&grants);
        let tools = plugin.tools().iter();
        Self {
            name: plugin.name().to_owned(),
            file: Some(plugin.file().to_owned()),
            digest: Some(plugin.digest().to_string()),
            tools: tools.map(|tool| PluginTool::of(tool.definition(), power)).collect(),
            imports: imports
                .map(|import| ImportView { name: import.name.clone(), gets: import.meaning })
                .collect(),
            grants,
        }
    }
}

impl PluginTool {
    fn of(definition: &Definition, power: Power) -> Self {
        Self {
            name: definition.name().to_string(),
            title: definition.title().map(str::to_owned),
            description: definition.description().to_owned(),
            class: definition.side_effects().as_str(),
            sandbox: sandbox_contents(definition.side_effects(), power).to_owned(),
        }
    }
}
