//! The request that opens a session. It never gives more than the host gives its own session.

use crate::api::ids::{check_id, fresh_id};
use crate::api::open_sessions::{OpenSession, Owner};
use crate::api::problem::ApiError;
use crate::api::state::App;
use crate::journal::Timestamp;
use crate::role::Role;
use palisade::internal::Account;
use palisade::policy::{Mode, Policy, parts};
use palisade::tool::text::elided;
use palisade::tool::{Digest, ToolName};
use palisade::workspace::Workspace;
use palisade::{Advertised, Allowed, Host, SideEffects};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use utoipa::ToSchema;

/// The origin of the sessions that the API opens.
const ORIGIN: &str = "http";
/// The number of tools that a session may name.
const TOOLS: usize = 256;

/// The longest name of a plugin, in bytes: that of a file.
const PLUGIN: usize = 255;
/// The memory of a session beside its names, in bytes, about.
const SESSION: usize = 8 << 10;
/// The memory of a name in the lists of a session beside its text, in bytes, about.
const NAME: usize = 256;

/// A session to open. Every member may be left out.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct CreateSession {
    /// The path of one of the workspaces that the server allows. Default: the host's.
    workspace: Option<String>,
    /// The only tools that the session lists and may call, each as `tool` or `plugin/tool`.
    /// Default: those of the host.
    #[schema(max_items = 256)]
    tools: Option<Vec<String>>,
    policy: Option<SessionPolicy>,
    /// The id: 1 to 128 letters, digits and `.`, `_`, `:`, `-`, the first a letter or digit, and
    /// not beginning with `mcp-`. Default: a new one.
    #[schema(pattern = "^(?!mcp-)[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$")]
    id: Option<String>,
}

impl CreateSession {
    /// Returns the memory of the session, in bytes, about.
    fn memory(&self) -> u64 {
        let allowed = self.tools.iter().flatten();
        let policy = self.policy.iter().flat_map(|policy| &policy.tools).flat_map(BTreeMap::keys);
        let names = allowed.chain(policy).map(|name| NAME + 3 * name.len());
        (SESSION + names.sum::<usize>()) as u64
    }
}

/// The policy of a session. For each tool, the stricter one of this and the host's applies.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SessionPolicy {
    none: Option<SessionMode>,
    read: Option<SessionMode>,
    write: Option<SessionMode>,
    execute: Option<SessionMode>,
    network: Option<SessionMode>,
    /// Modes of single tools, each named `tool` or `plugin/tool`; at most 256.
    tools: Option<BTreeMap<String, SessionMode>>,
}

/// The treatment of calls.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum SessionMode {
    Auto,
    Prompt,
    PromptOnce,
    Deny,
}

impl From<SessionMode> for Mode {
    fn from(mode: SessionMode) -> Self {
        match mode {
            SessionMode::Auto => Self::Auto,
            SessionMode::Prompt => Self::Prompt,
            SessionMode::PromptOnce => Self::PromptOnce,
            SessionMode::Deny => Self::Deny,
        }
    }
}

/// Opens a session.
pub(super) async fn open(
    app: &App,
    role: &Role,
    wanted: CreateSession,
    account: &Account,
) -> Result<OpenSession, ApiError> {
    let memory = account.charge(wanted.memory()).map_err(ApiError::NoMemory)?;
    let owner = Owner::from(role);
    let id: Arc<str> = match &wanted.id {
        Some(id) => check_id(id)?.into(),
        None => fresh_id("s_")?.into(),
    };
    // An id tells sessions apart in events and in the journal.
    if !app.host.sessions(&id).is_empty() || app.is_of_another(&id, &owner).await? {
        return Err(ApiError::SessionExists);
    }
    let workspace = workspace(app, wanted.workspace.as_deref())?;
    let tools = wanted.tools.as_deref().map(|names| tools(&app.host, names)).transpose()?;
    let policy = wanted.policy.unwrap_or_default().at_least(app.host.session().policy())?;
    // However many sessions a caller has, together they take nothing that others need.
    let caller = Digest::of(format!("{owner:?}").as_bytes());
    let session = app.host.new_session(&id).workspace(workspace).policy(policy);
    let mut session = session.own_shares_of(caller);
    if let Some(tools) = tools {
        session = session.advertise(Advertised::Only(tools.clone())).allow(Allowed::Only(tools));
    }
    let memory = Some(Arc::new(memory.into_owed()));
    let open = app.sessions.open(id.clone(), &owner, |number| OpenSession {
        id,
        owner: owner.clone(),
        session: session.build(),
        tools: wanted.tools,
        opened_at: Timestamp::now(),
        number,
        origin: ORIGIN,
        title: None,
        protocol: None,
        end: None,
        memory,
    })?;
    app.session_opened(&open).await?;
    Ok(open)
}

fn workspace(app: &App, path: Option<&str>) -> Result<Arc<Workspace>, ApiError> {
    let own = app.host.workspace();
    let Some(path) = path.map(Path::new) else { return Ok(own.clone()) };
    if own.root() == path {
        return Ok(own.clone());
    }
    app.settings.find_workspace(path).cloned().ok_or_else(|| {
        let others = app.settings.workspaces.iter().map(|other| other.root());
        let all = std::iter::once(own.root()).chain(others);
        let all: Vec<_> = all.map(|root| format!("`{}`", root.display())).collect();
        ApiError::WorkspaceNotAllowed { allowed: elided(&all.join(", "), 2000) }
    })
}

/// Returns the full names of tools that the host's own session may call, each given by the name
/// that sessions see, so that no other plugin can take the place of one.
fn tools(host: &Host, names: &[String]) -> Result<Vec<String>, ApiError> {
    let refuse = |why: String| Err(ApiError::Body(why));
    if names.len() > TOOLS {
        return refuse(format!("`tools` has {} names; at most {TOOLS} are accepted", names.len()));
    }
    let mut full = Vec::new();
    for name in names {
        let (plugin, tool) = parts(name);
        let shown = elided(name, 128);
        let found = match host.registry().get(tool) {
            Ok(found) => found,
            Err(unknown) => return refuse(format!("`tools` names `{shown}`: {unknown}")),
        };
        let qualifier = found.origin().rule_name();
        if plugin.is_some_and(|plugin| plugin != qualifier) {
            return refuse(format!("`tools` names `{shown}`; this tool is `{qualifier}/{tool}`"));
        }
        if !host.session().permits(&found) {
            return refuse(format!("`tools` names `{shown}`, which this server does not allow"));
        }
        full.push(found.full_name());
    }
    Ok(full)
}

/// Checks a name of a tool that need not be there: a later plugin may bring it.
fn check_name(name: &str) -> Result<(), ApiError> {
    let (plugin, tool) = parts(name);
    let is_fit = plugin.is_none_or(|plugin| (1..=PLUGIN).contains(&plugin.len()));
    let refused = |why: &str| {
        Err(ApiError::Body(format!("`policy.tools` names `{}`: {why}", elided(name, 128))))
    };
    match ToolName::parse(tool) {
        Ok(_) if is_fit => Ok(()),
        Ok(_) => refused(&format!("the name of a plugin has 1 to {PLUGIN} bytes")),
        Err(invalid) => refused(&invalid.to_string()),
    }
}

impl SessionPolicy {
    /// Returns a policy that only tightens the host's.
    fn at_least(self, host: &Policy) -> Result<Policy, ApiError> {
        let classes = [
            (SideEffects::None, self.none),
            (SideEffects::Read, self.read),
            (SideEffects::Write, self.write),
            (SideEffects::Execute, self.execute),
            (SideEffects::Network, self.network),
        ];
        let mut policy = Policy::default();
        for (class, mode) in classes {
            policy = policy.with_class(class, mode.map_or(Mode::Auto, Mode::from));
        }
        let tools = self.tools.unwrap_or_default();
        if tools.len() > TOOLS {
            let count = tools.len();
            let why = format!("`policy.tools` has {count} names; at most {TOOLS} are accepted");
            return Err(ApiError::Body(why));
        }
        for (tool, mode) in tools {
            check_name(&tool)?;
            policy = policy.with_tool(tool, mode.into());
        }
        Ok(policy.at_least(host))
    }
}
