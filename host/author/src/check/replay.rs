//! Replays the recorded cases.

use super::finding::{Findings, Topic};
use super::judge;
use super::{Options, Subject};
use crate::case::{self, Case, Changes, Named};
use crate::trial::{Bounds, Trial, TrialError};
use palisade::ToolResult;
use palisade::tool::text::visible;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// The outcome of the cases: the tools that succeeded, and the tools that changed files.
#[derive(Debug, Default)]
pub(super) struct Cases {
    /// The number of replayed cases.
    pub(super) count: usize,
    succeeded: BTreeSet<String>,
    changed: BTreeSet<String>,
}

impl Cases {
    /// Returns true if a case of this tool succeeds.
    pub(super) fn succeeded(&self, tool: &str) -> bool {
        self.succeeded.contains(tool)
    }

    /// Returns true if a case of this tool changes a file.
    pub(super) fn changed(&self, tool: &str) -> bool {
        self.changed.contains(tool)
    }
}

/// A replayed case.
#[derive(Debug)]
pub struct Replayed {
    /// The name of the case.
    pub name: String,
    /// How it differs, or why it cannot be replayed. `None` if it holds.
    pub difference: Option<String>,
    /// The result of the call, if there was one.
    pub result: Option<ToolResult>,
}

/// Replays the cases of a directory, all or those with one of these names.
///
/// # Errors
///
/// If the directory or the scratch workspace cannot be used.
pub fn replay(
    trial: &Trial,
    cases: &Path,
    names: &[String],
    timeout: Duration,
) -> Result<Vec<Replayed>, TrialError> {
    let is_wanted = |it: &Named| names.is_empty() || names.contains(&it.name);
    let named = case::read_all(cases)?.filter(is_wanted);
    named.map(|named| replayed(trial, named, timeout)).collect()
}

fn replayed(trial: &Trial, named: Named, timeout: Duration) -> Result<Replayed, TrialError> {
    let Named { name, case } = named;
    let case = match case {
        Ok(case) if has(trial, &case.tool) => case,
        Ok(case) => {
            let difference = format!("the plugin has no tool `{}`", visible(&case.tool));
            return Ok(Replayed { name, difference: Some(difference), result: None });
        }
        Err(reason) => {
            let difference = Some(format!("it cannot be read: {reason}"));
            return Ok(Replayed { name, difference, result: None });
        }
    };
    let mut found = Findings::default();
    let Ran { result, difference } = one(trial, timeout, &case, &mut Cases::default(), &mut found)?;
    let undeclared = found.sorted().into_iter().map(|finding| finding.message).next();
    Ok(Replayed { name, difference: difference.or(undeclared), result })
}

pub(super) fn all(
    trial: &Trial,
    options: &Options,
    found: &mut Findings,
) -> Result<Cases, TrialError> {
    let mut cases = Cases::default();
    for named in case::read_all(&options.cases)? {
        match named.case {
            Err(reason) => {
                let message = format!("the case `{}` cannot be read: {reason}", named.name);
                found.fault(Topic::Cases, "differs", None, message);
            }
            Ok(case) => {
                cases.count += 1;
                if !has(trial, &case.tool) {
                    let message = format!(
                        "the case `{}` calls it, and the plugin has no such tool: change or remove `{}.json`",
                        named.name, named.name
                    );
                    found.fault(Topic::Cases, "differs", Some(&case.tool), message);
                    continue;
                }
                let Ran { result, difference } =
                    one(trial, options.timeout, &case, &mut cases, found)?;
                if let Some(difference) = difference {
                    let advice = match result {
                        Some(_) => "; if that is meant, record it again, or change its file",
                        None => "",
                    };
                    let message = format!("in the case `{}`, {difference}{advice}", named.name);
                    found.fault(Topic::Cases, "differs", Some(&case.tool), message);
                }
            }
        }
    }
    for definition in trial.plugin().definitions() {
        let name = definition.name().as_str();
        let is_expected = cases.count > 0 || options.subject != Subject::File;
        if !cases.succeeded(name) && is_expected {
            let message = "no case in tests/*.json shows a call of it that succeeds; `palisade check --record` makes one";
            found.warn(Topic::Cases, "no-case", Some(name), message);
        }
    }
    Ok(cases)
}

fn has(trial: &Trial, tool: &str) -> bool {
    trial.plugin().definitions().iter().any(|definition| definition.name().as_str() == tool)
}

/// A call of a case.
struct Ran {
    /// `None` if there was no call.
    result: Option<ToolResult>,
    /// How the call differs from the recorded one.
    difference: Option<String>,
}

/// Replays a case.
fn one(
    trial: &Trial,
    timeout: Duration,
    case: &Case,
    cases: &mut Cases,
    found: &mut Findings,
) -> Result<Ran, TrialError> {
    if let Err(error) = trial.reset(&case.workspace) {
        let difference = Some(format!("its files cannot be written: {error}"));
        return Ok(Ran { result: None, difference });
    }
    let declared = trial.declared(&case.tool, &case.input);
    let result = trial.call(&case.tool, &case.input, Bounds::within(timeout));
    let changes = case::changes(&case.workspace, &trial.files()?);
    judge::undeclared(&case.tool, &case.input, &changes, &declared, found);
    if result.is_success() {
        cases.succeeded.insert(case.tool.clone());
    }
    if !changes.is_empty() {
        cases.changed.insert(case.tool.clone());
    }
    let difference =
        case::difference(&case.result, &result).or_else(|| other_changes(case, &changes));
    Ok(Ran { result: Some(result), difference })
}

/// Returns how the changed files differ from the recorded ones.
fn other_changes(case: &Case, changes: &Changes) -> Option<String> {
    let json = |it: &_| serde_json::to_value(it).unwrap_or(Value::Null);
    (*changes != case.changes).then(|| {
        let (now, then) = (json(changes).to_string(), json(&case.changes).to_string());
        let brief = |text: &str| palisade::tool::text::elided(text, 160);
        format!("the changes are {}, and were {}", brief(&now), brief(&then))
    })
}
