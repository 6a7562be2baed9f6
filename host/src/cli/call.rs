//! `palisade call`: one call of one tool.

use super::args::{Call as Args, Common};
use super::exit::{Exit, Failure};
use super::live::{Detail, Watching};
use super::prompt::Terminal;
use super::{open, output};
use crate::host::Host;
use crate::policy::Policy;
use crate::sandbox::{Allocation, limits};
use crate::tool::{Call, ToolResult};
use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The most input that is read, in bytes: what the host accepts, and one byte to tell that there is more.
const MAX_INPUT: u64 = (1 << 20) + 1;

pub(super) fn run(common: &Common, args: &Args) -> Result<Exit, Failure> {
    let input = read_input(&args.input)?;
    let settings = open::settings(common)?;
    let policy =
        args.allow.iter().fold(settings.policy(&common.workspace), |policy, class| Policy::allowing(policy, *class));
    let mut builder = open::builder(common, &settings).policy(policy).confirmer(Arc::new(Terminal));
    if common.verbose || io::stderr().is_terminal() {
        builder =
            builder.subscriber(Arc::new(Watching::new(if common.verbose { Detail::Verbose } else { Detail::Usual })));
    }
    let host = builder.build()?;
    if !host.registry().has(&args.tool) || common.verbose {
        open::show_rejected(host.rejected());
    }
    let mut call = Call::new(&args.tool, input);
    if let Some(timeout) = args.timeout {
        call = call.with_timeout(timeout);
    }
    if common.verbose {
        show_limits(&host, &call);
    }
    show(&execute(&host, call)?, args)
}

/// The whole life of the call, Ctrl-C included.
fn execute(host: &Host, call: Call) -> Result<ToolResult, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(Exit::Internal, format!("cannot start the call: {error}")))?;
    let interrupted = CancellationToken::new();
    let call = call.with_cancellation(interrupted.clone());
    let result: io::Result<ToolResult> = runtime.block_on(async {
        survive_file_limits();
        // Installed before the call begins: without it, the signal would end the program and nobody would learn how the call ended.
        let mut interrupts = interrupts()?;
        tokio::spawn(async move {
            if interrupts.recv().await.is_some() {
                interrupted.cancel();
            }
        });
        Ok(host.dispatch(host.session(), call).await)
    });
    runtime.shutdown_background();
    Ok(result?)
}

#[cfg(unix)]
fn interrupts() -> io::Result<tokio::signal::unix::Signal> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
}

#[cfg(windows)]
fn interrupts() -> io::Result<tokio::signal::windows::CtrlC> {
    tokio::signal::windows::ctrl_c()
}

/// Where files may not grow any further (`ulimit -f`), a write is to fail like any other: without a handler the signal would end the program.
#[cfg(unix)]
fn survive_file_limits() {
    use tokio::signal::unix::{SignalKind, signal};
    let number = rustix::process::Signal::XFSZ.as_raw();
    if let Err(error) = signal(SignalKind::from_raw(number)) {
        tracing::warn!("a limit on file sizes will end the program: {error}");
    }
}

#[cfg(not(unix))]
fn survive_file_limits() {}

fn show(result: &ToolResult, args: &Args) -> Result<Exit, Failure> {
    if args.json {
        output::json(&result.to_json())?;
    } else if let Some(text) = result.output() {
        output::verbatim(&text)?;
    }
    let Some(error) = result.error() else { return Ok(Exit::Ok) };
    if !args.json {
        output::problem(&format!("{}:", error.class()), &error.message());
    }
    Ok(error.class().into())
}

fn show_limits(host: &Host, call: &Call) {
    let Ok(tool) = host.registry().get(call.tool()) else { return };
    let allocation = match host.sandbox().allocation() {
        Allocation::Pooled => "pooled",
        Allocation::OnDemand => "mapped for each call, because the address space is short",
    };
    let size = |bytes: u64| bytesize::ByteSize(bytes).display().iec();
    output::note(&format!("tool: {} (class {})", tool.definition().name(), tool.definition().side_effects()));
    output::note(&format!("workspace: {}", host.workspace().root().display()));
    output::note(&format!("time: {}", humantime::format_duration(host.time_limit(&tool, call.timeout))));
    output::note(&format!("memory: {}, {allocation}", size(host.limits().memory)));
    output::note(&format!("result: {}", size(limits::RESULT)));
}

fn read_input(argument: &str) -> Result<String, Failure> {
    let invalid =
        |what: &str, error: io::Error| Failure::new(Exit::Usage, format!("cannot read the input from {what}: {error}"));
    if argument == "-" {
        return read(io::stdin().lock()).map_err(|error| invalid("standard input", error));
    }
    let Some(path) = argument.strip_prefix('@') else { return Ok(argument.to_owned()) };
    let what = format!("`{path}`");
    let file = File::open(path).map_err(|error| invalid(&what, error))?;
    read(file).map_err(|error| invalid(&what, error))
}

/// Text that is too long need not be whole: the host says that it is too long.
fn read(source: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    source.take(MAX_INPUT).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == MAX_INPUT {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}
