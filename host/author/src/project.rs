//! A new project, from the templates inside this crate.

mod template;

use crate::language::Language;
use crate::name::{NameError, PluginName};
use crate::sdk::{Sdk, SdkError};
use palisade::tool::text::visible;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A new project cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NewError {
    /// The name is not accepted.
    #[error(transparent)]
    Name(#[from] NameError),
    /// There is no SDK.
    #[error(transparent)]
    Sdk(#[from] SdkError),
    /// The directory has files already.
    #[error("`{directory}` exists and is not empty; give the name of a new directory")]
    NotEmpty {
        /// The directory.
        directory: String,
    },
    /// A file cannot be written.
    #[error("cannot write `{path}`: {source}")]
    Io {
        /// The file or directory.
        path: String,
        /// The cause.
        source: io::Error,
    },
}

/// A new project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The name of the plugin: the last part of the directory.
    pub name: PluginName,
    /// The directory.
    pub directory: PathBuf,
    /// The language.
    pub language: Language,
    /// The files, relative to the directory.
    pub files: Vec<String>,
}

/// Makes a project in a directory whose last part is the plugin's name.
///
/// # Errors
///
/// [`NewError`] if the name is not accepted, the directory has files, or a file cannot be written.
pub fn create(directory: &Path, language: Language, sdk: &Sdk) -> Result<Project, NewError> {
    let name = name_of(directory, language)?;
    refuse_files(directory)?;
    let mut files = Vec::new();
    for (path, text) in template::files(language) {
        let path = template::filled(path, &name, sdk);
        write(&directory.join(&path), &template::filled(text, &name, sdk))?;
        files.push(path);
    }
    Ok(Project { name, directory: directory.to_owned(), language, files })
}

/// Returns the name of the project in a directory, if the language accepts it.
///
/// # Errors
///
/// [`NameError`] with what is accepted.
pub fn name_of(directory: &Path, language: Language) -> Result<PluginName, NameError> {
    let last = directory.file_name().unwrap_or(directory.as_os_str());
    last.to_string_lossy().parse::<PluginName>()?.for_language(language)
}

fn refuse_files(directory: &Path) -> Result<(), NewError> {
    match fs::read_dir(directory).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => {
            Err(NewError::NotEmpty { directory: visible(&directory.display().to_string()) })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(failed(directory, source)),
    }
}

fn write(path: &Path, text: &str) -> Result<(), NewError> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent).map_err(|source| failed(parent, source))?;
    fs::write(path, text).map_err(|source| failed(path, source))
}

fn failed(path: &Path, source: io::Error) -> NewError {
    NewError::Io { path: visible(&path.display().to_string()), source }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]
    use super::*;

    fn sdk() -> Sdk {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        Sdk::find(Language::Rust, Some(&here), None).unwrap()
    }

    #[test]
    fn every_placeholder_is_filled() {
        for language in Language::ALL {
            let outer = tempfile::tempdir().unwrap();
            let made = create(&outer.path().join("word-count"), language, &sdk()).unwrap();
            for file in ["README.md", ".gitignore", language.manifest()] {
                assert!(made.files.iter().any(|it| it == file), "{language}: {file}");
            }
            for file in &made.files {
                let text = fs::read_to_string(made.directory.join(file)).unwrap();
                for left in ["@NAME@", "@IDENT@", "@SDK"] {
                    assert!(!text.contains(left), "{language}: {file}: {left}");
                }
            }
        }
    }

    #[test]
    fn readme_of_a_project_fits_on_one_screen() {
        for language in Language::ALL {
            let readme = template::files(language).iter().find(|(path, _)| *path == "README.md");
            let lines = readme.unwrap().1.lines().count();
            assert!(lines <= 50, "{language}: {lines}");
        }
    }

    #[test]
    fn empty_directory_is_used_and_a_full_one_refused() {
        let outer = tempfile::tempdir().unwrap();
        let directory = outer.path().join("greet");
        fs::create_dir(&directory).unwrap();
        assert!(create(&directory, Language::Rust, &sdk()).is_ok());
        let manifest = directory.join("Cargo.toml");
        fs::write(&manifest, "mine").unwrap();
        let refused = create(&directory, Language::Rust, &sdk()).unwrap_err();
        assert!(refused.to_string().contains("is not empty"), "{refused}");
        assert_eq!(fs::read_to_string(manifest).unwrap(), "mine");
    }

    #[test]
    fn bad_name_leaves_nothing_behind() {
        let outer = tempfile::tempdir().unwrap();
        assert!(create(&outer.path().join("Greet"), Language::Rust, &sdk()).is_err());
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 0);
    }
}
