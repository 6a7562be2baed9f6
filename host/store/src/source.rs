//! The sources of plugins.

use crate::limits;
use crate::plugin_name::PluginName;
use crate::reference::{OciReference, beginning_of_references, parse_digest};
use crate::source_error::SourceError;
use palisade::tool::text::elided;
use palisade_net::{Scheme, Target};
use std::fmt;
use std::path::{Component, Path, PathBuf};

const FILE: &str = "file://";
const OCI: &str = "oci://";

/// The source of a plugin. Its text is what a lock records.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// A file, by its absolute path.
    File(PathBuf),
    /// A file of a web server, by its URL.
    Web(String),
    /// An artifact of a registry.
    Oci(OciReference),
}

impl Source {
    /// Reads a source: a URL with `oci://`, `https://`, `http://` or `file://`, or a path.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if the text is none of these. Nothing is looked up.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        let refused =
            |reason: &str| SourceError::Url { text: elided(text, 160), reason: reason.to_owned() };
        if text.len() > limits::SOURCE {
            return Err(refused("it is longer than 2,048 bytes"));
        }
        if let Some(reference) = text.strip_prefix(OCI) {
            return OciReference::parse(reference).map(Self::Oci);
        }
        let path = match text.split_once("://") {
            Some(("file", path)) if path.starts_with('/') => path,
            Some(("https" | "http", _)) => return web(text).map(Self::Web),
            Some(_) => return Err(refused("its scheme is not known")),
            None => text,
        };
        let wrong = |reason: String| SourceError::Path { text: elided(text, 160), reason };
        let path = std::path::absolute(path).map_err(|error| wrong(error.to_string()))?;
        let path = without_parents(path);
        match path.to_str() {
            Some(text) if !text.contains("://") => Ok(Self::File(path)),
            _ => Err(wrong("it has other characters than a lock can record".to_owned())),
        }
    }

    /// Returns the beginning of the URLs of sources in its only spelling, such as
    /// `oci://ghcr.io/me/`.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if no source begins with the text.
    pub fn parse_beginning(text: &str) -> Result<String, SourceError> {
        match text.strip_prefix(OCI) {
            Some(beginning) => Ok(format!("{OCI}{}", beginning_of_references(beginning)?)),
            None => spelled(text),
        }
    }

    /// Returns the source of exactly the artifact that this one resolved to before. Sources without
    /// digests of their own stay as they are.
    ///
    /// # Errors
    ///
    /// [`SourceError::Reference`] if the text is no digest.
    pub fn pinned(&self, resolved: &str) -> Result<Self, SourceError> {
        let Self::Oci(reference) = self else { return Ok(self.clone()) };
        let wrong = |reason| SourceError::Reference { reason };
        Ok(Self::Oci(reference.clone().pinned(parse_digest(resolved).map_err(wrong)?)))
    }

    /// Returns true if both are artifacts of one repository, such as two tags of it.
    #[must_use]
    pub fn is_of_same_repository(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Oci(one), Self::Oci(other)) => {
                one.registry() == other.registry() && one.repository() == other.repository()
            }
            _ => false,
        }
    }

    /// Returns the name that a plugin of this source has unless another is given: that of its file,
    /// or of its repository.
    ///
    /// # Errors
    ///
    /// [`SourceError::Name`] if that is no name of a plugin.
    pub fn plugin_name(&self) -> Result<PluginName, SourceError> {
        let stem = |file: &str| file.strip_suffix(".wasm").unwrap_or(file).to_owned();
        let name = match self {
            Self::File(path) => palisade::plugins::name_of_file(path),
            Self::Web(url) => {
                let path = url.split(['?', '#']).next().unwrap_or(url);
                stem(path.rsplit('/').next().unwrap_or(path))
            }
            Self::Oci(reference) => reference.last_part().to_owned(),
        };
        PluginName::parse(&name)
    }
}

/// Returns a path without `..`, as far as the folder of its file exists: a file is one source, also
/// if its path leads up and down again.
fn without_parents(path: PathBuf) -> PathBuf {
    let folder = path.parent().filter(|_| path.components().any(|it| it == Component::ParentDir));
    match (folder.and_then(|it| it.canonicalize().ok()), path.file_name()) {
        (Some(folder), Some(file)) => folder.join(file),
        _ => path,
    }
}

/// Returns the URL of a file in its only spelling.
fn web(text: &str) -> Result<String, SourceError> {
    let url = spelled(text)?;
    match url.splitn(4, '/').nth(3) {
        None | Some("") => {
            Err(SourceError::Url { text: elided(text, 160), reason: "it names no file".to_owned() })
        }
        Some(_) => Ok(url),
    }
}

/// Returns a URL, or the beginning of one, in its only spelling: a key for a source is compared
/// with the texts of sources, and another spelling of a source must not evade it.
pub(crate) fn spelled(text: &str) -> Result<String, SourceError> {
    let refused =
        |reason: &str| SourceError::Url { text: elided(text, 160), reason: reason.to_owned() };
    let target = Target::of_url(text).map_err(|error| refused(&error.to_string()))?;
    if text.contains(['#', '\\']) || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(refused("it has a fragment, or a character that a URL cannot have"));
    }
    if target.scheme == Scheme::Http && !target.host.is_loopback() {
        return Err(refused("without encryption the bytes could be replaced on their way"));
    }
    let rest = text.splitn(4, '/').nth(3).unwrap_or_default();
    let path = rest.split('?').next().unwrap_or_default();
    // The beginning of a URL may end with a slash.
    let (folders, file) = path.rsplit_once('/').unwrap_or(("", path));
    let are_folders_usual =
        folders.is_empty() || folders.split('/').all(|part| !part.is_empty() && is_usual(part));
    if path.starts_with('/') || !are_folders_usual || !is_usual(file) {
        return Err(refused(
            "its path has an unusual spelling: `//`, `.`, `..`, and percent signs for characters that need none are not accepted",
        ));
    }
    Ok(format!("{target}/{rest}"))
}

/// Returns true if a part of a path is no step to another directory, and escapes nothing that needs
/// no escape.
fn is_usual(part: &str) -> bool {
    let needs_escape = |escape: &str| {
        let byte = escape.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        byte.is_some_and(|byte| !byte.is_ascii_alphanumeric() && !b"-._~/".contains(&byte))
    };
    !matches!(part, "." | "..") && part.split('%').skip(1).all(needs_escape)
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{FILE}{}", Path::display(path)),
            Self::Web(url) => f.write_str(url),
            Self::Oci(reference) => write!(f, "{OCI}{reference}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn source_survives_a_lock() {
        for (text, name) in [
            ("/plugins/git.wasm", "git"),
            ("https://example.org/a/git.wasm?x=1", "git"),
            ("http://localhost:80/git", "git"),
            ("http://[::1]:8080/git.wasm", "git"),
            ("oci://ghcr.io/me/git:1", "git"),
        ] {
            let source = Source::parse(text).unwrap();
            assert_eq!(Source::parse(&source.to_string()).unwrap(), source);
            assert_eq!(source.plugin_name().unwrap().as_str(), name, "{text}");
            assert!(source.to_string().contains("://"), "{source}");
        }
    }

    #[test]
    fn source_has_one_spelling() {
        for (text, one) in [
            ("https://Example.ORG.:443/a/git.wasm", "https://example.org/a/git.wasm"),
            ("http://LOCALHOST:07104/git.wasm", "http://localhost:7104/git.wasm"),
            (
                "https://example.org/a%20b/git.wasm?x=%6d",
                "https://example.org/a%20b/git.wasm?x=%6d",
            ),
            ("oci://GHCR.io:443/me/git:1", "oci://ghcr.io/me/git:1"),
            ("oci://docker.io/git:1", "oci://docker.io/library/git:1"),
        ] {
            assert_eq!(Source::parse(text).unwrap().to_string(), one, "{text}");
        }
        for text in [
            "https://example.org/x/../me/git.wasm",
            "https://example.org//me/git.wasm",
            "https://example.org/./git.wasm",
            "https://example.org/%6de/git.wasm",
            "https://example.org/me%2fgit.wasm",
            "https://example.org/a%2/git.wasm",
        ] {
            assert!(Source::parse(text).is_err(), "{text}");
        }
        for (text, one) in [
            ("https://Example.org", "https://example.org/"),
            ("https://example.org:443/me/", "https://example.org/me/"),
            ("oci://GHCR.io", "oci://ghcr.io/"),
            ("oci://ghcr.io/me/", "oci://ghcr.io/me/"),
            ("oci://docker.io/me/", "oci://docker.io/me/"),
        ] {
            assert_eq!(Source::parse_beginning(text).unwrap(), one, "{text}");
        }
        for text in ["oci://docker.io/git", "oci://ghcr.io//me", "oci://ghcr.io/Me/", "oci://x"] {
            assert!(Source::parse_beginning(text).is_err(), "{text}");
        }
    }

    #[test]
    fn source_without_encryption_is_this_machine_only() {
        for text in [
            "http://example.org/git.wasm",
            "http://10.0.0.1/git.wasm",
            "http://localhost.example.org/git.wasm",
            "http://127.1/git.wasm",
            "ftp://example.org/git.wasm",
            "file://relative/git.wasm",
            "https://user:word@example.org/git.wasm",
            "https://example.org/git.wasm#x",
            "https://example.org/",
            "https://example.org",
            "https:///git.wasm",
        ] {
            let refused = Source::parse(text);
            assert!(matches!(refused, Err(SourceError::Url { .. })), "{text}: {refused:?}");
        }
    }

    #[test]
    fn name_of_a_plugin_is_no_path() {
        for text in ["", ".", "..", "../x", "a/b", ".git", "-x", "a b", "é", &"a".repeat(65)] {
            assert!(PluginName::parse(text).is_err(), "{text}");
        }
        for text in ["a", "git-2", "a.b_c", &"a".repeat(64)] {
            assert!(PluginName::parse(text).is_ok(), "{text}");
        }
    }
}
