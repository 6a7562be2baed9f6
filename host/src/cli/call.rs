//! `palisade call`: one call of one tool.

use super::args::{Call as Args, Common};
use super::exit::{Exit, Failure};
use super::running::{Tools, Wanted};
use super::signals::Signals;
use super::{ignored, input, live, open, output};
use crate::host::Host;
use crate::sandbox::{Allocation, limits};
use crate::tool::json::JsonBounds;
use crate::tool::{Call, ToolResult};

pub(super) fn run(common: &Common, args: &Args, signals: &Signals) -> Result<Exit, Failure> {
    let text = input::text_or_file(&args.input, JsonBounds::CALL_INPUT.bytes as u64)?;
    let tools = Tools::open(common, &args.running, Wanted::Tool(&args.tool))?;
    let host = &tools.host;
    if !host.registry().has(&args.tool) || common.verbose {
        open::show_missing(host);
    }
    let is_object = text.trim_start().starts_with('{');
    let mut call = Call::new(&args.tool, text);
    if let Some(timeout) = args.running.timeout {
        call = call.with_timeout(timeout);
    }
    if common.verbose {
        show_limits(host, &call);
    }
    ignored::tell(host, &call);
    let result = tools.run(signals, async |host, interrupted| {
        host.dispatch(host.session(), call.with_cancellation(interrupted)).await
    })?;
    let exit = show(&result, args)?;
    if exit == Exit::Invalid && !args.json {
        let is_no_object = if is_object { "" } else { "an input is a JSON object in quotes, '{…}'; " };
        output::note(&format!("{is_no_object}`palisade inspect {}` shows what it takes", result.tool()));
    }
    Ok(exit)
}

fn show(result: &ToolResult, args: &Args) -> Result<Exit, Failure> {
    if args.json {
        output::json(&result.to_json())?;
    } else if let Some(text) = result.output() {
        output::verbatim(&text)?;
    }
    let Some(error) = result.error() else { return Ok(Exit::Ok) };
    if !args.json {
        // Where anything moves, that has been shown as it came.
        if let Some(said) = result.partial_output().filter(|_| !live::shows()) {
            output::quote(&said);
        }
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
