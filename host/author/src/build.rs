//! `palisade build`: runs the toolchain of a project, and reports what came of it.

mod c;
mod encode;
mod error;
mod js;
mod python;
mod report;
mod rust;
mod toolchain;

pub use error::BuildError;
pub use report::{Cost, ImportLine, Report, ToolLine};
pub(crate) use report::{imports, needs, tools};
pub use toolchain::{Homes, VARIABLE};

use crate::bounded;
use crate::component;
use crate::language::Language;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The directory of a project that gets the plugin, and nothing else.
pub const OUTPUT: &str = "dist";

/// A project to build.
#[allow(missing_debug_implementations, reason = "a closure has none")]
pub struct Request<'a> {
    /// The directory of the project.
    pub directory: &'a Path,
    /// Its language, where the project does not tell.
    pub language: Option<Language>,
    /// Where standard libraries that are made are kept.
    pub homes: &'a Homes,
    /// Is told about a slow step.
    pub note: &'a mut dyn FnMut(&str),
}

/// A built plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The language of the project.
    pub language: Language,
    /// The component.
    pub file: PathBuf,
    /// Its size, in bytes.
    pub bytes: usize,
    /// The number of bytes that stripping has removed.
    pub saved: usize,
    /// The time of the whole build.
    pub took: Duration,
}

/// The component that a toolchain has made, with the name of its file.
struct Made {
    /// The name of the plugin's file, without `.wasm`.
    name: String,
    /// The component.
    bytes: Vec<u8>,
}

/// Builds a project, and writes the stripped component below [`OUTPUT`]. The toolchain prints to
/// standard error.
///
/// # Errors
///
/// [`BuildError`]: what is missing, with the command that gets it, or that the project does not
/// compile.
pub fn build(request: &mut Request<'_>) -> Result<Built, BuildError> {
    let begun = Instant::now();
    let directory = request.directory;
    let language = request.language.map_or_else(|| Language::of(directory), Ok)?;
    let made = match language {
        Language::Rust => rust::build(directory, request.homes, request.note)?,
        Language::Python => python::build(directory)?,
        Language::Js => js::build(directory)?,
        Language::C => c::build(directory)?,
    };
    let bytes = component::stripped(&made.bytes)
        .map_err(|error| BuildError::Component { reason: error.to_string() })?;
    let file = directory.join(OUTPUT).join(format!("{}.wasm", made.name));
    place(&file, &bytes)?;
    let saved = made.bytes.len().saturating_sub(bytes.len());
    Ok(Built { language, file, bytes: bytes.len(), saved, took: begun.elapsed() })
}

/// Writes the plugin beside its place and renames it, so that a host that watches the directory
/// never loads a part of it.
fn place(file: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    let directory = file.parent().unwrap_or(file);
    fs::create_dir_all(directory).map_err(|source| BuildError::io("create", directory, source))?;
    bounded::replace(file, bytes).map_err(|source| BuildError::io("write", file, source))
}
