//! Reads the results of the suite: a directory per scenario with a file `checks.json`.

use anyhow::{Context as _, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Length of the timestamp after a scenario's name, with its dash: `-2026-07-28T12-00-00-000Z`.
const TIME: usize = 25;
/// Maximum length of a shown message, in characters: messages about traffic include all of it.
const SHOWN: usize = 1_000;

/// The status of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// The check passed.
    Success,
    /// A required property does not hold.
    Failure,
    /// A recommended property does not hold.
    Warning,
    /// The check does not apply.
    Skipped,
    /// For information only.
    Info,
}

/// One check of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    /// The name of the check.
    pub(super) id: String,
    /// The status.
    pub(super) status: Status,
    /// The message of the suite.
    pub(super) message: String,
}

/// Reads all results, keyed by scenario. A scenario that did not finish has no file and is missing.
pub(super) fn read(directory: &Path) -> anyhow::Result<BTreeMap<String, Vec<Check>>> {
    let mut results = BTreeMap::new();
    for entry in
        fs::read_dir(directory).with_context(|| format!("listing {}", directory.display()))?
    {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let file = entry.path().join("checks.json");
        if let (Some(scenario), Ok(text)) = (scenario_of(&name), fs::read_to_string(&file)) {
            let checks = parse(&text).with_context(|| format!("reading {}", file.display()))?;
            results.insert(scenario.to_owned(), checks);
        }
    }
    Ok(results)
}

fn scenario_of(directory: &str) -> Option<&str> {
    let name = directory.strip_prefix("server-")?;
    let (scenario, time) = name.split_at_checked(name.len().checked_sub(TIME)?)?;
    (time.starts_with('-') && time.ends_with('Z')).then_some(scenario)
}

fn parse(text: &str) -> anyhow::Result<Vec<Check>> {
    let value: Value = serde_json::from_str(text).context("it holds no JSON")?;
    value.as_array().context("it holds no list")?.iter().map(check).collect()
}

fn check(value: &Value) -> anyhow::Result<Check> {
    let id = value["id"].as_str().context("a check has no name")?.to_owned();
    let status = match value["status"].as_str() {
        Some("SUCCESS") => Status::Success,
        Some("FAILURE") => Status::Failure,
        Some("WARNING") => Status::Warning,
        Some("SKIPPED") => Status::Skipped,
        Some("INFO") => Status::Info,
        other => bail!("the check {id} has the status {other:?}, which is unknown"),
    };
    let said = [&value["errorMessage"], &value["details"]["message"], &value["description"]];
    let message = said.iter().find_map(|text| text.as_str()).unwrap_or_default();
    Ok(Check { id, status, message: message.chars().take(SHOWN).collect() })
}

impl Check {
    /// Returns true if a required or recommended property does not hold.
    pub(super) fn is_fault(&self) -> bool {
        matches!(self.status, Status::Failure | Status::Warning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_has_scenario_and_time_in_its_name() {
        assert_eq!(scenario_of("server-tools-list-2026-11-22T07-55-54-842Z"), Some("tools-list"));
        assert_eq!(
            scenario_of("server-server-stateless-2026-11-22T07-55-52-819Z"),
            Some("server-stateless")
        );
        assert_eq!(scenario_of("client-tools_call-2026-11-22T07-55-52-819Z"), None);
        assert_eq!(scenario_of("server-2026"), None);
    }

    #[test]
    fn check_is_read_with_its_message() {
        let text = r#"[{"id":"a","status":"SUCCESS","description":"d"},{"id":"b","status":"WARNING","description":"d","details":{"message":"m"}},
                       {"id":"c","status":"FAILURE","description":"d","errorMessage":"e"}]"#;
        let checks = parse(text).unwrap_or_default();
        let read: Vec<_> = checks
            .iter()
            .map(|check| (check.id.as_str(), check.message.as_str(), check.is_fault()))
            .collect();
        assert_eq!(read, [("a", "d", false), ("b", "m", true), ("c", "e", true)]);
    }

    #[test]
    fn unknown_status_is_no_success() {
        assert!(parse(r#"[{"id":"a","status":"PASSED"}]"#).is_err());
        assert!(parse(r#"{"id":"a"}"#).is_err());
    }
}
