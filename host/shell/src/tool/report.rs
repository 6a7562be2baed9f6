//! Renders the result of a command: text for the model, metadata for the program.

use crate::command::{Completed, StopReason};
use crate::process::{ExceededLimit, ExitStatus};
use palisade::{Content, ErrorKind, Limit, SideEffects, tool::Usage};
use palisade::{
    ToolOutput,
    execution::{Outcome, Report},
};
use rustix::process::Signal;
use serde_json::{Map, Value, json};

/// Returns the resource usage of a command, and the limit that stopped it.
pub(super) fn usage(completed: &Completed) -> Report {
    let stopped = match (completed.stopped, completed.status) {
        (Some(StopReason::Timeout(limit)), _) => Some(ErrorKind::Timeout {
            limit,
            class: SideEffects::Execute,
            input: Some("timeout_ms"),
        }),
        (None, ExitStatus::Exceeded(limit)) => Some(exhausted(limit)),
        _ => None,
    };
    let usage = Usage { truncated_bytes: completed.output.dropped(), ..Usage::default() };
    Report { usage, stopped, ..Report::default() }
}

fn exhausted(exceeded: ExceededLimit) -> ErrorKind {
    let (limit, value) = match exceeded {
        ExceededLimit::Processes(limit) | ExceededLimit::Threads(limit) => {
            (Limit::Processes, limit)
        }
        ExceededLimit::Memory(limit) => (Limit::ResidentMemory, limit),
    };
    ErrorKind::ResourceExhausted { limit, value }
}

/// Returns the output of the tool.
pub(super) fn output(command: &str, completed: &Completed) -> ToolOutput {
    let success = completed.stopped.is_none() && completed.status == ExitStatus::Exited(0);
    ToolOutput {
        content: vec![Content::Text(text(completed))],
        outcome: if success { Outcome::Success } else { Outcome::Failure },
        metadata: metadata(completed),
        files_modified: Vec::new(),
        command_executed: Some(command.to_owned()),
    }
}

fn text(completed: &Completed) -> String {
    let mut text = completed.output.text();
    let mut remarks: Vec<String> = Vec::new();
    if text.is_empty() {
        remarks.push("[the command wrote nothing]".to_owned());
    }
    remarks.extend(completed.stopped.map(stop_remark));
    if completed.status != ExitStatus::Exited(0) || completed.stopped.is_some() {
        remarks.push(last_line(completed.status));
    }
    if !remarks.is_empty() && !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text + &remarks.join("\n")
}

fn stop_remark(reason: StopReason) -> String {
    match reason {
        StopReason::Cancelled => "[the command was stopped before it ended]".to_owned(),
        StopReason::Timeout(limit) => {
            format!("[the command was stopped after its timeout_ms of {}]", limit.as_millis())
        }
    }
}

fn last_line(status: ExitStatus) -> String {
    match status {
        ExitStatus::Exited(code) => format!("exit code {code}"),
        ExitStatus::Killed(signal) => format!("killed by signal {signal}"),
        ExitStatus::Exceeded(ExceededLimit::Processes(limit)) => {
            format!("[the command was killed: it had more than {limit} processes at once]")
        }
        ExitStatus::Exceeded(ExceededLimit::Threads(limit)) => {
            format!("[the command was killed: it had more than {limit} threads at once]")
        }
        ExitStatus::Exceeded(ExceededLimit::Memory(limit)) => {
            format!(
                "[the command was killed: its processes held more than {limit} bytes of memory]"
            )
        }
        ExitStatus::Unknown => "it is not known how the command ended".to_owned(),
    }
}

fn metadata(completed: &Completed) -> Map<String, Value> {
    let (code, signal) = match completed.status {
        ExitStatus::Exited(code) => (Some(code), None),
        ExitStatus::Killed(signal) => (None, Some(signal)),
        ExitStatus::Exceeded(_) => (None, Some(Signal::KILL.as_raw())),
        ExitStatus::Unknown => (None, None),
    };
    let mut metadata = completed.confined.to_metadata();
    metadata.insert("exit_code".to_owned(), json!(code));
    metadata.insert("signal".to_owned(), json!(signal));
    if let Some(StopReason::Timeout(limit)) = completed.stopped {
        metadata.insert(
            "stopped_after_ms".to_owned(),
            json!(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
        );
    }
    metadata
}
