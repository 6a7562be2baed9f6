//! The findings about a tool from its drawn calls.

use super::finding::{Findings, Topic};
use super::probe::{Probed, Seen};
use super::replay::Cases;
use crate::case::Content;
use palisade::tool::text::elided;
use palisade::{
    ErrorClass, ErrorKind, ExecutionKind, Limit, PermissionReason, SideEffects, ToolError,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// The length of an output that a model should not have to read, in bytes.
const LARGE: usize = 256 << 10;
/// The memory of a call that is much, in bytes.
const MUCH: u64 = 64 << 20;
/// The number of lines of an error message that is still one.
const LINES: usize = 6;
/// The message of the host for an error without a message.
const WORDLESS: &str = "the tool failed without saying why";
/// The number of calls after which it is strange that none succeeded.
const ENOUGH: usize = 8;

pub(super) fn tool(probed: &Probed<'_>, cases: &Cases, found: &mut Findings) {
    let definition = probed.definition;
    let name = definition.name().as_str();
    for seen in &probed.seen {
        if let Some(error) = seen.result.error() {
            failure(name, seen, error, found);
        } else {
            success(name, seen, found);
        }
        files(name, seen, found);
    }
    whole(probed, cases, found);
}

fn input(seen: &Seen) -> String {
    elided(&seen.input.to_string(), 200)
}

fn failure(tool: &str, seen: &Seen, error: &ToolError, found: &mut Findings) {
    let tool = Some(tool);
    let with = format!("with the input {}", input(seen));
    match error.kind() {
        ErrorKind::Execution { kind: ExecutionKind::Trap, .. } => {
            let cause = error.cause_for_log().map_or_else(|| error.reason(), chain);
            let message = format!("it crashes {with}: {}", elided(&cause, 300));
            found.fault(Topic::Inputs, "crash", tool, message);
        }
        ErrorKind::Execution { kind: ExecutionKind::Contract, message, .. } => {
            let message = format!("it breaks the contract {with}: {}", elided(message, 300));
            found.fault(Topic::Output, "contract", tool, message);
        }
        ErrorKind::Execution { message, .. } => words(tool, message, &with, found),
        ErrorKind::Timeout { .. } => {
            let message =
                format!("it was still running after {:.1} s {with}", seen.took.as_secs_f64());
            found.fault(Topic::Deadline, "hang", tool, message);
        }
        ErrorKind::PermissionDenied { reason, message, .. }
            if !matches!(reason, PermissionReason::Workspace | PermissionReason::Protected) =>
        {
            let message = format!(
                "the sandbox refused it something {with}: {}; declare the class that it needs",
                elided(message, 200)
            );
            found.fault(Topic::Files, "class-too-low", tool, message);
        }
        ErrorKind::ResourceExhausted { limit, value } => {
            let (topic, code) = match limit {
                Limit::Result => (Topic::Output, "too-large"),
                Limit::Memory | Limit::Tables => (Topic::Memory, "exhausted-memory"),
                _ => (Topic::Inputs, "exhausted"),
            };
            let message = format!("it reaches the limit `{}` of {value} {with}", limit.as_str());
            found.fault(topic, code, tool, message);
        }
        _ => {}
    }
}

fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Judges the words of an error, which a model reads.
fn words(tool: Option<&str>, message: &str, with: &str, found: &mut Findings) {
    if message.trim().is_empty() || message == WORDLESS {
        let message =
            format!("its error has no message {with}; say what is wrong and what is accepted");
        found.fault(Topic::Output, "blank-error", tool, message);
    } else if message.lines().count() > LINES || message.contains("Traceback (most recent call") {
        let message = format!(
            "its error has {} lines {with}; one sentence is enough",
            message.lines().count()
        );
        found.warn(Topic::Output, "long-error", tool, message);
    }
}

fn success(tool: &str, seen: &Seen, found: &mut Findings) {
    let tool = Some(tool);
    let output = seen.result.output().unwrap_or_default();
    let with = format!("with the input {}", input(seen));
    if output.len() > LARGE {
        let message =
            format!("its output has {} bytes {with}; page it, or cut it with a mark", output.len());
        found.warn(Topic::Output, "large-output", tool, message);
    }
    if seen.result.content().is_empty() && seen.changes.is_empty() {
        let message = format!("it succeeds and says nothing {with}");
        found.warn(Topic::Output, "no-output", tool, message);
    }
    if seen.result.usage().peak_memory_bytes > MUCH {
        let bytes = seen.result.usage().peak_memory_bytes;
        let message = format!("it takes {bytes} bytes of memory {with}");
        found.warn(Topic::Memory, "much-memory", tool, message);
    }
    if seen.result.usage().truncated_bytes > 0 {
        let message = format!(
            "{} bytes of its logs or prints were dropped {with}",
            seen.result.usage().truncated_bytes
        );
        found.warn(Topic::Output, "dropped-text", tool, message);
    }
}

/// Compares what a call changed with the paths of its input.
fn files(tool: &str, seen: &Seen, found: &mut Findings) {
    undeclared(tool, &seen.input, &seen.changes, &seen.declared, found);
    if seen.class() == Some(ErrorClass::ExecutionError) && !seen.changes.is_empty() {
        let message = format!(
            "it fails with the input {} and has changed files: check first, change then",
            input(seen)
        );
        found.warn(Topic::Files, "half-done", Some(tool), message);
    }
}

/// Reports a changed file that a person who is asked does not see.
pub(super) fn undeclared(
    tool: &str,
    input: &Value,
    changes: &BTreeMap<String, Option<Content>>,
    declared: &[String],
    found: &mut Findings,
) {
    let is_declared =
        |path: &str| declared.iter().any(|it| it == path || path.starts_with(&format!("{it}/")));
    // A directory that was made for a declared file.
    let is_parent = |path: &str, content: &Option<Content>| {
        matches!(content, Some(Content::EmptyDirectory { .. }))
            && declared.iter().any(|it| it.starts_with(&format!("{path}/")))
    };
    let undeclared =
        changes.iter().find(|(path, content)| !is_declared(path) && !is_parent(path, content));
    if let Some((path, _)) = undeclared {
        let message = format!(
            "it changes `{}`, which its input {} does not name as a path to change: a person who is asked does not see it; take the path as an argument with `\"format\": \"workspace-path\"`, and without `\"x-access\": \"read\"`",
            elided(path, 120),
            elided(&input.to_string(), 200)
        );
        found.fault(Topic::Files, "undeclared-change", Some(tool), message);
    }
}

/// Returns true for a call that ended before the tool saw its input.
fn is_refused_by_the_host(seen: &Seen) -> bool {
    let error = seen.result.error().map(ToolError::kind);
    matches!(
        error,
        Some(ErrorKind::PermissionDenied {
            reason: PermissionReason::Workspace | PermissionReason::Protected,
            ..
        })
    )
}

/// Judges all calls together.
fn whole(probed: &Probed<'_>, cases: &Cases, found: &mut Findings) {
    let definition = probed.definition;
    let name = definition.name().as_str();
    let tool = Some(name);
    let seen = &probed.seen;
    if seen.is_empty() {
        let message = "no input could be drawn from its schema, so that only the cases were called; `examples` in the schema help";
        found.warn(Topic::Inputs, "no-input", tool, message);
        return;
    }
    // A path that leaves the workspace is refused before the tool sees it.
    let answered: Vec<&Seen> = seen.iter().filter(|it| !is_refused_by_the_host(it)).collect();
    let refuses = |it: &&Seen| {
        let error = it.result.error().map(ToolError::kind);
        matches!(error, Some(ErrorKind::Execution { kind: ExecutionKind::InvalidInput, .. }))
    };
    let refuses_all = answered.len() >= ENOUGH && answered.iter().all(refuses);
    if refuses_all && !cases.succeeded(name) {
        let message = format!(
            "it refuses each of {} inputs that its own schema accepts: the schema is wrong",
            answered.len()
        );
        found.fault(Topic::Definitions, "schema-mismatch", tool, message);
    } else if seen.iter().all(|it| it.result.is_failure()) && !cases.succeeded(name) {
        let is_denied = answered.iter().any(|it| it.class() == Some(ErrorClass::PermissionDenied));
        let class = if is_denied { "its class may be too low, and " } else { "" };
        let message = format!(
            "none of {} calls succeeded, the last with `{}`; {class}a case in tests/*.json shows a call that works",
            seen.len(),
            elided(&seen.last().map(|it| it.result.to_string()).unwrap_or_default(), 160)
        );
        found.warn(Topic::Inputs, "never-succeeds", tool, message);
    }
    unused_class(probed, cases, found);
}

/// Reports a class that no call needed.
fn unused_class(probed: &Probed<'_>, cases: &Cases, found: &mut Findings) {
    let definition = probed.definition;
    let name = definition.name().as_str();
    let succeeded = probed.seen.iter().filter(|it| it.result.is_success());
    let changed = succeeded.clone().any(|it| !it.changes.is_empty()) || cases.changed(name);
    if definition.side_effects() == SideEffects::Write && succeeded.count() >= ENOUGH && !changed {
        let message = match cases.succeeded(name) {
            true => {
                "its class is write, and no call changed a file: a person is asked for nothing; class read may suffice"
            }
            false => {
                "its class is write, and no drawn input changed a file: record a case that does with `palisade check --record`, or declare class read"
            }
        };
        found.warn(Topic::Files, "class-unused", Some(name), message);
    }
}
