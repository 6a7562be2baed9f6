//! The arguments of `palisade mcp`.

use super::as_time;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use palisade::SideEffects;
use palisade::tool::Digest;
use palisade_store::parse_digest;

#[derive(ClapArgs)]
pub(in crate::cli) struct Mcp {
    #[command(subcommand)]
    pub(in crate::cli) action: McpAction,
}

#[derive(Subcommand)]
pub(in crate::cli) enum McpAction {
    /// Print what a client's configuration has to say to start palisade with these options, or to reach it; standard error says where that goes
    Config(McpConfig),
    /// Start an MCP server of your palisade.toml, show its tools, and ask whether to offer them
    Approve(McpApprove),
    /// List the MCP servers of your palisade.toml
    List(McpList),
    /// Take the approval of an MCP server back, also after its table was deleted
    Revoke(McpRevoke),
}

#[derive(ClapArgs)]
pub(in crate::cli) struct McpApprove {
    /// The server's name in `[mcp.servers.NAME]`
    #[arg(value_name = "SERVER")]
    pub(in crate::cli) name: String,
    /// Approve without asking, for scripts
    #[arg(long)]
    pub(in crate::cli) yes: bool,
    /// Approve the words with this digest, which --json prints, without asking; a server with more
    /// words than a terminal shows needs it
    #[arg(long, value_name = "SHA256", value_parser = parse_digest)]
    pub(in crate::cli) digest: Option<Digest>,
    /// Print JSON: what the server offers. Nothing is asked or approved
    #[arg(long, conflicts_with = "yes")]
    pub(in crate::cli) json: bool,
}

#[derive(ClapArgs)]
pub(in crate::cli) struct McpList {
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(ClapArgs)]
pub(in crate::cli) struct McpRevoke {
    /// The server's name
    #[arg(value_name = "SERVER")]
    pub(in crate::cli) name: String,
}

#[derive(ClapArgs)]
pub(in crate::cli) struct McpConfig {
    /// Whose configuration it is
    #[arg(long, value_enum)]
    pub(in crate::cli) client: Client,
    /// Reach a server that runs already, such as http://127.0.0.1:8080/mcp, in place of starting one
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) http: Option<String>,
    /// The name of the server in the client: letters, digits, `-` and `_`
    #[arg(long, default_value = "palisade")]
    pub(in crate::cli) name: String,
    /// Let the server run tools of these classes without asking, such as `write` or `write,execute`; none and read run anyway. A `deny` of the settings stays
    #[arg(long, value_name = "CLASS", value_delimiter = ',')]
    pub(in crate::cli) allow: Vec<SideEffects>,
    /// Let the server stop a call after this time, such as 30s or 500ms (at most 600s)
    #[arg(long, value_name = "TIME", value_parser = as_time)]
    pub(in crate::cli) timeout: Option<String>,
    /// Let the server watch the plugin directories
    #[arg(long)]
    pub(in crate::cli) watch: bool,
    /// Let a person in the server's console answer questions that the client cannot show
    #[arg(long)]
    pub(in crate::cli) console: bool,
    /// Let the server show programs in place of tools
    #[arg(long, conflicts_with = "no_builtin")]
    pub(in crate::cli) code_mode: bool,
}

/// A program that calls tools over the Model Context Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Client {
    ClaudeCode,
    ClaudeDesktop,
    #[value(name = "vscode")]
    VsCode,
    Cursor,
    Zed,
    Codex,
    GeminiCli,
    Opencode,
    Windsurf,
    Cline,
    Goose,
    #[value(name = "lmstudio")]
    LmStudio,
    Continue,
    CopilotCli,
    #[value(name = "jetbrains")]
    JetBrains,
}
