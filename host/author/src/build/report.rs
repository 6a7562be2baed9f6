//! The report of a built plugin: its tools, its imports, and the cost of a call.

use super::{BuildError, Built};
use crate::case::{self, Case, Files};
use crate::language::Language;
use crate::trial::{Bounds, Engine, Trial, TrialError};
use palisade::sandbox::World;
use palisade::tool::text::visible;
use palisade::{SideEffects, ToolResult};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// Number of measured calls; the median is reported.
const CALLS: usize = 100;
/// The time after which no further call is measured.
const PATIENCE: Duration = Duration::from_secs(1);
/// The deadline of a measured call.
const DEADLINE: Duration = Duration::from_secs(10);

/// The report of a build.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The language of the project.
    pub language: Language,
    /// The component.
    pub file: String,
    /// Its size, in bytes.
    pub bytes: usize,
    /// The number of bytes that stripping has removed.
    pub stripped_bytes: usize,
    /// The SHA-256 of the component.
    pub digest: String,
    /// The time of the build, in seconds.
    pub build_seconds: f64,
    /// The time of the first load, which compiles, in seconds.
    pub load_seconds: f64,
    /// The tools.
    pub tools: Vec<ToolLine>,
    /// The imports.
    pub imports: Vec<ImportLine>,
    /// The cost of a call; `null` if no call of the recorded cases can be made.
    pub call: Option<Cost>,
}

/// A tool of the plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolLine {
    /// The name.
    pub name: String,
    /// The class.
    pub side_effects: &'static str,
    /// The description.
    pub description: String,
}

/// An import of the plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportLine {
    /// The interface.
    pub name: String,
    /// The functions and data that a call gets for it.
    pub gets: &'static str,
    /// The least class for which it gives anything.
    pub needs: &'static str,
}

/// The cost of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    /// The tool.
    pub tool: String,
    /// The recorded case that was called.
    pub case: String,
    /// The number of calls.
    pub calls: usize,
    /// The median, in milliseconds.
    pub median_ms: f64,
    /// The most memory of a call's guest, in bytes.
    pub peak_memory_bytes: u64,
}

impl Report {
    /// Loads the plugin, and measures a call of its first recorded case that succeeds.
    ///
    /// # Errors
    ///
    /// [`BuildError::Refused`] if it is not a plugin.
    pub fn of(built: &Built, engine: &Engine, cases: &Path) -> Result<Self, BuildError> {
        let begun = Instant::now();
        let trial = Trial::open(engine, &built.file, &World::Tool)
            .map_err(|error| refused(built, error))?;
        let load = begun.elapsed();
        let plugin = trial.plugin();
        Ok(Self {
            language: built.language,
            file: visible(&built.file.display().to_string()),
            bytes: built.bytes,
            stripped_bytes: built.saved,
            digest: plugin.digest().to_string(),
            build_seconds: built.took.as_secs_f64(),
            load_seconds: load.as_secs_f64(),
            tools: tools(&trial),
            imports: imports(&trial),
            call: cost(&trial, cases)?,
        })
    }
}

fn refused(built: &Built, error: TrialError) -> BuildError {
    let TrialError::Refused { reason } = error else { return error.into() };
    let advice = match built.language {
        Language::Rust if reason.contains("palisade:tool/tool") => {
            "; `palisade_guest::export!(…)` at the end of src/lib.rs lists the tools"
        }
        _ => "",
    };
    BuildError::Refused { file: visible(&built.file.display().to_string()), reason, advice }
}

/// Returns the tools of a plugin.
pub(crate) fn tools(trial: &Trial) -> Vec<ToolLine> {
    let line = |tool: &palisade::Definition| ToolLine {
        name: tool.name().as_str().to_owned(),
        side_effects: tool.side_effects().as_str(),
        description: tool.description().to_owned(),
    };
    trial.plugin().definitions().iter().map(line).collect()
}

/// Returns the imports of a plugin.
pub(crate) fn imports(trial: &Trial) -> Vec<ImportLine> {
    let line = |import: &palisade::sandbox::Import| ImportLine {
        name: import.name.clone(),
        gets: import.meaning,
        needs: needs(&import.name).as_str(),
    };
    trial.plugin().imports().iter().map(line).collect()
}

/// Returns the least class for which an import gives anything.
pub(crate) fn needs(import: &str) -> SideEffects {
    match import.split('/').next() {
        Some("wasi:filesystem") => SideEffects::Read,
        Some("wasi:sockets" | "wasi:http") => SideEffects::Network,
        _ => SideEffects::None,
    }
}

fn cost(trial: &Trial, cases: &Path) -> Result<Option<Cost>, BuildError> {
    let named = case::read_all(cases).map_err(|error| BuildError::io("list", cases, error))?;
    for named in named {
        let Ok(case) = named.case else { continue };
        if case.result.get("success") != Some(&json!(true)) {
            continue;
        }
        if let Some((times, peak)) = timed(trial, &case)? {
            let median = times.get(times.len() / 2).copied().unwrap_or_default();
            return Ok(Some(Cost {
                tool: case.tool,
                case: named.name,
                calls: times.len(),
                median_ms: palisade::internal::millis(median),
                peak_memory_bytes: peak,
            }));
        }
    }
    Ok(None)
}

/// Returns the sorted times of the calls and the peak memory, or `None` if a call fails. The files
/// are written anew before each call, outside of the measured time.
fn timed(trial: &Trial, case: &Case) -> Result<Option<(Vec<Duration>, u64)>, BuildError> {
    let begun = Instant::now();
    let (mut times, mut peak) = (Vec::new(), 0);
    while times.len() < CALLS && (times.is_empty() || begun.elapsed() < PATIENCE) {
        let (result, took) = once(trial, &case.tool, &case.input, &case.workspace)?;
        if result.is_failure() {
            return Ok(None);
        }
        times.push(took);
        peak = result.usage().peak_memory_bytes.max(peak);
    }
    times.sort_unstable();
    Ok(Some((times, peak)))
}

fn once(
    trial: &Trial,
    tool: &str,
    input: &Value,
    files: &Files,
) -> Result<(ToolResult, Duration), BuildError> {
    trial.reset(files).map_err(TrialError::Scratch)?;
    let begun = Instant::now();
    let result = trial.call(tool, input, Bounds::within(DEADLINE));
    Ok((result, begun.elapsed()))
}
