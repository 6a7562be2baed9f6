//! Replays the recorded cases.

use super::Options;
use super::finding::{Findings, Topic};
use super::judge;
use crate::case::{self, Case};
use crate::trial::{Bounds, Trial, TrialError};
use serde_json::Value;
use std::collections::BTreeSet;

/// What the cases have shown.
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
                } else if let Some(difference) = one(trial, options, &case, &mut cases, found)? {
                    let message = format!("in the case `{}`, {difference}", named.name);
                    found.fault(Topic::Cases, "differs", Some(&case.tool), message);
                }
            }
        }
    }
    for definition in trial.plugin().definitions() {
        let name = definition.name().as_str();
        if !cases.succeeded(name) && cases.count > 0 {
            let message = "no case in tests/*.json shows a call of it that succeeds; `palisade check --record` makes one";
            found.warn(Topic::Cases, "no-case", Some(name), message);
        }
    }
    Ok(cases)
}

fn has(trial: &Trial, tool: &str) -> bool {
    trial.plugin().definitions().iter().any(|definition| definition.name().as_str() == tool)
}

/// Replays a case, and returns how it differs.
fn one(
    trial: &Trial,
    options: &Options,
    case: &Case,
    cases: &mut Cases,
    found: &mut Findings,
) -> Result<Option<String>, TrialError> {
    if let Err(error) = trial.reset(&case.workspace) {
        return Ok(Some(format!("its files cannot be written: {error}")));
    }
    let declared = trial.declared(&case.tool, &case.input);
    let result = trial.call(&case.tool, &case.input, Bounds::within(options.timeout));
    let changes = case::changes(&case.workspace, &trial.files()?);
    judge::undeclared(&case.tool, &case.input, &changes, &declared, found);
    if result.is_success() {
        cases.succeeded.insert(case.tool.clone());
    }
    if !changes.is_empty() {
        cases.changed.insert(case.tool.clone());
    }
    if let Some(difference) = case::difference(&case.result, &result) {
        return Ok(Some(difference));
    }
    let json = |it: &_| serde_json::to_value(it).unwrap_or(Value::Null);
    Ok((changes != case.changes).then(|| {
        let (now, then) = (json(&changes).to_string(), json(&case.changes).to_string());
        let brief = |text: &str| palisade::tool::text::elided(text, 160);
        format!("the changes are {}, and were {}", brief(&now), brief(&then))
    }))
}
