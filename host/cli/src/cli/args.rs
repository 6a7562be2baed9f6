//! The command-line arguments of the program.

mod author;
mod grant;
mod mcp;
mod program;
mod server;
mod store;
mod trust;

use crate::config::Adapted;
pub(super) use author::{Adapt, Build, Check, Dev, New};
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, Parser, Subcommand};
pub(super) use grant::{Grant, GrantAction};
pub(super) use mcp::{Client, Mcp, McpAction, McpApprove, McpConfig, McpList, McpRevoke};
use palisade::SideEffects;
use palisade::formats::{Format, Provider};
pub(super) use program::{Programs, Run};
pub(super) use server::{Answerer, Console, Log, NoToken, Serve, Watch};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
pub(super) use store::{Add, Publish, Remove, Update};
pub(super) use trust::{Approve, Consent, Revoke, Sign};

/// Run WebAssembly tools nobody trusts, in a sandbox nobody waits for.
#[derive(Parser)]
#[command(name = "palisade", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) common: Common,
    #[command(subcommand)]
    pub(super) verb: Verb,
}

const EXIT_CODES: &str = "Exit codes: 0 ok · 1 internal · 2 usage · 3 not found · 4 denied · 5 the tool failed · 6 invalid input or plugin · 7 limit or timeout · 130 interrupted";

/// The heading of the arguments of every subcommand.
const EVERYWHERE: &str = "Options of every command";
/// The heading of the arguments of every subcommand that runs tools.
const RUNNING: &str = "Running tools";

/// The arguments of every subcommand.
#[derive(ClapArgs, Clone)]
#[command(next_help_heading = EVERYWHERE)]
pub(super) struct Common {
    /// The directory that tools see
    #[arg(
        long,
        short = 'w',
        global = true,
        value_name = "DIR",
        env = "PALISADE_WORKSPACE",
        default_value = "."
    )]
    pub(super) workspace: PathBuf,
    /// Also load the plugins (`.wasm`) of this directory; can be given several times [env: PALISADE_PLUGINS]
    #[arg(long, short = 'p', global = true, value_name = "DIR")]
    pub(super) plugins: Vec<PathBuf>,
    /// Also serve this component's functions as tools, such as depot.wasm=none; can be repeated
    #[arg(long, global = true, value_name = "FILE=CLASS")]
    pub(super) adapt: Vec<Adapted>,
    /// Load only plugins that are approved in palisade.lock, also from --plugins; compile no others
    #[arg(long, global = true)]
    pub(super) locked: bool,
    /// Leave out the plugins that come with palisade
    #[arg(long, global = true)]
    pub(super) no_builtin: bool,
    /// Your configuration, in place of the one in your configuration directory
    #[arg(long, global = true, value_name = "FILE", env = "PALISADE_CONFIG")]
    pub(super) config: Option<PathBuf>,
    /// Say more: the limits that hold, and what tools log and print
    #[arg(long, short = 'v', global = true)]
    pub(super) verbose: bool,
    /// The words of the subcommand about programs
    #[arg(skip)]
    pub(super) programs: Programs,
}

#[derive(Subcommand)]
pub(super) enum Verb {
    /// List the tools there are
    List(List),
    /// Show a tool, or a plugin file: its definition, its imports, and what its sandbox holds
    Inspect(Inspect),
    /// Call a tool
    Call(Call),
    /// Run the tool calls of a model's reply, and print the messages to send back
    Dispatch(Dispatch),
    /// Run a JavaScript program that calls tools
    Run(Run),
    /// Explain what would happen to a call, without running it
    Policy(Policy),
    /// Print the tools' definitions in a provider's format
    Export(Export),
    /// Serve the tools to MCP clients, on standard input and output or over HTTP
    Serve(Serve),
    /// Follow a running server, and answer its questions
    Watch(Watch),
    /// Print a link that opens the console of a running server, once
    Console(Console),
    /// Show what the journal of a server has recorded: calls, answers and results
    Log(Log),
    /// Help clients of the Model Context Protocol find palisade
    Mcp(Mcp),
    /// Make the project of a plugin, in Rust, Python, JavaScript or C
    New(New),
    /// Build the project of a plugin with its language's toolchain, and show what came of it
    Build(Build),
    /// Build the project of a plugin at each save, and replay its recorded cases
    Dev(Dev),
    /// Show the tools that the functions of a component of another world become
    Adapt(Adapt),
    /// Install a plugin from a file, a web server or a registry: show it, ask, and approve it
    Add(Add),
    /// Remove a plugin that was added, with its approval
    Remove(Remove),
    /// Fetch the plugins that were added again, show what has changed, and ask
    Update(Update),
    /// Give a plugin to a registry, from which `palisade add` and `wkg` get it
    Publish(Publish),
    /// Approve plugins: show what is new or has changed, and ask
    Approve(Approve),
    /// Take the approval of a plugin back
    Revoke(Revoke),
    /// Sign a plugin for those who use it, in the form of minisign
    Sign(Sign),
    /// Check a plugin: what it is, what it does with hostile input, and whether its recorded cases still hold
    Check(Check),
    /// Measure calls of a tool on this machine: how long they take, what they hold, and what loading its plugin costs
    Bench(Bench),
    /// Say what a plugin may do beyond its class: hosts, environment variables, secrets, tools that it calls
    Grant(Grant),
    /// Show the configuration that holds
    Config(Config),
    /// Show, fill or clear the cache of compiled plugins
    Cache(Cache),
    /// Watch a hostile plugin fail
    Demo(Demo),
    /// Check this machine: toolchain, target, cache, kernel, address space
    Doctor(Doctor),
    /// Print a completion script for your shell
    Completions(Completions),
    /// Compile a plugin for the process that started this one
    #[command(hide = true)]
    CompileChild(CompileChild),
    /// Hold a command of `shell` for the process that started this one
    #[command(hide = true)]
    ShellHelper,
}

#[derive(ClapArgs)]
pub(super) struct CompileChild {
    /// The arguments that the parent process passes; they are for no person
    pub(super) order: Vec<String>,
}

#[derive(ClapArgs)]
pub(super) struct List {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Compile nothing: list what the cache knows, and the other plugins as `compiling`
    #[arg(long)]
    pub(super) now: bool,
    /// Exit with 6 if a plugin was rejected
    #[arg(long)]
    pub(super) strict: bool,
}

#[derive(ClapArgs)]
pub(super) struct Inspect {
    /// The name of a tool or of a plugin, or the path of a `.wasm` file
    pub(super) subject: String,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(ClapArgs)]
pub(super) struct Call {
    /// The tool's name
    pub(super) tool: String,
    /// The input: a JSON object, `@FILE` to read it from a file, or `-` to read it from standard input
    #[arg(default_value = "{}")]
    pub(super) input: String,
    /// Print the whole result as JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) running: Running,
    #[command(flatten)]
    pub(super) caller: Caller,
}

/// The conversation that calls belong to.
#[derive(ClapArgs)]
pub(super) struct Caller {
    /// The id of the conversation, for the tools and the events
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(super) session: Option<String>,
    /// The id of the conversation's turn, for the tools and the events
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(super) turn: Option<String>,
    /// Pass this value to the tools, besides the input, which comes from the model: JSON, or `@FILE` to read it from a file
    #[arg(long, value_name = "JSON")]
    pub(super) context: Option<String>,
}

/// The arguments of every subcommand that runs tools.
#[derive(ClapArgs)]
#[command(next_help_heading = RUNNING)]
pub(super) struct Running {
    /// Stop a call after this time, such as 30s or 500ms (at most 600s)
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(super) timeout: Option<Duration>,
    /// Run tools of these classes without asking, such as `write` or `write,execute`; none and read run anyway. A `deny` of the settings stays
    #[arg(long, value_name = "CLASS", value_delimiter = ',')]
    pub(super) allow: Vec<SideEffects>,
    /// Append what happens to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(super) events: Option<PathBuf>,
}

#[derive(ClapArgs)]
pub(super) struct Bench {
    /// The tool's name
    pub(super) tool: String,
    /// The input of each call: a JSON object, `@FILE` to read it from a file, or `-` to read it from standard input
    #[arg(default_value = "{}")]
    pub(super) input: String,
    /// How many calls of one caller, and of all callers together [default: 1000, or what 5s suffice for]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) calls: Option<u32>,
    /// How many callers at once, besides one alone [default: the number of cores, at least 2]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) callers: Option<u16>,
    /// Stop a call after this time, such as 30s or 500ms (at most 600s)
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(super) timeout: Option<Duration>,
    /// Run tools of these classes without asking, such as `write` or `write,execute`; none and read run anyway. A `deny` of the settings stays
    #[arg(long, value_name = "CLASS", value_delimiter = ',')]
    pub(super) allow: Vec<SideEffects>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(ClapArgs)]
pub(super) struct Dispatch {
    /// Whose reply it is: openai, openai-responses, anthropic or gemini
    #[arg(long, short = 'f', value_name = "PROVIDER", value_parser = named::<Provider>(Provider::ALL.map(Provider::as_str)), hide_possible_values = true)]
    pub(super) from: Provider,
    /// The file with the reply, or `-` to read it from standard input
    #[arg(default_value = "-")]
    pub(super) reply: String,
    /// Write the full results to this file, one a line, in the form of `call --json`. They have members that the messages leave out, such as metadata (`stop_loop`) and changed files. They replace the results that the file held before, and nothing else: a file with other content is refused
    #[arg(long, value_name = "FILE")]
    pub(super) results: Option<PathBuf>,
    /// Accepted for symmetry: the output is always JSON
    #[arg(long, hide = true)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) running: Running,
    #[command(flatten)]
    pub(super) caller: Caller,
}

#[derive(ClapArgs)]
pub(super) struct Policy {
    #[command(subcommand)]
    pub(super) action: PolicyAction,
}

#[derive(Subcommand)]
pub(super) enum PolicyAction {
    /// Say whether a call would run, ask or be refused here and now, and why. Exits as the call would, as far as that is known before it runs
    Explain(Explain),
}

#[derive(ClapArgs)]
pub(super) struct Explain {
    /// The tool's name
    pub(super) tool: String,
    /// The input: a JSON object, `@FILE` to read it from a file, or `-` to read it from standard input. Without one, all is explained that does not depend on it
    pub(super) input: Option<String>,
    /// As if these classes were allowed, such as `write` or `write,execute`
    #[arg(long, value_name = "CLASS", value_delimiter = ',')]
    pub(super) allow: Vec<SideEffects>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(ClapArgs)]
pub(super) struct Export {
    /// openai, openai-responses, anthropic, gemini or mcp
    #[arg(long, short = 'f', value_parser = named::<Format>(Format::ALL.map(Format::as_str)), hide_possible_values = true)]
    pub(super) format: Format,
    /// Rewrite schemas into the provider's strict subset where they do not conform as they are
    #[arg(long)]
    pub(super) strict: bool,
    /// Accepted for symmetry: the output is always JSON
    #[arg(long, hide = true)]
    pub(super) json: bool,
}

#[derive(ClapArgs)]
pub(super) struct Config {
    #[command(subcommand)]
    pub(super) action: ConfigAction,
}

#[derive(Subcommand)]
pub(super) enum ConfigAction {
    /// Show every value and where it came from
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(ClapArgs)]
pub(super) struct Cache {
    #[command(subcommand)]
    pub(super) action: CacheAction,
}

#[derive(Subcommand)]
pub(super) enum CacheAction {
    /// Show where the cache is, how much it holds, and how much it may hold
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Compile all plugins with optimisation now, so that no later start or call waits for it
    Warm {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove all compiled plugins; each is compiled again when it is loaded
    Clear {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(ClapArgs)]
pub(super) struct Demo {
    #[command(subcommand)]
    pub(super) action: DemoAction,
}

#[derive(Subcommand)]
pub(super) enum DemoAction {
    /// Let a hostile plugin try to get out, in a directory of its own: what it tried, how long it took, and what stopped it
    Escape(Escape),
}

#[derive(ClapArgs)]
pub(super) struct Escape {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(ClapArgs)]
pub(super) struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(ClapArgs)]
pub(super) struct Completions {
    /// bash, elvish, fish, powershell or zsh
    pub(super) shell: clap_complete::Shell,
}

/// Returns the parser of a value that has one of these names, which usage errors list.
fn named<T>(names: impl IntoIterator<Item = &'static str>) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| name.parse())
}

fn parse_time(text: &str) -> Result<Duration, String> {
    crate::config::call_time("--timeout", text)
}

/// Checks a duration and returns it as typed.
fn as_time(text: &str) -> Result<String, String> {
    parse_time(text).map(|_| text.to_owned())
}
