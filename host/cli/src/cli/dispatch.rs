//! `palisade dispatch`: runs the tool calls of a model's reply and prints the messages to send
//! back.

use super::args::{Common, Dispatch as Args};
use super::caller::Caller;
use super::exit::{Exit, Failure};
use super::results::Results;
use super::signals::Signals;
use super::tool_session::{Prints, Tools, Wanted};
use super::{input, output, setup, unknown_keys};
use palisade::formats::{Messages, REPLY_BOUNDS, ReplyError, ToolUse, read_calls};
use palisade::{Call, ToolResult};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The session of all calls of a reply, unless `--session` names another.
const SESSION: &str = "dispatch";

pub(super) fn run(common: &Common, args: &Args, signals: &Signals) -> Result<Exit, Failure> {
    let text = input::file_or_standard(&args.reply, REPLY_BOUNDS.bytes as u64)?;
    let uses = read_calls(args.from, &text).map_err(|error| refused(&error))?;
    let names: Vec<&str> = uses.iter().map(ToolUse::name).collect();
    let caller = Caller::new(&args.caller)?;
    let results_file = args.results.as_deref();
    let results_file =
        results_file.map(|path| Results::open(path, &common.workspace)).transpose()?;
    let wanted = Wanted::Tools(&names);
    let hidden = args.results.as_deref();
    let tools = Tools::open_hiding(common, &args.running, wanted, Prints::Json, hidden)?;
    results_file.as_ref().map_or(Ok(()), Results::begin)?;
    if common.verbose || uses.iter().any(|used| !tools.host.registry().has(used.name())) {
        setup::show_missing(&tools.host);
    } else {
        setup::show_clashes(&tools.host);
    }
    uses.iter().for_each(|used| unknown_keys::tell(&tools.host, &Call::from(used)));
    let (results, is_interrupted) = tools.run(signals, async |host, interrupted| {
        let session = caller.session(host, Some(SESSION));
        let call = |used| caller.prepare(call(used, args.running.timeout, &interrupted));
        let calls = uses.iter().map(call).collect();
        (host.dispatch_all(&session, calls).await, interrupted.is_cancelled())
    })?;
    let answered: Vec<(ToolUse, ToolResult)> = uses.into_iter().zip(results).collect();
    let messages = Messages::new(args.from, &answered);
    // The results come first: the program behind the model reads them when it has the messages.
    let results = answered.iter().map(|(_, result)| result);
    let written = results_file.map_or(Ok(()), |file| file.write(results));
    output::json(&messages)?;
    answered.iter().for_each(|(_, result)| tell(result));
    messages.omitted_parts().iter().for_each(|part| output::note(&part.to_string()));
    written?;
    Ok(if is_interrupted { Exit::Interrupted } else { Exit::Ok })
}

/// Returns the refusal of a reply, with the option that names the provider whose form it has.
fn refused(error: &ReplyError) -> Failure {
    match error {
        ReplyError::OtherProvider { found, .. } => {
            Failure::new(Exit::Invalid, format!("{error}, with `--from {found}`"))
        }
        _ => Failure::new(Exit::Invalid, error),
    }
}

fn call(used: &ToolUse, timeout: Option<Duration>, interrupted: &CancellationToken) -> Call {
    let call = Call::from(used).with_cancellation(interrupted.child_token());
    match timeout {
        Some(timeout) => call.with_timeout(timeout),
        None => call,
    }
}

/// Prints a failed call to stderr as well; the model reads the failure in its message.
fn tell(result: &ToolResult) {
    if let Some(error) = result.error() {
        output::problem(
            &format!("{} ({}):", result.tool(), result.call_id()),
            &format!("{}: {}", error.class(), error.message()),
        );
    }
}
