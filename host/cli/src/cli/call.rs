//! `palisade call`: one call of one tool.

use super::args::{Call as Args, Common};
use super::caller::Caller;
use super::exit::{Exit, Failure};
use super::progress::Watching;
use super::signals::Signals;
use super::tool_session::{Prints, Tools, Wanted};
use super::{grants, hint, input, output, progress, setup, unknown_keys};
use palisade::Host;
use palisade::internal::expect_one_call;
use palisade::sandbox::{Allocation, limits};
use palisade::tool::json::JsonBounds;
use palisade::{Call, ErrorKind, ExecutionKind, ToolError, ToolResult};
use std::io::{self, IsTerminal as _};

pub(super) fn run(common: &Common, args: &Args, signals: &Signals) -> Result<Exit, Failure> {
    let text = input::text_or_file(&args.input, JsonBounds::CALL_INPUT.bytes as u64)?;
    let caller = Caller::new(&args.caller)?;
    expect_one_call();
    let prints = if args.json { Prints::Json } else { Prints::Text };
    let tools = Tools::open(common, &args.running, Wanted::Tools(&[&args.tool]), prints)?;
    let host = &tools.host;
    if !host.registry().has(&args.tool) || common.verbose {
        setup::show_missing(host);
        if let Some(missing) = grants::missing(host, &args.tool) {
            output::note(&missing.advice);
        }
        if host.registry().tools().is_empty() {
            output::note(&format!("there are no tools: {}", setup::without_tools(&tools.settings)));
        }
    } else {
        setup::show_clashes(host);
    }
    let input = text.clone();
    let mut call = caller.prepare(Call::new(&args.tool, text));
    if let Some(timeout) = args.running.timeout {
        call = call.with_timeout(timeout);
    }
    if common.verbose {
        show_limits(host, &call);
    }
    unknown_keys::tell(host, &call);
    let result = tools.run(signals, async |host, interrupted| {
        let session = caller.session(host, None);
        host.dispatch(&session, call.with_cancellation(interrupted)).await
    })?;
    let exit = show(&result, prints, tools.shown.as_deref())?;
    if exit == Exit::Invalid && !args.json {
        let reason = result.error().and_then(|error| error.errors().first());
        let slip = reason.and_then(|first| hint::on_syntax(&input, &first.reason));
        let inspect = hint::command(common, &format!("inspect {}", result.tool()));
        let slip = slip.map(|slip| format!("{slip}; ")).unwrap_or_default();
        output::note(&format!("{slip}`{inspect}` shows what it takes"));
    }
    Ok(exit)
}

/// Prints a result: its output on standard output, and its error on standard error.
pub(super) fn show(
    result: &ToolResult,
    prints: Prints,
    shown: Option<&Watching>,
) -> Result<Exit, Failure> {
    if prints == Prints::Json {
        output::json(result)?;
    } else if let Some(text) = result.output() {
        // One terminal has shown what the tool has emitted, and shows the rest.
        let watched = shown.filter(|_| progress::shows() && io::stdout().is_terminal());
        output::verbatim(watched.map_or(&*text, |watched| watched.not_emitted(&text)))?;
    }
    let Some(error) = result.error() else { return Ok(Exit::Ok) };
    if prints == Prints::Text {
        // On a terminal the live view has already shown the partial output.
        if let Some(said) = result.partial_output().filter(|_| !progress::shows()) {
            output::quote(&said);
        }
        let told = told(error);
        let rest = shown.filter(|_| progress::shows()).map(|shown| shown.not_shown(&told));
        output::quoting_problem(&format!("{}:", error.class()), rest.as_deref().unwrap_or(&told));
    }
    Ok(error.class().into())
}

/// Returns the error message for standard error. The crash details appear on a terminal only: a
/// pipe may lead to a model, which reads the message of the result.
fn told(error: &ToolError) -> String {
    match error.kind() {
        ErrorKind::Execution { kind: ExecutionKind::Trap, source: Some(crash), .. }
            if io::stderr().is_terminal() =>
        {
            crash.to_string()
        }
        _ => error.message(),
    }
}

fn show_limits(host: &Host, call: &Call) {
    let Ok(tool) = host.registry().get(call.tool()) else { return };
    let allocation = match host.sandbox().allocation() {
        Allocation::Pooled => "pooled",
        Allocation::OnDemand => "mapped for each call, because the address space is short",
        Allocation::Scarce => {
            "mapped for each call and copied as it grows, because the address space is very short"
        }
    };
    let size = |bytes: u64| bytesize::ByteSize(bytes).display().iec();
    output::note(&format!(
        "tool: {} (class {})",
        tool.definition().name(),
        tool.definition().side_effects()
    ));
    output::note(&format!("workspace: {}", host.workspace().root().display()));
    output::note(&format!(
        "time: {}",
        humantime::format_duration(host.time_limit(&tool, call.timeout()))
    ));
    output::note(&format!("memory: {}, {allocation}", size(host.memory_limit(&tool))));
    output::note(&format!("result: {}", size(limits::RESULT)));
}
