//! The location of an SDK on this machine. Nothing is published yet, so that a new project depends
//! on a local directory or file.

use crate::language::Language;
use palisade::internal::open_unreplaceable_file;
use palisade::tool::text::visible;
use std::path::{Path, PathBuf};

/// The variable that names the SDKs where `--sdk` does not.
pub const VARIABLE: &str = "PALISADE_SDK";

/// The directory of the SDKs in a checkout.
const CHECKOUT: &str = "guest-sdk";
/// The directory of the SDKs beside an installed program, from the directory of the program.
const INSTALLED: &str = "../share/palisade/sdk";
/// How far above the program a checkout is looked for: `target/PROFILE/deps/program` is the
/// deepest.
const ABOVE: usize = 5;

/// The SDK of one language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sdk {
    path: PathBuf,
}

/// An SDK cannot be found. The message says how to name it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SdkError {
    /// The given place has no SDK of the language.
    #[error("`{path}` has no SDK for {language}: give {accepted}, with --sdk or {VARIABLE}")]
    NotThere {
        /// The given path.
        path: String,
        /// The language.
        language: Language,
        /// The accepted form.
        accepted: &'static str,
    },
    /// None was given, and there is none beside the program.
    #[error(
        "there is no SDK for {language} beside this program: give {accepted}, with --sdk or {VARIABLE}"
    )]
    NotFound {
        /// The language.
        language: Language,
        /// The accepted form.
        accepted: &'static str,
    },
    /// Another user could replace the SDK beside the program, whose code runs when a project is
    /// built.
    #[error(
        "the SDK `{path}` beside this program is not used: {reason}; or give another one with --sdk or {VARIABLE}"
    )]
    Replaceable {
        /// The path.
        path: String,
        /// The reason, with the remedy.
        reason: String,
    },
    /// A file of a project cannot hold the path.
    #[error("the path `{path}` of the SDK is not valid UTF-8, which the project's files need")]
    NotText {
        /// The path.
        path: String,
    },
}

impl Sdk {
    /// Finds the SDK of a language: the given path, or one beside the `program`.
    ///
    /// # Errors
    ///
    /// [`SdkError`] if there is none.
    pub fn find(
        language: Language,
        given: Option<&Path>,
        program: Option<&Path>,
    ) -> Result<Self, SdkError> {
        let accepted = accepted(language);
        let found = match given {
            Some(given) => within(language, given).ok_or_else(|| SdkError::NotThere {
                path: visible(&given.display().to_string()),
                language,
                accepted,
            })?,
            None => {
                let found = program.and_then(|program| beside(language, program));
                let found = found.ok_or(SdkError::NotFound { language, accepted })?;
                check_unreplaceable(language, &found)?;
                found
            }
        };
        let path = found.canonicalize().unwrap_or(found);
        match path.to_str() {
            Some(_) => Ok(Self { path }),
            None => Err(SdkError::NotText { path: visible(&path.display().to_string()) }),
        }
    }

    /// Returns the absolute path of the SDK.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The place of an SDK.
struct Place {
    /// Its directory, below that of all SDKs.
    directory: &'static str,
    /// A file in it.
    file: &'static str,
    /// Text of that file, which other projects do not have.
    mark: &'static str,
}

fn place(language: Language) -> Place {
    let place = |directory, file, mark| Place { directory, file, mark };
    match language {
        Language::Rust => place("", "Cargo.toml", "name = \"palisade-guest\""),
        Language::Python => place("python", "pyproject.toml", "name = \"palisade-guest\""),
        Language::Js => place("js", "package.json", "\"name\": \"palisade-guest\""),
        Language::C => place("c", "include/palisade.h", "#define PALISADE_TOOLS("),
    }
}

/// Returns the ending of a packed SDK, if the language's projects can depend on one.
fn packed(language: Language) -> Option<&'static str> {
    match language {
        Language::Python => Some("whl"),
        Language::Js => Some("tgz"),
        Language::Rust | Language::C => None,
    }
}

fn accepted(language: Language) -> &'static str {
    match language {
        Language::Rust => "a checkout of Palisade, or its directory guest-sdk",
        Language::Python => "a checkout of Palisade, its directory guest-sdk/python, or a wheel",
        Language::Js => "a checkout of Palisade, its directory guest-sdk/js, or its npm package",
        Language::C => "a checkout of Palisade, or its directory guest-sdk/c",
    }
}

/// Looks for the SDK in a directory of any level, or takes a packed one.
fn within(language: Language, given: &Path) -> Option<PathBuf> {
    if given.is_file() {
        let is_packed =
            given.extension().is_some_and(|it| packed(language).is_some_and(|p| it == p));
        return is_packed.then(|| given.to_owned());
    }
    let Place { directory, file, mark } = place(language);
    let candidates =
        [given.to_owned(), given.join(directory), given.join(CHECKOUT).join(directory)];
    let is_sdk = |directory: &PathBuf| {
        let text = std::fs::read_to_string(directory.join(file)).unwrap_or_default();
        text.contains(mark)
    };
    candidates.into_iter().find(is_sdk)
}

/// Looks for the SDK of an installed program, or of the checkout that the program was built in.
fn beside(language: Language, program: &Path) -> Option<PathBuf> {
    let home = program.parent()?;
    let Place { directory, .. } = place(language);
    let installed = home.join(INSTALLED).join(directory);
    let checkouts = home.ancestors().take(ABOVE).map(|above| above.join(CHECKOUT).join(directory));
    std::iter::once(installed).chain(checkouts).find_map(|it| within(language, &it))
}

/// Checks that no other user can replace an SDK which was found, and not given.
fn check_unreplaceable(language: Language, sdk: &Path) -> Result<(), SdkError> {
    let opened = open_unreplaceable_file(&sdk.join(place(language).file));
    opened.map(drop).map_err(|error| SdkError::Replaceable {
        path: visible(&sdk.display().to_string()),
        reason: visible(&error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]
    use super::*;
    use std::fs;

    fn checkout() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for path in ["guest-sdk/python", "target/release"] {
            fs::create_dir_all(root.path().join(path)).unwrap();
        }
        let manifest = "[package]\nname = \"palisade-guest\"\n";
        fs::write(root.path().join("guest-sdk/Cargo.toml"), manifest).unwrap();
        fs::write(root.path().join("Cargo.toml"), "[workspace]\n").unwrap();
        for packed in ["guest.whl", "guest.tgz"] {
            fs::write(root.path().join(packed), "").unwrap();
        }
        root
    }

    #[test]
    fn sdk_is_found_in_a_checkout_at_any_level() {
        let root = checkout();
        let sdk = root.path().join("guest-sdk").canonicalize().unwrap();
        for given in ["", "guest-sdk"] {
            let found = Sdk::find(Language::Rust, Some(&root.path().join(given)), None);
            assert_eq!(found.unwrap().path(), sdk);
        }
        let program = root.path().join("target/release/palisade");
        assert_eq!(Sdk::find(Language::Rust, None, Some(&program)).unwrap().path(), sdk);
    }

    #[test]
    fn sdk_that_others_can_replace_is_not_used() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = checkout();
        let program = root.path().join("target/release/palisade");
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let refused = Sdk::find(Language::Rust, None, Some(&program)).unwrap_err();
        assert!(matches!(refused, SdkError::Replaceable { .. }), "{refused}");
        assert!(Sdk::find(Language::Rust, Some(root.path()), Some(&program)).is_ok(), "named");
    }

    #[test]
    fn packed_sdk_is_that_of_one_language() {
        let root = checkout();
        for (file, language) in [("guest.whl", Language::Python), ("guest.tgz", Language::Js)] {
            let file = root.path().join(file);
            for other in Language::ALL {
                let found = Sdk::find(other, Some(&file), None);
                assert_eq!(found.is_ok(), other == language, "{other}");
            }
        }
    }

    #[test]
    fn every_sdk_of_this_repository_is_found() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        for language in Language::ALL {
            let found = Sdk::find(language, Some(&here), None).unwrap();
            assert!(found.path().starts_with(here.join("guest-sdk")), "{language}");
        }
    }

    #[test]
    fn missing_sdk_error_names_the_option() {
        let root = checkout();
        let refused = Sdk::find(Language::Python, Some(root.path()), None).unwrap_err();
        assert!(refused.to_string().contains("with --sdk or PALISADE_SDK"), "{refused}");
        let nowhere = tempfile::tempdir().unwrap();
        let program = nowhere.path().join("bin/palisade");
        let refused = Sdk::find(Language::Rust, None, Some(&program)).unwrap_err();
        assert!(refused.to_string().contains("beside this program"), "{refused}");
    }
}
