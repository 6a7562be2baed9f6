//! Renders the result of a command: text for the model, metadata for the program.

use super::confine::Confined;
use super::process::{End, Excess};
use super::watch::{Ending, Why};
use palisade::execution::{Outcome, Report, ToolOutput};
use palisade::tool::{Content, ErrorKind, Limit, SideEffects, Usage};
use rustix::process::Signal;
use serde_json::{Map, Value, json};

/// Returns the resource usage of a command, and the limit that stopped it.
pub(super) fn usage(ending: &Ending) -> Report {
    let stopped = match (ending.stopped, ending.end) {
        (Some(Why::OwnLimit(limit)), _) => Some(ErrorKind::Timeout {
            limit,
            class: SideEffects::Execute,
            input: Some("timeout_ms"),
        }),
        (None, End::Exceeded(excess)) => Some(exhausted(excess)),
        _ => None,
    };
    let usage = Usage { truncated_bytes: ending.output.dropped(), ..Usage::default() };
    Report { usage, stopped, ..Report::default() }
}

fn exhausted(excess: Excess) -> ErrorKind {
    let (limit, value) = match excess {
        Excess::Processes(limit) => (Limit::Processes, limit),
        Excess::Memory(limit) => (Limit::ResidentMemory, limit),
    };
    ErrorKind::ResourceExhausted { limit, value }
}

/// Returns the output of the tool.
pub(super) fn output(command: &str, ending: &Ending, confined: Confined) -> ToolOutput {
    let success = ending.stopped.is_none() && ending.end == End::Exited(0);
    ToolOutput {
        content: vec![Content::Text(text(ending))],
        outcome: if success { Outcome::Success } else { Outcome::Failure },
        metadata: metadata(ending, confined),
        files_modified: Vec::new(),
        command_executed: Some(command.to_owned()),
    }
}

fn text(ending: &Ending) -> String {
    let mut text = ending.output.text();
    let mut remarks: Vec<String> = Vec::new();
    if text.is_empty() {
        remarks.push("[the command wrote nothing]".to_owned());
    }
    remarks.extend(ending.stopped.map(stopped));
    if ending.end != End::Exited(0) || ending.stopped.is_some() {
        remarks.push(last_line(ending.end));
    }
    if !remarks.is_empty() && !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text + &remarks.join("\n")
}

fn stopped(why: Why) -> String {
    match why {
        Why::Told => "[the command was stopped before it ended]".to_owned(),
        Why::OwnLimit(limit) => {
            format!("[the command was stopped after its timeout_ms of {}]", limit.as_millis())
        }
    }
}

fn last_line(end: End) -> String {
    match end {
        End::Exited(code) => format!("exit code {code}"),
        End::Killed(signal) => format!("killed by signal {signal}"),
        End::Exceeded(Excess::Processes(limit)) => {
            format!("[the command was killed: it had more than {limit} processes at once]")
        }
        End::Exceeded(Excess::Memory(limit)) => {
            format!(
                "[the command was killed: its processes held more than {limit} bytes of memory]"
            )
        }
        End::Unknown => "it is not known how the command ended".to_owned(),
    }
}

fn metadata(ending: &Ending, confined: Confined) -> Map<String, Value> {
    let (code, signal) = match ending.end {
        End::Exited(code) => (Some(code), None),
        End::Killed(signal) => (None, Some(signal)),
        End::Exceeded(_) => (None, Some(Signal::KILL.as_raw())),
        End::Unknown => (None, None),
    };
    let mut metadata = confined.facts();
    metadata.insert("exit_code".to_owned(), json!(code));
    metadata.insert("signal".to_owned(), json!(signal));
    if let Some(Why::OwnLimit(limit)) = ending.stopped {
        metadata.insert(
            "stopped_after_ms".to_owned(),
            json!(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
        );
    }
    metadata
}
