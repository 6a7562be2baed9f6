//! The file of each client: its place, its format, and the members of a server in it.

use super::{Entry, Name, NoSnippet, Program, TOKEN, yaml};
use crate::cli::args::Client;
use crate::cli::mcp::Address;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The maximum time of a call of palisade, in seconds, for clients that give up earlier.
const LONGEST_CALL: u32 = 600;

/// The time that Codex is given for starting the server, in seconds.
const STARTUP: u32 = 20;

/// Returns the members of a server that the client starts.
///
/// Sources: Claude Code, code.claude.com/docs/en/mcp; Claude Desktop,
/// modelcontextprotocol.io/quickstart/user; VS Code,
/// code.visualstudio.com/docs/copilot/reference/mcp-configuration; Cursor, cursor.com/docs/mcp; Zed,
/// zed.dev/docs/ai/mcp; Codex, developers.openai.com/codex/mcp; Gemini CLI, `docs/tools/mcp-server.md`
/// of google-gemini/gemini-cli; OpenCode, opencode.ai/v1/docs/mcp-servers; Windsurf,
/// docs.windsurf.com/windsurf/cascade/mcp; Cline, `src/services/mcp/schemas.ts` of cline/cline;
/// goose, `crates/goose/src/agents/extension.rs` of block/goose; LM Studio, lmstudio.ai/docs/app/mcp;
/// Continue, `packages/config-yaml/src/schemas/mcp/index.ts` of continuedev/continue; Copilot CLI,
/// docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers; JetBrains,
/// jetbrains.com/help/ai-assistant/mcp.html.
pub(super) fn started(client: Client, name: &Name, program: &Program) -> Entry {
    let entry = Entry::default();
    let command =
        |entry: Entry| entry.with("command", program.path.as_str()).with("args", program.args());
    match client {
        Client::ClaudeCode => {
            command(entry.with("type", "stdio")).with("env", json!(program.environment))
        }
        Client::VsCode => command(entry.with("type", "stdio")).with_environment("env", program),
        // Earlier versions of Zed require a `source` for servers that no extension provides.
        Client::Zed => {
            command(entry.with("source", "custom")).with("env", json!(program.environment))
        }
        Client::ClaudeDesktop | Client::Cursor | Client::LmStudio => {
            command(entry).with("env", json!(program.environment))
        }
        // `env` is a TOML table of its own and must come last: it ends the server's table.
        Client::Codex => codex_times(command(entry)).with_environment("env", program),
        Client::GeminiCli | Client::Windsurf | Client::JetBrains => {
            command(entry).with_environment("env", program)
        }
        Client::Opencode => entry
            .with("type", "local")
            .with("command", program.words())
            .with("enabled", true)
            .with_environment("environment", program),
        Client::Cline => command(entry.with("type", "stdio"))
            .with_environment("env", program)
            .with("timeout", LONGEST_CALL),
        Client::Goose => goose(entry, name, "stdio")
            .with("cmd", program.path.as_str())
            .with("args", program.args())
            .with_environment("envs", program)
            .with("timeout", LONGEST_CALL),
        Client::Continue => command(entry.with("name", name.as_str()).with("type", "stdio"))
            .with_environment("env", program),
        Client::CopilotCli => command(entry.with("type", "local"))
            .with_environment("env", program)
            .with("tools", json!(["*"])),
    }
}

/// Returns the members of a running server. The sources are those of [`started`], and
/// `mcp-remote` is described in the README of geelen/mcp-remote.
pub(super) fn reached(client: Client, name: &Name, address: &Address) -> Entry {
    let entry = Entry::default();
    let url = |entry: Entry| entry.with("url", address.as_str());
    match client {
        Client::ClaudeDesktop => by_mcp_remote(entry, address),
        Client::ClaudeCode => url(entry.with("type", "http")).with("headers", dollar_bearer()),
        Client::VsCode => url(entry.with("type", "http")),
        Client::Cursor => url(entry).with("headers", bearer(&format!("${{env:{TOKEN}}}"))),
        Client::Zed | Client::LmStudio | Client::JetBrains => {
            url(entry).with("headers", bearer("<token>"))
        }
        Client::Codex => codex_times(url(entry).with("bearer_token_env_var", TOKEN)),
        // `url` means the older transport here.
        Client::GeminiCli => {
            entry.with("httpUrl", address.as_str()).with("headers", dollar_bearer())
        }
        // Without `oauth`, a refused token would begin a sign-in that the server does not have.
        Client::Opencode => url(entry.with("type", "remote"))
            .with("enabled", true)
            .with("oauth", false)
            .with("headers", bearer(&format!("{{env:{TOKEN}}}"))),
        Client::Windsurf => entry
            .with("serverUrl", address.as_str())
            .with("headers", bearer(&format!("${{env:{TOKEN}}}"))),
        // Without `type` it would be the older transport.
        Client::Cline => url(entry.with("type", "streamableHttp"))
            .with("headers", bearer("<token>"))
            .with("timeout", LONGEST_CALL),
        Client::Goose => goose(entry, name, "streamable_http")
            .with("uri", address.as_str())
            .with("env_keys", json!([TOKEN]))
            .with("headers", dollar_bearer())
            .with("timeout", LONGEST_CALL),
        Client::Continue => {
            let headers = bearer(&format!("${{{{ secrets.{TOKEN} }}}}"));
            url(entry.with("name", name.as_str()).with("type", "streamable-http"))
                .with("requestOptions", json!({"headers": headers}))
        }
        Client::CopilotCli => url(entry.with("type", "http"))
            .with("headers", dollar_bearer())
            .with("tools", json!(["*"])),
    }
}

/// Starts the program that connects a client which only starts programs. Its header has no space,
/// because on Windows `npx` gets the arguments unquoted.
fn by_mcp_remote(entry: Entry, address: &Address) -> Entry {
    /// The variable that `mcp-remote` replaces in a header.
    const VARIABLE: &str = "PALISADE_AUTHORIZATION";
    let header = format!("Authorization:${{{VARIABLE}}}");
    let mut args = vec!["-y", "mcp-remote", address.as_str(), "--transport", "http-only"];
    args.extend(["--header", &header]);
    if address.as_str().starts_with("http://") {
        args.push("--allow-http");
    }
    entry.with("command", "npx").with("args", args).with("env", json!({VARIABLE: "Bearer <token>"}))
}

fn goose(entry: Entry, name: &Name, kind: &str) -> Entry {
    let entry = entry.with("enabled", true).with("type", kind).with("name", name.as_str());
    entry.with("description", "Tools in a sandbox")
}

fn codex_times(entry: Entry) -> Entry {
    entry.with("startup_timeout_sec", STARTUP).with("tool_timeout_sec", LONGEST_CALL)
}

fn bearer(token: &str) -> Value {
    json!({"Authorization": format!("Bearer {token}")})
}

/// Returns the header with the token's variable in the form that a shell takes.
fn dollar_bearer() -> Value {
    bearer(&format!("${{{TOKEN}}}"))
}

/// Returns the text of a file that contains this server only.
pub(super) fn text(client: Client, name: &Name, entry: &Entry) -> Result<String, NoSnippet> {
    let name = name.as_str();
    let servers = match client {
        Client::VsCode => "servers",
        Client::Zed => "context_servers",
        Client::Codex => {
            let whole = BTreeMap::from([("mcp_servers", BTreeMap::from([(name, entry)]))]);
            return Ok(toml::to_string_pretty(&whole)?);
        }
        Client::Goose => {
            let members = yaml::mapping(&entry.members(), 4);
            return Ok(format!("extensions:\n  {}:\n{members}", yaml::key(name)));
        }
        Client::Continue => return Ok(continue_file(name, entry)),
        Client::Opencode => "mcp",
        Client::ClaudeCode
        | Client::ClaudeDesktop
        | Client::Cursor
        | Client::GeminiCli
        | Client::Windsurf
        | Client::Cline
        | Client::LmStudio
        | Client::CopilotCli
        | Client::JetBrains => "mcpServers",
    };
    let whole = BTreeMap::from([(servers, BTreeMap::from([(name, entry)]))]);
    Ok(serde_json::to_string_pretty(&whole)? + "\n")
}

/// Continue has a file for each block, with three members of its own.
fn continue_file(name: &str, entry: &Entry) -> String {
    let members = yaml::mapping(&entry.members(), 4);
    let listed = members.strip_prefix("    ").unwrap_or(&members);
    format!("name: {}\nversion: 0.0.1\nschema: v1\nmcpServers:\n  - {listed}", Value::from(name))
}

/// Returns the place of the client's file.
pub(super) fn place(client: Client) -> &'static str {
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
        Client::GeminiCli => {
            "`~/.gemini/settings.json`, or `.gemini/settings.json` in your project"
        }
        Client::Opencode => {
            "`~/.config/opencode/opencode.json`, or `opencode.json` in your project"
        }
        Client::Windsurf => "`~/.codeium/windsurf/mcp_config.json`",
        Client::Cline => {
            "`cline_mcp_settings.json` (MCP Servers, Configure, Configure MCP Servers)"
        }
        Client::Goose => "`~/.config/goose/config.yaml`",
        Client::LmStudio => "LM Studio's `mcp.json` (Program, Install, Edit mcp.json)",
        Client::Continue => "`.continue/mcpServers/palisade.yaml` in your project",
        Client::CopilotCli => "`~/.copilot/mcp-config.json`",
        Client::JetBrains => {
            "the settings of a JetBrains IDE (Tools, AI Assistant, Model Context Protocol, Add, as JSON)"
        }
    }
}
