//! The languages of plugins, and how a project of each is recognised.

use serde::Serialize;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A language that `palisade new` and `palisade build` know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "&'static str")]
pub enum Language {
    /// Rust, built by cargo.
    Rust,
    /// Python, built by componentize-py.
    Python,
    /// JavaScript or TypeScript, built by componentize-qjs.
    Js,
    /// C, compiled by clang.
    C,
}

/// There is no language of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the languages are rust, python, js and c")]
pub struct UnknownLanguage;

/// The project of a directory cannot be recognised. The message says what is looked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownProject {
    /// There is no file of a project.
    #[error(
        "there is no project in `{directory}`: a project has a Cargo.toml (Rust), a pyproject.toml (Python), a package.json (JavaScript) or a compile_flags.txt (C); `palisade new` makes one"
    )]
    None {
        /// The directory.
        directory: String,
    },
    /// There are files of several projects.
    #[error("`{directory}` may be a project in {first} or in {second}; name one with --lang")]
    Several {
        /// The directory.
        directory: String,
        /// One language.
        first: Language,
        /// The other one.
        second: Language,
    },
}

impl Language {
    /// All languages.
    pub const ALL: [Self; 4] = [Self::Rust, Self::Python, Self::Js, Self::C];

    /// Returns the name on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::Js => "js",
            Self::C => "c",
        }
    }

    /// Returns the file that makes a directory a project of this language.
    #[must_use]
    pub fn manifest(self) -> &'static str {
        match self {
            Self::Rust => "Cargo.toml",
            Self::Python => "pyproject.toml",
            Self::Js => "package.json",
            // The one file of C projects that has a fixed name and form: clangd reads it.
            Self::C => "compile_flags.txt",
        }
    }

    /// Recognises the project of a directory.
    ///
    /// # Errors
    ///
    /// [`UnknownProject`] if there is no project, or more than one.
    pub fn of(directory: &Path) -> Result<Self, UnknownProject> {
        let shown = || palisade::tool::text::visible(&directory.display().to_string());
        let mut found = Self::ALL.into_iter().filter(|it| directory.join(it.manifest()).is_file());
        match (found.next(), found.next()) {
            (Some(language), None) => Ok(language),
            (Some(first), Some(second)) => {
                Err(UnknownProject::Several { directory: shown(), first, second })
            }
            (None, _) => Err(UnknownProject::None { directory: shown() }),
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<Language> for &'static str {
    fn from(language: Language) -> Self {
        language.as_str()
    }
}

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(name: &str) -> Result<Self, UnknownLanguage> {
        Self::ALL.into_iter().find(|it| it.as_str() == name).ok_or(UnknownLanguage)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]
    use super::*;
    use std::fs;

    #[test]
    fn project_is_recognised_by_its_manifest() {
        for language in Language::ALL {
            let directory = tempfile::tempdir().unwrap();
            fs::write(directory.path().join(language.manifest()), "").unwrap();
            assert_eq!(Language::of(directory.path()), Ok(language));
        }
    }

    #[test]
    fn missing_or_ambiguous_project_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let refused = Language::of(directory.path()).unwrap_err();
        assert!(refused.to_string().contains("pyproject.toml"), "{refused}");
        fs::write(directory.path().join("Cargo.toml"), "").unwrap();
        fs::write(directory.path().join("pyproject.toml"), "").unwrap();
        let refused = Language::of(directory.path()).unwrap_err();
        assert!(refused.to_string().contains("rust or in python"), "{refused}");
    }
}
