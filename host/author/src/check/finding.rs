//! The findings of a check.

use serde::Serialize;
use std::fmt;

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The plugin is wrong: the check fails.
    Fault,
    /// Its author should look at it.
    Warning,
}

/// The part of the check that found something, in the order of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Topic {
    /// The host loads the component.
    Load,
    /// The imports, against the classes of the tools.
    Imports,
    /// The words and schemas of the tools.
    Definitions,
    /// The schemas, in the formats of the providers.
    Providers,
    /// Calls with drawn inputs.
    Inputs,
    /// The time of the calls.
    Deadline,
    /// Calls that are cancelled.
    Cancellation,
    /// The output of the calls.
    Output,
    /// The memory of the calls.
    Memory,
    /// The changes of files by the calls.
    Files,
    /// The same call again.
    Repeat,
    /// The recorded cases.
    Cases,
}

impl Topic {
    /// All topics, in the order of the checks.
    pub const ALL: [Self; 12] = [
        Self::Load,
        Self::Imports,
        Self::Definitions,
        Self::Providers,
        Self::Inputs,
        Self::Deadline,
        Self::Cancellation,
        Self::Output,
        Self::Memory,
        Self::Files,
        Self::Repeat,
        Self::Cases,
    ];

    /// Returns the name in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Imports => "imports",
            Self::Definitions => "definitions",
            Self::Providers => "providers",
            Self::Inputs => "inputs",
            Self::Deadline => "deadline",
            Self::Cancellation => "cancellation",
            Self::Output => "output",
            Self::Memory => "memory",
            Self::Files => "files",
            Self::Repeat => "repeat",
            Self::Cases => "cases",
        }
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The part of the check.
    pub topic: Topic,
    /// Its weight.
    pub severity: Severity,
    /// The stable name of the defect.
    pub code: &'static str,
    /// The tool, if the finding is about one.
    pub tool: Option<String>,
    /// The defect, and what would be accepted.
    pub message: String,
}

/// The findings so far.
#[derive(Debug, Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    pub(super) fn fault(
        &mut self,
        topic: Topic,
        code: &'static str,
        tool: Option<&str>,
        message: impl Into<String>,
    ) {
        self.add(Severity::Fault, topic, code, tool, message.into());
    }

    pub(super) fn warn(
        &mut self,
        topic: Topic,
        code: &'static str,
        tool: Option<&str>,
        message: impl Into<String>,
    ) {
        self.add(Severity::Warning, topic, code, tool, message.into());
    }

    /// Adds a finding. The first one of a defect of a tool stands for all.
    fn add(
        &mut self,
        severity: Severity,
        topic: Topic,
        code: &'static str,
        tool: Option<&str>,
        message: String,
    ) {
        let is_known = self
            .0
            .iter()
            .any(|it| it.code == code && it.tool.as_deref() == tool && code != "differs");
        if !is_known {
            self.0.push(Finding { topic, severity, code, tool: tool.map(str::to_owned), message });
        }
    }

    pub(super) fn has_fault(&self) -> bool {
        self.0.iter().any(|it| it.severity == Severity::Fault)
    }

    pub(super) fn sorted(mut self) -> Vec<Finding> {
        self.0.sort_by_key(|it| (it.severity, it.topic));
        self.0
    }
}
