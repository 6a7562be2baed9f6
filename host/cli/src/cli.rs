//! The command-line program, with one file per subcommand. Only this module prints.

mod adapt;
mod add;
mod approve;
mod args;
mod author;
mod bench;
mod build;
mod cache;
mod call;
mod caller;
mod check;
mod compile_child;
mod completions;
mod config;
mod console;
mod core_file;
mod deciding;
mod demo;
mod destination;
mod dev;
mod differences;
mod dispatch;
mod doctor;
mod exit;
mod export;
mod grant;
mod grants;
mod heap;
mod hint;
mod input;
mod inspect;
mod installing;
mod journal;
mod lines;
mod list;
mod log;
mod log_output;
mod mcp;
mod mcp_servers;
mod missing_values;
mod new;
mod offers;
#[cfg(feature = "otel")]
mod otel;
mod output;
mod plugins;
mod policy;
mod progress;
mod prompt;
mod publish;
mod remember;
mod remote;
mod remove;
mod results;
mod revoke;
mod run;
mod scratch;
mod serve;
mod servers;
mod setup;
mod shell_helper;
mod sign;
mod signals;
mod style;
mod token;
mod tool_session;
mod trust;
mod unconnected;
mod unknown_keys;
mod unused_rules;
mod unused_settings;
mod update;
mod user_file;
mod watch;
mod wide;
mod wishes;
mod wrap;

use args::{Args, Verb};
use clap::{CommandFactory as _, Parser as _};
use exit::{Exit, Failure};
use log_output::LossyOutput;
use signals::Signals;
use std::io::IsTerminal as _;
use std::process::ExitCode;

/// Parses the command line, runs the subcommand and maps its outcome to an exit code.
#[must_use]
pub fn main() -> ExitCode {
    core_file::forbid();
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return usage(&missing_values::listed(on_one_line(error))),
    };
    // The hidden subcommands inherit their allocator settings from the parent process.
    match args.verb {
        Verb::CompileChild(_) | Verb::ShellHelper => {}
        Verb::Serve(_) => heap::set_up(heap::Life::Long),
        _ => heap::set_up(heap::Life::Short),
    }
    #[cfg(feature = "otel")]
    let telemetry = otel::Telemetry::start(&args);
    #[cfg(not(feature = "otel"))]
    start_log(&args);
    let code = ended(run(&args));
    palisade_mcp_client::end_all();
    #[cfg(feature = "otel")]
    telemetry.finish();
    code
}

/// Returns the definition of the command line, for the manual pages.
#[must_use]
pub fn command() -> clap::Command {
    Args::command()
}

fn ended(outcome: Result<Exit, Failure>) -> ExitCode {
    match outcome {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output::problem("error:", &failure.to_string());
            failure.exit().into()
        }
    }
}

fn run(args: &Args) -> Result<Exit, Failure> {
    match &args.verb {
        Verb::List(list) => watch().and_then(|_| list::run(&args.common, list)),
        Verb::Inspect(inspect) => watch().and_then(|_| inspect::run(&args.common, inspect)),
        Verb::Call(call) => call::run(&args.common, call, &watch()?),
        Verb::Dispatch(dispatch) => dispatch::run(&args.common, dispatch, &watch()?),
        Verb::Run(program) => run::run(&args.common, program, &watch()?),
        Verb::Policy(policy) => watch().and_then(|_| policy::run(&args.common, policy)),
        Verb::Grant(grant) => watch().and_then(|_| grant::run(&args.common, grant)),
        Verb::Export(export) => watch().and_then(|_| export::run(&args.common, export)),
        Verb::Serve(serve) => serve::run(&args.common, serve, &watch()?),
        Verb::Watch(args) => watch().and_then(|_| watch::run(args)),
        Verb::Console(args) => console::run(args),
        Verb::Log(args) => log::run(args),
        Verb::Mcp(mcp) => mcp::run(&args.common, mcp),
        Verb::New(new) => new::run(new),
        Verb::Build(build) => watch().and_then(|_| build::run(&args.common, build)),
        Verb::Dev(dev) => watch().and_then(|_| dev::run(&args.common, dev)),
        Verb::Adapt(adapt) => watch().and_then(|_| adapt::run(&args.common, adapt)),
        Verb::Add(add) => watch().and_then(|_| add::run(&args.common, add)),
        Verb::Remove(remove) => watch().and_then(|_| remove::run(&args.common, remove)),
        Verb::Update(update) => watch().and_then(|_| update::run(&args.common, update)),
        Verb::Publish(publish) => watch().and_then(|_| publish::run(publish)),
        Verb::Approve(approve) => watch().and_then(|_| approve::run(&args.common, approve)),
        Verb::Revoke(revoke) => revoke::run(&args.common, revoke),
        Verb::Sign(sign) => sign::run(sign),
        Verb::Check(check) => watch().and_then(|_| check::run(&args.common, check)),
        Verb::Bench(bench) => bench::run(&args.common, bench, &watch()?),
        Verb::Config(config) => config::run(&args.common, config),
        Verb::Cache(cache) => watch().and_then(|_| cache::run(&args.common, cache)),
        Verb::Demo(demo) => demo::run(demo),
        Verb::Doctor(doctor) => doctor::run(&args.common, doctor),
        Verb::Completions(completions) => completions::run(completions),
        Verb::CompileChild(child) => compile_child::run(child),
        Verb::ShellHelper => shell_helper::run(),
    }
}

/// Starts the signal handlers before plugins are loaded, so that a termination signal shuts down in
/// order and a file size limit (`SIGXFSZ`) fails one write and not the process.
fn watch() -> Result<Signals, Failure> {
    palisade::internal::check_system().map_err(|error| Failure::new(Exit::Internal, error))?;
    Ok(Signals::watch()?)
}

/// Escapes the arguments that a clap error quotes, so that their line feeds cannot imitate lines of
/// the program.
fn on_one_line(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue};
    use palisade::tool::text::elided;
    const LONGEST: usize = 256;
    let escaped: Vec<(ContextKind, ContextValue)> = error
        .context()
        .filter_map(|(kind, value)| match (kind, value) {
            (
                ContextKind::InvalidArg
                | ContextKind::InvalidValue
                | ContextKind::InvalidSubcommand,
                ContextValue::String(text),
            ) => Some((kind, ContextValue::String(elided(text, LONGEST)))),
            _ => None,
        })
        .collect();
    for (kind, value) in escaped {
        error.insert(kind, value);
    }
    error
}

/// Prints a clap error: help goes to stdout, usage errors to stderr with exit code 2.
fn usage(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        output::usage(&error.render().to_string());
        return Exit::Usage.into();
    }
    match output::heard(error.print()) {
        Err(failure) => {
            output::problem("error:", &failure.to_string());
            failure.exit().into()
        }
        Ok(_) => Exit::Ok.into(),
    }
}

fn start_log(args: &Args) {
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::util::SubscriberInitExt as _;
    let _ = tracing_subscriber::registry().with(log_filter(args)).with(log(args)).try_init();
}

/// Builds the log filter from `PALISADE_LOG` (`PALISADE_LOG=debug` shows host activity). The
/// default is warnings only, for a server also of its tools; `--verbose` adds the requests that a
/// server has answered.
fn log_filter(args: &Args) -> tracing_subscriber::EnvFilter {
    let crashes = shows_crashes(&args.verb).then_some(",palisade::crash=off");
    // The log of a server has the messages of its tools, unless the live view shows them.
    let is_logged = matches!(args.verb, Verb::Serve(_)) && !progress::watches(&args.common);
    let tools = (!is_logged).then_some(",palisade::tool=off");
    let own = "palisade=warn,palisade::unmatched_rules=off";
    let usual = [own, crashes.unwrap_or_default(), tools.unwrap_or_default()].concat();
    let filter = tracing_subscriber::EnvFilter::try_from_env("PALISADE_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(usual));
    let requests = args.common.verbose.then_some(palisade_mcp::REQUESTS);
    let more = [Some(palisade_mcp::QUIET), requests]
        .into_iter()
        .flatten()
        .filter_map(|directive| directive.parse().ok());
    more.fold(filter, tracing_subscriber::EnvFilter::add_directive)
}

/// Returns true if the subcommand itself shows how a plugin crashed, so that the log need not
/// repeat the crash.
fn shows_crashes(verb: &Verb) -> bool {
    match verb {
        Verb::Call(call) => !call.json && std::io::stderr().is_terminal(),
        Verb::Demo(_) | Verb::Build(_) | Verb::Dev(_) | Verb::Check(_) => true,
        _ => false,
    }
}

fn log<S>(args: &Args) -> impl tracing_subscriber::Layer<S> + Send + Sync
where
    S: tracing::Subscriber + for<'span> tracing_subscriber::registry::LookupSpan<'span>,
{
    use tracing_subscriber::fmt::writer::BoxMakeWriter;
    let output = match args.verb {
        Verb::Serve(_) => {
            let output = LossyOutput::new(std::io::stderr());
            BoxMakeWriter::new(move || lines::Indented(output.clone()))
        }
        _ => BoxMakeWriter::new(|| lines::Indented(std::io::stderr())),
    };
    tracing_subscriber::fmt::layer()
        .with_writer(output)
        .with_target(false)
        .without_time()
        .with_ansi(false)
        .log_internal_errors(false)
}
