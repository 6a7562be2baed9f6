//! The plugins, what their sandboxes hold, and why some files were refused. Plugins choose the
//! number and size of their tools, so that a page has a bounded length, and a long one is written
//! in the turns of its sender.

use super::answers::Answer;
use super::extract::{Caller, Parameters};
use super::offload;
use super::pages::{MOST, PageQuery};
use super::problem::ApiError;
use super::state::App;
use axum::extract::State;
use axum::http::StatusCode;
use palisade::Definition;
use palisade::internal::{Power, sandbox_contents};
use palisade::plugins::Plugin;
use palisade::registry::{Origin, Registered};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// The length of a page to which no further plugin is added, in bytes of the words of its tools.
const PAGE: usize = 1 << 20;
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
    /// The contents of the sandbox of a call, or the rights of the process of its server.
    sandbox: String,
}

/// An import of a plugin.
#[derive(Debug, Serialize, ToSchema)]
struct ImportView {
    name: String,
    /// The implementation that the sandbox provides for it.
    gets: &'static str,
}

/// A refused plugin file.
#[derive(Debug, Serialize, ToSchema)]
struct RejectedView {
    file: String,
    reason: String,
}

/// Lists the plugins. A page ends early if it reaches 1 MiB.
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
) -> Result<Answer, ApiError> {
    let limit = super::pages::limit(query.limit.or(Some(MOST)))?;
    let begin = super::pages::cursor(query.cursor.as_deref())?.unwrap_or(0);
    let begin = usize::try_from(begin).unwrap_or(usize::MAX);
    let mut entries: Vec<Entry> = app.host.plugins().into_iter().map(Entry::Plugin).collect();
    entries.extend(without_file(&app));
    let count = entries.len();
    let mut length = 0;
    let is_on_page = |entry: &Entry| {
        let has_room = length < PAGE;
        length += entry.length();
        has_room
    };
    let entries: Vec<_> =
        entries.into_iter().skip(begin).take(limit).take_while(is_on_page).collect();
    let end = begin.saturating_add(entries.len());
    let rejected = role.is_operator().then(|| {
        let rejected = app.host.rejected().into_iter();
        rejected.map(|it| RejectedView { file: it.file, reason: it.reason }).collect()
    });
    let next_cursor = (end < count).then(|| end.to_string());
    let account = app.account_for(&role, 0)?;
    let own = account.clone();
    let write = move || {
        // The views and their text exist together.
        let _views = own.charge(length as u64)?;
        let items = entries.iter().map(Entry::view).collect();
        Answer::within(&own, StatusCode::OK, &PluginList { items, rejected, next_cursor })
    };
    let written = offload::work(length, &account, write).await.flatten();
    written.map_err(ApiError::NoMemory)
}

/// An entry of the list.
enum Entry {
    Plugin(Plugin),
    /// The tools of an MCP server, or the native ones.
    WithoutFile {
        name: String,
        tools: Vec<Arc<Registered>>,
    },
}

impl Entry {
    /// Returns about the length of the entry in the list, in bytes.
    fn length(&self) -> usize {
        match self {
            Self::Plugin(plugin) => length_of(plugin.tools()),
            Self::WithoutFile { tools, .. } => length_of(tools),
        }
    }

    fn view(&self) -> PluginView {
        match self {
            Self::Plugin(plugin) => PluginView::from(plugin),
            Self::WithoutFile { name, tools } => PluginView {
                name: name.clone(),
                file: None,
                digest: None,
                tools: tools.iter().map(|tool| PluginTool::of_registered(tool)).collect(),
                imports: Vec::new(),
                grants: Vec::new(),
            },
        }
    }
}

fn length_of(tools: &[Arc<Registered>]) -> usize {
    /// The text around the words of a tool.
    const AROUND: usize = 256;
    let length = |tool: &Arc<Registered>| {
        let definition = tool.definition();
        AROUND + definition.title().map_or(0, str::len) + definition.description().len()
    };
    tools.iter().map(length).sum()
}

/// Returns the entries of the servers and of the native tools.
fn without_file(app: &App) -> impl Iterator<Item = Entry> {
    let mut tools: BTreeMap<String, Vec<Arc<Registered>>> = BTreeMap::new();
    for tool in app.host.registry().tools() {
        let name = match tool.origin() {
            Origin::Native => NATIVE,
            Origin::Server(server) => server.name(),
            Origin::Plugin { .. } => continue,
        };
        tools.entry(name.to_owned()).or_default().push(tool.clone());
    }
    tools.into_iter().map(|(name, tools)| Entry::WithoutFile { name, tools })
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
    /// Describes a tool of no plugin. A server itself states the rights of its process.
    fn of_registered(tool: &Registered) -> Self {
        let view = Self::of(tool.definition(), Power::Class);
        match tool.origin() {
            Origin::Server(server) => Self { sandbox: server.rights().to_owned(), ..view },
            Origin::Native | Origin::Plugin { .. } => view,
        }
    }

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
