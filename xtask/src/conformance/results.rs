//! What the suite leaves behind: for each scenario a directory with a file `checks.json`.

use anyhow::{Context as _, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// How long the time is that stands behind a scenario's name, with the dash before it: `-2026-07-28T12-00-00-000Z`.
const TIME: usize = 25;
/// What is shown of a message: those about what goes over the wire hold all of it.
const SHOWN: usize = 1_000;

/// What came of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// It holds.
    Success,
    /// Something is required and does not hold.
    Failure,
    /// Something is recommended and does not hold.
    Warning,
    /// It does not apply.
    Skipped,
    /// Nothing is said for or against.
    Info,
}

/// One check of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    /// Its name.
    pub(super) id: String,
    /// What came of it.
    pub(super) status: Status,
    /// What the suite says to that.
    pub(super) message: String,
}

/// Reads all there is, by scenario. One that did not come to its end has left no file, and is not among them.
pub(super) fn read(directory: &Path) -> anyhow::Result<BTreeMap<String, Vec<Check>>> {
    let mut results = BTreeMap::new();
    for entry in fs::read_dir(directory).with_context(|| format!("listing {}", directory.display()))? {
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
        other => bail!("the check {id} has the status {other:?}, which nobody here knows"),
    };
    let said = [&value["errorMessage"], &value["details"]["message"], &value["description"]];
    let message = said.iter().find_map(|text| text.as_str()).unwrap_or_default();
    Ok(Check { id, status, message: message.chars().take(SHOWN).collect() })
}

impl Check {
    /// Whether something does not hold, be it required or recommended.
    pub(super) fn is_fault(&self) -> bool {
        matches!(self.status, Status::Failure | Status::Warning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_named_after_its_scenario_and_the_time() {
        assert_eq!(scenario_of("server-tools-list-2026-11-22T07-55-54-842Z"), Some("tools-list"));
        assert_eq!(scenario_of("server-server-stateless-2026-11-22T07-55-52-819Z"), Some("server-stateless"));
        assert_eq!(scenario_of("client-tools_call-2026-11-22T07-55-52-819Z"), None);
        assert_eq!(scenario_of("server-2026"), None);
    }

    #[test]
    fn a_check_is_read_with_what_is_said_to_it() {
        let text = r#"[{"id":"a","status":"SUCCESS","description":"d"},{"id":"b","status":"WARNING","description":"d","details":{"message":"m"}},
                       {"id":"c","status":"FAILURE","description":"d","errorMessage":"e"}]"#;
        let checks = parse(text).unwrap_or_default();
        let read: Vec<_> =
            checks.iter().map(|check| (check.id.as_str(), check.message.as_str(), check.is_fault())).collect();
        assert_eq!(read, [("a", "d", false), ("b", "m", true), ("c", "e", true)]);
    }

    #[test]
    fn what_nobody_knows_is_no_success() {
        assert!(parse(r#"[{"id":"a","status":"PASSED"}]"#).is_err());
        assert!(parse(r#"{"id":"a"}"#).is_err());
    }
}
