//! Makes a case of a call.

use super::TIMEOUT;
use crate::bounded;
use crate::case::{self, Case, Files, OtherEntries};
use crate::trial::{Bounds, Engine, Trial, TrialError};
use palisade::sandbox::World;
use palisade::tool::text::visible;
use serde_json::Value;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum size of the files of a case, in bytes.
const LARGEST_FILES: u64 = 4 << 20;

/// A call to record.
#[derive(Debug)]
pub struct Recording<'a> {
    /// The name of the case.
    pub name: &'a str,
    /// The tool; `None` for the only one of the plugin.
    pub tool: Option<&'a str>,
    /// The input.
    pub input: Value,
    /// The directory with the files before the call; `None` for no files.
    pub files: Option<&'a Path>,
    /// The directory of the cases.
    pub cases: &'a Path,
    /// The world that the plugin is expected to have.
    pub world: &'a World,
}

/// A case cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The name is not that of a file.
    #[error("`{0}` cannot be the name of a case: letters, digits, `-` and `_` are accepted")]
    Name(String),
    /// No tool is named, and the plugin does not have exactly one.
    #[error("name the tool with --tool: {0}")]
    Unnamed(String),
    /// There is no such tool.
    #[error("there is no tool `{name}`; --tool takes one of: {known}")]
    NoTool {
        /// The name, escaped.
        name: String,
        /// The tools.
        known: String,
    },
    /// The directory of the files does not exist.
    #[error("`{0}` is no directory; --files takes the directory with the files before the call")]
    NoFiles(String),
    /// The files before the call cannot be those of a case.
    #[error("--files: `{path}` cannot be used: {reason}")]
    Files {
        /// The directory.
        path: String,
        /// The reason.
        reason: String,
    },
    /// The case would be larger than one that can be read.
    #[error("the case would have {0} bytes, and at most {most} are accepted", most = case::LARGEST)]
    TooLarge(usize),
    /// The plugin cannot be tried.
    #[error(transparent)]
    Trial(#[from] TrialError),
    /// A file cannot be read or written.
    #[error("cannot use `{path}`: {source}")]
    Io {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
}

/// A recorded case.
#[derive(Debug)]
pub struct Recorded {
    /// Its file.
    pub file: PathBuf,
    /// The case.
    pub case: Case,
    /// Whether the file had another case before.
    pub written: Written,
}

/// How the file of a case was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// It is a new file.
    New,
    /// It replaced the file of another case.
    Replaced,
}

/// Calls a tool and writes the case.
///
/// # Errors
///
/// [`RecordError`] if the call cannot be made or the case cannot be written. A failed call is a
/// case like any other.
pub fn record(
    engine: &Engine,
    plugin: &Path,
    recording: &Recording<'_>,
) -> Result<Recorded, RecordError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if recording.name.is_empty() || !recording.name.chars().all(is_plain) {
        return Err(RecordError::Name(visible(recording.name)));
    }
    let trial = Trial::open(engine, plugin, recording.world)?;
    let tool = tool(&trial, recording.tool)?;
    let workspace = files(recording.files)?;
    trial.reset(&workspace).map_err(TrialError::Scratch)?;
    let result = trial.call(&tool, &recording.input, Bounds::within(TIMEOUT));
    let after = trial.files().map_err(TrialError::Scratch)?;
    let changes = case::changes(&workspace, &after);
    let case = Case {
        tool,
        input: recording.input.clone(),
        workspace,
        result: case::kept(&result),
        changes,
    };
    let file = recording.cases.join(format!("{}.json", recording.name));
    let written = if file.exists() { Written::Replaced } else { Written::New };
    let mut text =
        serde_json::to_string_pretty(&case).map_err(|error| failed(&file, error.into()))?;
    text.push('\n');
    if text.len() as u64 > case::LARGEST {
        return Err(RecordError::TooLarge(text.len()));
    }
    write(&file, &text).map_err(|source| failed(&file, source))?;
    Ok(Recorded { file, case, written })
}

fn tool(trial: &Trial, named: Option<&str>) -> Result<String, RecordError> {
    let names: Vec<&str> =
        trial.plugin().definitions().iter().map(|it| it.name().as_str()).collect();
    match (named, names.as_slice()) {
        (Some(named), names) if names.contains(&named) => Ok(named.to_owned()),
        (None, [only]) => Ok((*only).to_owned()),
        (Some(named), names) => {
            Err(RecordError::NoTool { name: visible(named), known: names.join(", ") })
        }
        (None, names) => Err(RecordError::Unnamed(names.join(", "))),
    }
}

fn files(directory: Option<&Path>) -> Result<Files, RecordError> {
    let Some(directory) = directory else { return Ok(Files::new()) };
    if !directory.is_dir() {
        return Err(RecordError::NoFiles(visible(&directory.display().to_string())));
    }
    case::read_files(directory, LARGEST_FILES, OtherEntries::Refused).map_err(|source| {
        let path = visible(&directory.display().to_string());
        RecordError::Files { path, reason: source.to_string() }
    })
}

fn write(file: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = file.parent() {
        fs::create_dir_all(parent)?;
    }
    bounded::replace(file, text.as_bytes())
}

fn failed(path: &Path, source: io::Error) -> RecordError {
    RecordError::Io { path: visible(&path.display().to_string()), source }
}
