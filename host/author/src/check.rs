//! `palisade check`: examines a plugin before a person trusts it.
//!
//! The checks go from cheap to dear: the bytes, the definitions, calls with inputs drawn from the
//! tools' own schemas, and the recorded cases. The plugin only ever runs in the sandbox, in a
//! scratch workspace.

mod definitions;
mod draw;
mod finding;
mod judge;
mod probe;
mod record;
mod repeat;
mod replay;
mod report;
mod seeds;

pub use finding::{Finding, Severity, Topic};
pub use record::{RecordError, Recorded, Recording, Written, record};
pub use replay::{Replayed, replay};
pub use report::Report;

use crate::bounded;
use crate::build::{imports, tools};
use crate::component;
use crate::files;
use crate::trial::{Engine, Trial, TrialError};
use finding::Findings;
use palisade::sandbox::{World, limits};
use palisade::tool::Digest;
use palisade::tool::text::visible;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The number of inputs that are drawn for a tool if none is given.
pub const INPUTS: usize = 32;
/// The deadline of a call if none is given.
pub const TIMEOUT: Duration = Duration::from_secs(5);

/// How a plugin is checked.
#[derive(Debug, Clone)]
pub struct Options {
    /// The seed of the drawn inputs: the same seed draws the same inputs.
    pub seed: u64,
    /// The number of inputs that are drawn for each tool.
    pub inputs: usize,
    /// The deadline of each call.
    pub timeout: Duration,
    /// The directory of the recorded cases.
    pub cases: PathBuf,
    /// The world that the plugin is expected to have.
    pub world: World,
    /// The project that the plugin is looked at for.
    pub subject: Subject,
}

/// The subject of a check: a single file, or the plugin of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A file, perhaps of a stranger: its tools need no cases.
    File,
    /// The plugin of the project in this directory: each tool should have a case, and the plugin
    /// should be newer than its sources.
    Project(PathBuf),
}

/// Checks a plugin. A plugin that the host refuses has a report as well, with one fault.
///
/// # Errors
///
/// If the file or the scratch workspace cannot be used.
pub fn check(engine: &Engine, file: &Path, options: &Options) -> Result<Report, TrialError> {
    let begun = Instant::now();
    let bytes = bounded::read(file, limits::COMPONENT).map_err(|error| {
        let path = visible(&file.display().to_string());
        match error.kind() {
            io::ErrorKind::NotFound => TrialError::NoFile { path },
            _ => TrialError::Unreadable { path, reason: error.to_string() },
        }
    })?;
    let mut found = Findings::default();
    let mut report = Report::new(file, bytes.len(), Digest::of(&bytes).to_string(), options);
    report.world = match &options.world {
        World::Tool => contract(&bytes, &mut found),
        World::Functions(adaptation) => {
            Some(format!("functions of another world, as tools of class {}", adaptation.class()))
        }
    };
    if let Subject::Project(project) = &options.subject {
        stale(file, project, &mut found);
    }
    if !found.has_fault() {
        match Trial::open(engine, file, &options.world) {
            Ok(trial) => tried(&trial, options, &mut report, &mut found)?,
            Err(TrialError::Refused { reason }) => {
                found.fault(Topic::Load, "refused", None, reason);
            }
            Err(other) => return Err(other),
        }
    }
    report.findings = found.sorted();
    report.seconds = begun.elapsed().as_secs_f64();
    Ok(report)
}

/// Warns if a project was changed after its plugin was built, as after a build that failed.
fn stale(plugin: &Path, project: &Path, found: &mut Findings) {
    // A project that cannot be looked at gets no warning: its plugin is checked as it is.
    if let Ok(Some(source)) = files::source_newer_than(plugin, project) {
        let source = visible(&source.display().to_string());
        let message = format!(
            "`{source}` was changed after the plugin was built; `palisade build` builds it again"
        );
        found.warn(Topic::Load, "stale", None, message);
    }
}

/// Returns the version of the contract that a component exports.
fn contract(bytes: &[u8], found: &mut Findings) -> Option<String> {
    let exports = match component::exports(bytes) {
        Ok(exports) => exports,
        Err(reason) => {
            found.fault(Topic::Load, "no-component", None, reason);
            return None;
        }
    };
    let tool = exports.iter().find(|name| name.starts_with(component::CONTRACT));
    if tool.is_none() {
        let shown: Vec<String> = exports.iter().take(8).map(|name| visible(name)).collect();
        let all = if shown.is_empty() { "nothing".to_owned() } else { shown.join(", ") };
        let message = format!(
            "it exports no {}…, and so no tools; it exports {all}. In Rust, `palisade_guest::export!(…)` makes the export; --class CLASS checks a component of another world",
            component::CONTRACT
        );
        found.fault(Topic::Load, "no-tools", None, message);
    }
    tool.map(|name| visible(name))
}

fn tried(
    trial: &Trial,
    options: &Options,
    report: &mut Report,
    found: &mut Findings,
) -> Result<(), TrialError> {
    report.tools = tools(trial);
    report.imports = imports(trial);
    definitions::check(trial, found);
    let cases = replay::all(trial, options, found)?;
    report.cases = cases.count;
    for definition in trial.plugin().definitions() {
        let probed = probe::tool(trial, definition, options)?;
        report.inputs += probed.seen.len();
        judge::tool(&probed, &cases, found);
        repeat::tool(trial, &probed, options, found)?;
    }
    Ok(())
}
