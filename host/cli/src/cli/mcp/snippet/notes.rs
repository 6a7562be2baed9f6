//! The remarks that a user reads beside a snippet.

use super::{Client, Launch, TOKEN};
use crate::cli::mcp::{CONSOLE, listed, quoted};
use palisade::SideEffects;
use std::collections::BTreeSet;
use std::path::Path;

/// The side-effect classes that need a confirmation by default.
pub(super) const ASKING: [SideEffects; 3] =
    [SideEffects::Write, SideEffects::Execute, SideEffects::Network];

/// Returns the remarks that belong to a snippet.
pub(super) fn of(client: Client, launch: &Launch) -> Vec<String> {
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
        Client::ClaudeCode
        | Client::Cursor
        | Client::GeminiCli
        | Client::Opencode
        | Client::Windsurf
        | Client::CopilotCli => Some(format!(
            "`headers` takes the token from the variable {TOKEN} of the client's own environment; {from}"
        )),
        Client::VsCode => Some(format!(
            "for the token add `\"headers\": {{\"Authorization\": \"Bearer ${{input:token}}\"}}` to the entry and beside `servers` \
             `\"inputs\": [{{\"type\": \"promptString\", \"id\": \"token\", \"description\": \"Token\", \"password\": true}}]`: \
             VS Code asks for it once and keeps it; {stands}"
        )),
        Client::Zed
        | Client::ClaudeDesktop
        | Client::Cline
        | Client::LmStudio
        | Client::JetBrains => Some(format!(
            "the file of this client takes no variables of its environment: put the token in place of `<token>`; {stands}"
        )),
        Client::Goose => Some(format!(
            "`env_keys` names the variable of goose's own environment, or of its secrets, that holds the token; {from}"
        )),
        Client::Continue => Some(format!(
            "`secrets.{TOKEN}` stands for the line `{TOKEN}=<token>` of `~/.continue/.env`; {stands}"
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
        Client::ClaudeDesktop => Some(about_claude_desktop(launch).to_owned()),
        Client::Codex => Some(
            "the command leaves out both times: without them Codex gives up after 10 s of starting, and after 60 s of a call".to_owned(),
        ),
        Client::Opencode => Some(
            "OpenCode 2 keeps its servers one level deeper, below `mcp.servers`, and reads this form as well".to_owned(),
        ),
        Client::Continue => Some(
            "Continue offers tools in its agent mode only".to_owned(),
        ),
        Client::VsCode
        | Client::Cursor
        | Client::Zed
        | Client::GeminiCli
        | Client::Windsurf
        | Client::Cline
        | Client::Goose
        | Client::LmStudio
        | Client::CopilotCli
        | Client::JetBrains => None,
    }
}

/// Says when Claude Desktop reads its file, and who makes the connection for it.
fn about_claude_desktop(launch: &Launch) -> &'static str {
    match launch {
        Launch::Program(_) => {
            "Claude Desktop reads its file when it starts: quit it and start it again"
        }
        Launch::Http { .. } => {
            "Claude Desktop only starts programs, so that `npx` of Node.js fetches and starts `mcp-remote`, a program of others that passes \
             the messages on; Claude Desktop reads its file when it starts: quit it and start it again"
        }
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
    let console = match launch {
        Launch::Program(_) if !has_console(launch) => {
            "; with its `--console` they wait for your answer in the server's console"
        }
        Launch::Program(_) | Launch::Http { .. } => "",
    };
    let told = || {
        format!(
            "{}: to let them run unasked, give {whom} `--allow {missing}`, \
             or only those of these classes that you need{console}",
            without_a_form(client, launch)
        )
    };
    (!missing.is_empty()).then(told)
}

/// Returns true if the client starts a server with a console.
fn has_console(launch: &Launch) -> bool {
    matches!(launch, Launch::Program(program) if program.switches.contains(&CONSOLE))
}

/// Says how a call that needs a yes ends where the client shows no form.
fn without_a_form(client: Client, launch: &Launch) -> &'static str {
    match (launch, client) {
        (Launch::Program(_), Client::Zed) if has_console(launch) => {
            "Zed cannot ask you, so that calls which need a yes wait for your answer in the server's console"
        }
        (Launch::Program(_), _) if has_console(launch) => {
            "calls which need a yes are asked about in a form, and where your client shows none they wait for \
             your answer in the server's console"
        }
        (Launch::Program(_), Client::Zed) => {
            "Zed cannot ask you, so that calls which need a yes are refused"
        }
        (Launch::Program(_), _) => {
            "calls which need a yes are asked about in a form, and refused where your client shows none"
        }
        (Launch::Http { .. }, Client::Zed) => {
            "Zed cannot ask you, so that calls which need a yes wait in the server's console while it is open, \
             and are refused otherwise"
        }
        (Launch::Http { .. }, _) => {
            "calls which need a yes are asked about in a form, and where your client shows none they wait in the \
             server's console while it is open, and are refused otherwise"
        }
    }
}
