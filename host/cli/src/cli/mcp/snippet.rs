//! Renders the configuration entry for palisade in the format of each MCP client.

use super::{Address, Launch, Name, Program, command, listed, quoted};
use crate::cli::args::Client;
use crate::cli::token::TOKEN;
use palisade::SideEffects;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The timeouts that Codex is given for starting the server and for a call, in seconds. The latter
/// is the maximum call timeout of palisade.
const CODEX_TIMES: [(&str, u32); 2] = [("startup_timeout_sec", 20), ("tool_timeout_sec", 600)];

/// The side-effect classes that need a confirmation by default.
const ASKING: [SideEffects; 3] = [SideEffects::Write, SideEffects::Execute, SideEffects::Network];

/// A configuration entry for a client, with instructions.
pub(super) struct Snippet {
    /// The text for the configuration file, including the final newline.
    pub(super) text: String,
    /// The configuration file.
    pub(super) place: &'static str,
    /// A shell command with which the client adds the same entry itself.
    pub(super) one_step: Option<String>,
    /// Further remarks, one per line.
    pub(super) notes: Vec<String>,
}

/// The error if a client supports no such entry.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoSnippet {
    #[error(
        "claude-desktop starts its servers itself and its file takes no addresses: leave out --http"
    )]
    StartsOnly,
    #[error("the JSON cannot be written: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the TOML cannot be written: {0}")]
    Toml(#[from] toml::ser::Error),
}

/// Returns the configuration entry for a client.
pub(super) fn of(client: Client, name: &Name, launch: &Launch) -> Result<Snippet, NoSnippet> {
    let entry = match launch {
        Launch::Program(program) => started(client, program),
        Launch::Http { address, .. } => reached(client, address)?,
    };
    Ok(Snippet {
        text: text(client, name, &entry)?,
        place: place(client),
        one_step: one_step(client, name, launch, &entry)?,
        notes: notes(client, launch),
    })
}

fn started(client: Client, program: &Program) -> Entry {
    let kind = match client {
        Client::ClaudeCode | Client::VsCode => Entry::default().with("type", "stdio"),
        // Earlier versions of Zed require a `source` for servers that no extension provides.
        Client::Zed => Entry::default().with("source", "custom"),
        Client::ClaudeDesktop | Client::Cursor | Client::Codex => Entry::default(),
    };
    let command = kind.with("command", program.path.as_str()).with("args", program.args());
    match client {
        Client::ClaudeCode | Client::ClaudeDesktop | Client::Cursor | Client::Zed => {
            command.with("env", json!(program.environment))
        }
        Client::VsCode => command.with_environment(program),
        // `env` is a TOML table of its own and must come last: it ends the server's table.
        Client::Codex => command.with_times().with_environment(program),
    }
}

fn reached(client: Client, address: &Address) -> Result<Entry, NoSnippet> {
    let url = |entry: Entry| entry.with("url", address.as_str());
    let bearer = |token: &str| json!({"Authorization": format!("Bearer {token}")});
    Ok(match client {
        Client::ClaudeDesktop => return Err(NoSnippet::StartsOnly),
        Client::ClaudeCode => url(Entry::default().with("type", "http"))
            .with("headers", bearer(&format!("${{{TOKEN}}}"))),
        Client::VsCode => url(Entry::default().with("type", "http")),
        Client::Cursor => {
            url(Entry::default()).with("headers", bearer(&format!("${{env:{TOKEN}}}")))
        }
        Client::Zed => url(Entry::default()).with("headers", bearer("<token>")),
        Client::Codex => url(Entry::default()).with("bearer_token_env_var", TOKEN).with_times(),
    })
}

fn text(client: Client, name: &Name, entry: &Entry) -> Result<String, NoSnippet> {
    let servers = match client {
        Client::ClaudeCode | Client::ClaudeDesktop | Client::Cursor => "mcpServers",
        Client::VsCode => "servers",
        Client::Zed => "context_servers",
        Client::Codex => "mcp_servers",
    };
    let whole = BTreeMap::from([(servers, BTreeMap::from([(name.as_str(), entry)]))]);
    Ok(match client {
        Client::Codex => toml::to_string_pretty(&whole)?,
        _ => serde_json::to_string_pretty(&whole)? + "\n",
    })
}

fn place(client: Client) -> &'static str {
    match client {
        Client::ClaudeCode => "`.mcp.json` in your project's directory",
        Client::ClaudeDesktop => {
            "`claude_desktop_config.json` (Settings, Developer, Edit Config; \
             in `~/Library/Application Support/Claude` on macOS, `~/.config/Claude` elsewhere)"
        }
        Client::VsCode => {
            "`.vscode/mcp.json` in your project, or what `MCP: Open User Configuration` opens"
        }
        Client::Cursor => "`~/.cursor/mcp.json`, or `.cursor/mcp.json` in your project",
        Client::Zed => "Zed's `settings.json`, which `zed: open settings file` opens",
        Client::Codex => "`~/.codex/config.toml`",
    }
}

fn one_step(
    client: Client,
    name: &Name,
    launch: &Launch,
    entry: &Entry,
) -> Result<Option<String>, NoSnippet> {
    let name = name.as_str();
    Ok(match (client, launch) {
        (Client::ClaudeCode, Launch::Program(program)) => {
            // The environment comes first: `--env` takes every pair that follows it.
            let environment = pairs(program);
            let add = ["--transport", "stdio", "--scope", "user", name, "--"].map(str::to_owned);
            Some(command(
                &["claude", "mcp", "add"],
                &[environment, add.to_vec(), program.words()].concat(),
            ))
        }
        // In project scope, because variable expansion is documented for `.mcp.json` only.
        (Client::ClaudeCode, Launch::Http { address, .. }) => {
            let add = [
                "claude",
                "mcp",
                "add",
                "--transport",
                "http",
                "--scope",
                "project",
                name,
                address.as_str(),
            ];
            Some(command(
                &add,
                &["--header".to_owned(), format!("Authorization: Bearer ${{{TOKEN}}}")],
            ))
        }
        (Client::VsCode, _) => {
            Some(command(&["code", "--add-mcp"], &[serde_json::to_string(&entry.named(name))?]))
        }
        (Client::Codex, Launch::Program(program)) => {
            let add = [pairs(program), vec!["--".to_owned()], program.words()].concat();
            Some(command(&["codex", "mcp", "add", name], &add))
        }
        (Client::Codex, Launch::Http { address, .. }) => {
            let add = [
                "codex",
                "mcp",
                "add",
                name,
                "--url",
                address.as_str(),
                "--bearer-token-env-var",
                TOKEN,
            ];
            Some(command(&add, &[]))
        }
        (Client::ClaudeDesktop | Client::Cursor | Client::Zed, _) => None,
    })
}

/// Returns the environment as the options that both commands take.
fn pairs(program: &Program) -> Vec<String> {
    program
        .environment
        .iter()
        .flat_map(|(name, value)| ["--env".to_owned(), format!("{name}={value}")])
        .collect()
}

fn notes(client: Client, launch: &Launch) -> Vec<String> {
    let (general, token) = match launch {
        Launch::Program(program) => {
            (format!("tools see `{}`; --workspace names another directory", program.workspace), None)
        }
        Launch::Http { token, .. } => (
            "this starts nothing: `palisade serve --http` has to run there, with its own workspace and plugins"
                .to_owned(),
            about_token(client, token.as_deref()),
        ),
    };
    [Some(general), token, about_client(client, launch), unasked(client, launch)]
        .into_iter()
        .flatten()
        .collect()
}

/// Explains how the client gets the token, which appears in no snippet. If a server at this address
/// has left a token file, the note names the file; a server that was killed leaves a stale one.
fn about_token(client: Client, kept: Option<&Path>) -> Option<String> {
    let file = kept.map(|path| quoted(&path.display().to_string()));
    let from = match &file {
        Some(file) => {
            format!(
                "if the server that runs there has made its token itself, start the client with `{TOKEN}=\"$(cat {file})\"`"
            )
        }
        None => {
            "the server says it when it starts, unless it was given one; under `--token none` leave that out".to_owned()
        }
    };
    let stands = match &file {
        Some(file) => {
            format!("if the server that runs there has made it itself, it stands in {file}")
        }
        None => "the server says it when it starts, unless it was given one".to_owned(),
    };
    match client {
        Client::ClaudeDesktop => None,
        Client::ClaudeCode | Client::Cursor => Some(format!(
            "`headers` takes the token from the variable {TOKEN} of the client's own environment; {from}"
        )),
        Client::VsCode => Some(format!(
            "for the token add `\"headers\": {{\"Authorization\": \"Bearer ${{input:token}}\"}}` to the entry and beside `servers` \
             `\"inputs\": [{{\"type\": \"promptString\", \"id\": \"token\", \"description\": \"Token\", \"password\": true}}]`: \
             VS Code asks for it once and keeps it; {stands}"
        )),
        Client::Zed => Some(format!(
            "Zed knows no variables in `headers`: put the token in place of `<token>`; {stands}"
        )),
        Client::Codex => Some(format!(
            "`bearer_token_env_var` names the variable of Codex's own environment that holds the token; {from}"
        )),
    }
}

/// Returns a remark that applies to this client only.
fn about_client(client: Client, launch: &Launch) -> Option<String> {
    match client {
        Client::ClaudeCode => Some(about_scope(launch)),
        Client::ClaudeDesktop => Some("Claude Desktop reads its file when it starts: quit it and start it again".to_owned()),
        Client::Codex => Some(
            "the command leaves out both times: without them Codex gives up after 10 s of starting, and after 60 s of a call".to_owned(),
        ),
        Client::VsCode | Client::Cursor | Client::Zed => None,
    }
}

/// Explains the scope in which the command of Claude Code adds the server.
fn about_scope(launch: &Launch) -> String {
    match launch {
        Launch::Program(program) => format!(
            "the command's `--scope user` makes it yours in every project, and in each of them the tools see `{}`, not the project that is open; \
             `--scope local` keeps it to this project, and `--scope project` writes `.mcp.json`, for everybody who has the project: \
             its paths are those of this machine",
            program.workspace
        ),
        Launch::Http { .. } => "`--scope project` writes `.mcp.json`, for everybody who has the project: that is the file in which the variable is \
             replaced; `local` and `user` keep it to yourself, in this project or in all of them"
            .to_owned(),
    }
}

/// Suggests classes for `--allow` if the client cannot show a confirmation. Which clients and
/// versions can do so is mostly unknown here.
fn unasked(client: Client, launch: &Launch) -> Option<String> {
    let (allowed, whom) = match launch {
        Launch::Program(program) => (program.allow.clone(), "`palisade mcp config`"),
        Launch::Http { .. } => (BTreeSet::new(), "`palisade serve`"),
    };
    let missing = listed(ASKING.iter().filter(|class| !allowed.contains(*class)));
    let why = match client {
        Client::Zed => "Zed cannot ask you, so that calls which need a yes are refused",
        _ => {
            "calls which need a yes are asked about in a form, and refused where your client shows none"
        }
    };
    let told = || {
        format!(
            "{why}: to let them run unasked, give {whom} `--allow {missing}`, \
             or only those of these classes that you need"
        )
    };
    (!missing.is_empty()).then(told)
}

/// One server entry of a client's file. The keys keep their order, for readability.
#[derive(Default)]
struct Entry(Vec<(&'static str, Value)>);

impl Entry {
    fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.0.push((key, value.into()));
        self
    }

    /// Adds the environment unless it is empty.
    fn with_environment(self, program: &Program) -> Self {
        if program.environment.is_empty() {
            self
        } else {
            self.with("env", json!(program.environment))
        }
    }

    fn with_times(self) -> Self {
        CODEX_TIMES.into_iter().fold(self, |entry, (key, seconds)| entry.with(key, seconds))
    }

    /// Returns the entry with its name as a member, for a client that takes it without an enclosing
    /// key.
    fn named(&self, name: &str) -> Self {
        let mut members = vec![("name", Value::from(name))];
        members.extend(self.0.iter().cloned());
        Self(members)
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|member| (member.0, &member.1)))
    }
}

#[cfg(test)]
mod tests;
