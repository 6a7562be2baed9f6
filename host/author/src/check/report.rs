//! The report of a check.

use super::{Finding, Options, Severity};
use crate::build::{ImportLine, ToolLine};
use palisade::tool::text::visible;
use serde::Serialize;
use std::path::Path;

/// The report of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The component.
    pub file: String,
    /// Its size, in bytes.
    pub bytes: usize,
    /// The SHA-256 of the component.
    pub digest: String,
    /// The version of the contract, as the name of the export.
    pub world: Option<String>,
    /// The tools.
    pub tools: Vec<ToolLine>,
    /// The imports.
    pub imports: Vec<ImportLine>,
    /// The seed of the drawn inputs.
    pub seed: u64,
    /// The number of calls with drawn inputs.
    pub inputs: usize,
    /// The number of replayed cases.
    pub cases: usize,
    /// The findings, faults first.
    pub findings: Vec<Finding>,
    /// The time of the check, in seconds.
    pub seconds: f64,
}

impl Report {
    pub(super) fn new(file: &Path, bytes: usize, digest: String, options: &Options) -> Self {
        Self {
            file: visible(&file.display().to_string()),
            bytes,
            digest,
            world: None,
            tools: Vec::new(),
            imports: Vec::new(),
            seed: options.seed,
            inputs: 0,
            cases: 0,
            findings: Vec::new(),
            seconds: 0.0,
        }
    }

    /// Returns true if the plugin has no fault.
    #[must_use]
    pub fn is_passed(&self) -> bool {
        self.count(Severity::Fault) == 0
    }

    /// Returns the number of findings of this weight.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|it| it.severity == severity).count()
    }
}
