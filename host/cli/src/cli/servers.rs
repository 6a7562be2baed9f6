//! MCP servers as sources of tools: which of them this run uses.

use super::args::Common;
use super::exit::Failure;
use super::{hint, setup, trust};
use crate::config::{McpPlace, McpServer, Settings, Value};
use palisade::plugins::Shipped;
use palisade::tool::nearest_names;
use palisade::tool::text::elided;
use palisade::{Definition, HostBuilder, internal::shipped_owner};
use palisade_mcp_client::{Approval, Approvals, LeftOut, Reach, Server, ServerName};
use palisade_net::Network;
use palisade_shell::ShellHelper;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The folder of the approvals, beside a lock.
const FOLDER: &str = "palisade.mcp";

/// Returns the folder of the approvals beside a configuration file.
pub(super) fn beside(file: &Path) -> Option<PathBuf> {
    trust::beside(file).map(|lock| lock.with_file_name(FOLDER))
}

/// Returns the files of a server's command line that are in the workspace, or behind a link there:
/// tools that write can change or replace them, and the server would run them with its rights.
pub(super) fn changeable(common: &Common, server: &McpServer) -> Vec<PathBuf> {
    let McpPlace::Command(command) = &server.place else { return Vec::new() };
    let Ok(workspace) = common.workspace.canonicalize() else { return Vec::new() };
    let words = std::iter::once(&command.program).chain(&command.arguments);
    let files =
        words.map(|word| PathBuf::from(word.replace("{workspace}", &workspace.to_string_lossy())));
    let is_changeable = |file: &PathBuf| {
        file.is_absolute() && file.is_file() && trust::is_in_workspace(common, file)
    };
    files.filter(is_changeable).collect()
}

/// Returns the approvals of the user. `None` if there is no place for them, or if tools of this run
/// could write there.
pub(super) fn approvals(common: &Common) -> Option<Approvals> {
    let folder = beside(&setup::user_file(common))?;
    // A file in it, since the workspace may be the folder itself.
    let file = folder.join("server.json");
    (!trust::is_in_workspace(common, &file)).then(|| Approvals::in_folder(folder))
}

/// Returns how a server is reached, with this program as the helper of its processes.
///
/// # Errors
///
/// A usage error if a token in the environment is no value of a header.
pub(super) fn reach(settings: &Settings, server: &McpServer) -> Result<Reach, Failure> {
    let limits = settings.shell_limits();
    let variable = |name: &str| std::env::var(name).ok();
    let mut reach = server.reach(limits, Network::default, variable).map_err(Failure::usage)?;
    if let (Reach::Command(command), Ok(program)) = (&mut reach, setup::this_program()) {
        command.options = command.options.clone().helper(ShellHelper::palisade(program));
    }
    Ok(reach)
}

/// Returns a configured server by its name.
pub(super) fn named<'a>(
    settings: &'a Settings,
    name: &str,
) -> Option<(&'a ServerName, &'a Value<McpServer>)> {
    settings.servers.iter().find(|(server, _)| server.as_str() == name)
}

/// Adds the approved tools of the servers to a host. A server without an approval adds none, and is
/// told of in the log.
///
/// # Errors
///
/// A usage error if a token in the environment is no value of a header.
pub(super) fn add_to(
    base: HostBuilder,
    common: &Common,
    settings: &Settings,
) -> Result<HostBuilder, Failure> {
    if settings.servers.is_empty() {
        return Ok(base);
    }
    let Some(approvals) = approvals(common) else {
        tracing::warn!(
            "no MCP server is used: their approvals would be in the workspace, where tools could write them"
        );
        return Ok(base);
    };
    let mut names = Names::new(settings.builtin.value);
    let mut base = base;
    for (name, server) in &settings.servers {
        let reach = reach(settings, &server.value)?;
        let approval = approvals.of(name, &reach).unwrap_or_else(|error| {
            tracing::warn!("{error}");
            Approval::Missing
        });
        if !matches!(approval, Approval::Given(_)) {
            tracing::warn!(
                "the MCP server `{name}` {}, so that none of its tools can be called; `{}` shows them, and asks",
                state(&approval),
                hint::command(common, &format!("mcp approve {name}"))
            );
            continue;
        }
        show_unused(name, &server.value, &approval);
        let server = Server::new(name.clone(), reach, &server.value.classes, &approval);
        for (factory, definition) in server.factories().into_iter().zip(server.definitions()) {
            match names.take(definition, name) {
                Ok(()) => base = base.tool(factory),
                Err(reason) => show_left_out(name, definition.name().as_str(), &reason),
            }
        }
        for LeftOut { tool, reason, .. } in server.left_out() {
            show_left_out(name, tool, reason);
        }
    }
    Ok(base)
}

/// Tells of parts of a table that have no effect.
fn show_unused(name: &ServerName, server: &McpServer, approval: &Approval) {
    let Approval::Given(offer) = approval else { return };
    for tool in server.classes.named().filter(|tool| offer.tool(tool).is_none()) {
        let known = offer.tools.iter().map(|tool| tool.name.as_str());
        let nearest = nearest_names(tool, known).into_iter().next();
        let hint = nearest.map(|it| format!("; did you mean `{it}`?")).unwrap_or_default();
        let tool = elided(tool, 64);
        tracing::warn!("`mcp.servers.{name}.classes.{tool}` holds for no tool of the server{hint}");
    }
    for variable in server.passed().filter(|variable| std::env::var_os(variable).is_none()) {
        tracing::warn!("the MCP server `{name}` gets no `{variable}`: the variable is not set");
    }
}

/// Returns the names of the tools of the other approved servers.
pub(super) fn names_of_others<'a>(
    settings: &'a Settings,
    approvals: &Approvals,
    name: &ServerName,
) -> BTreeMap<String, &'a ServerName> {
    let mut names = BTreeMap::new();
    for (other, table) in settings.servers.iter().filter(|(other, _)| *other != name) {
        let Ok(reach) = reach(settings, &table.value) else { continue };
        let Ok(approval @ Approval::Given(_)) = approvals.of(other, &reach) else { continue };
        let server = Server::new(other.clone(), reach, &table.value.classes, &approval);
        for definition in server.definitions() {
            names.entry(definition.name().to_string()).or_insert(other);
        }
    }
    names
}

/// Says what an approval means for its server.
pub(super) fn state(approval: &Approval) -> &'static str {
    match approval {
        Approval::Given(_) => "is approved",
        Approval::Missing => "is not approved",
        Approval::Elsewhere { .. } => {
            "was approved with another command, other rights or another URL"
        }
    }
}

fn show_left_out(server: &ServerName, tool: &str, reason: &str) {
    let (tool, reason) = (elided(tool, 64), elided(reason, 512));
    tracing::warn!("the tool `{tool}` of the MCP server `{server}` is left out: {reason}");
}

/// The names of tools that are taken.
struct Names {
    shipped: Shipped,
    servers: BTreeMap<String, ServerName>,
}

impl Names {
    fn new(shipped: Shipped) -> Self {
        Self { shipped, servers: BTreeMap::new() }
    }

    /// Takes the name of a tool, or says who has it.
    fn take(&mut self, tool: &Definition, server: &ServerName) -> Result<(), String> {
        let name = tool.name().as_str();
        if self.shipped != Shipped::LeftOut && shipped_owner(name).is_some() {
            return Err(format!("the name `{name}` is that of a tool of this program"));
        }
        if let Some(other) = self.servers.get(name) {
            return Err(format!("the MCP server `{other}` has a tool of the name `{name}`"));
        }
        self.servers.insert(name.to_owned(), server.clone());
        Ok(())
    }
}
