//! The place of an artifact in an OCI registry: `HOST[:PORT]/REPOSITORY[:TAG][@sha256:DIGEST]`.

use crate::source_error::SourceError;
use palisade::tool::Digest;
use palisade_net::{Scheme, Target};
use serde::Deserialize as _;
use serde::de::IntoDeserializer;
use serde::de::value::Error as ValueError;
use std::fmt;

/// The longest repository, in bytes, as registries limit it.
const REPOSITORY: usize = 255;
/// The longest tag, in bytes.
const TAG: usize = 128;
/// The tag of a reference without a tag and a digest.
const USUAL_TAG: &str = "latest";

/// The place of an artifact in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OciReference {
    server: Target,
    /// The host and port, in their only spelling.
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

impl OciReference {
    /// Reads a reference without its `oci://`. A registry on this machine (`localhost`,
    /// `127.0.0.1`, `[::1]`) is spoken to without encryption.
    ///
    /// # Errors
    ///
    /// [`SourceError::Reference`] with the part that is wrong.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        let wrong = |reason: String| SourceError::Reference { reason };
        let (place, digest) = match text.split_once('@') {
            Some((place, digest)) => (place, Some(parse_digest(digest).map_err(wrong)?)),
            None => (text, None),
        };
        let (registry, path) = place
            .split_once('/')
            .ok_or_else(|| wrong("it has no repository after the registry".to_owned()))?;
        let (repository, tag) = match path.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (path, None),
        };
        if !is_repository(repository) {
            return Err(wrong("a repository consists of parts between `/`, of lower-case letters and digits with single `.`, `_` or `-` between them".to_owned()));
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(wrong("a tag has 1 to 128 letters, digits, `_`, `.` and `-`".to_owned()));
        }
        let server = server(registry).map_err(wrong)?;
        Ok(Self {
            registry: registry_name(registry, &server),
            server,
            repository: repository.to_owned(),
            tag: tag.map(str::to_owned),
            digest,
        })
    }

    /// Returns the host and the port of the registry, in their only spelling.
    #[must_use]
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// Returns the repository as the registry knows it.
    #[must_use]
    pub fn repository(&self) -> String {
        // Docker Hub has a folder for names without one.
        match self.registry == DOCKER_HUB && !self.repository.contains('/') {
            true => format!("library/{}", self.repository),
            false => self.repository.clone(),
        }
    }

    /// Returns the tag, if the reference names a tag or no digest.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref().or(self.digest.is_none().then_some(USUAL_TAG))
    }

    /// Returns the digest of the manifest, if the reference is pinned to it.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// Returns the reference of the manifest with this digest in the same repository.
    #[must_use]
    pub fn pinned(self, digest: Digest) -> Self {
        Self { digest: Some(digest), ..self }
    }

    /// Returns the last part of the repository.
    #[must_use]
    pub fn last_part(&self) -> &str {
        self.repository.rsplit('/').next().unwrap_or(&self.repository)
    }

    /// Returns a URL of the registry's interface, below the repository.
    pub(crate) fn url(&self, below: &str) -> String {
        format!("{}/v2/{}/{below}", self.server, self.repository())
    }
}

impl fmt::Display for OciReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository())?;
        if let Some(tag) = self.tag() {
            write!(f, ":{tag}")?;
        }
        match self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

/// Returns the beginning of references, without `oci://`, in its only spelling.
pub(crate) fn beginning_of_references(text: &str) -> Result<String, SourceError> {
    let wrong = |reason: &str| SourceError::Reference { reason: reason.to_owned() };
    let (registry, rest) = text.split_once('/').unwrap_or((text, ""));
    let server = server(registry).map_err(|reason| wrong(&reason))?;
    let registry = registry_name(registry, &server);
    if registry == DOCKER_HUB && !rest.is_empty() && !rest.contains('/') {
        return Err(wrong(
            "it names no folder of Docker Hub; `oci://docker.io/USER/` and `oci://docker.io/library/NAME` are accepted",
        ));
    }
    let is_usual =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-/:@".contains(&byte);
    match rest.bytes().all(is_usual) && !rest.starts_with('/') && !rest.contains("//") {
        true => Ok(format!("{registry}/{rest}")),
        false => Err(wrong(
            "a repository has lower-case letters, digits, `.`, `_` and `-` between single `/`",
        )),
    }
}

/// The name by which Docker Hub is known; its registry has another host.
const DOCKER_HUB: &str = "docker.io";

/// Returns the only spelling of a registry's name.
fn registry_name(given: &str, server: &Target) -> String {
    match given.eq_ignore_ascii_case(DOCKER_HUB) {
        true => DOCKER_HUB.to_owned(),
        false => server.authority(),
    }
}

/// Returns the server of a registry.
fn server(registry: &str) -> Result<Target, String> {
    let host = match registry.eq_ignore_ascii_case(DOCKER_HUB) {
        true => "registry-1.docker.io",
        false => registry,
    };
    let parse = |scheme: Scheme| Target::of_url(&format!("{scheme}://{host}/"));
    let target = parse(Scheme::Https).map_err(|error| error.to_string())?;
    let is_named = registry.contains(['.', ':']) || target.host.is_loopback();
    if !is_named {
        return Err("it names no registry; `oci://HOST/REPOSITORY:TAG` is accepted, such as `oci://ghcr.io/example/git:1.2.0`".to_owned());
    }
    match target.host.is_loopback() {
        true => parse(Scheme::Http).map_err(|error| error.to_string()),
        false => Ok(target),
    }
}

/// Reads a digest: `sha256:` and 64 hexadecimal digits in lower case.
///
/// # Errors
///
/// A description of the form of a digest, if the text has another form.
pub fn parse_digest(text: &str) -> Result<Digest, String> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_lower = text.strip_prefix("sha256:").is_some_and(|hex| hex.bytes().all(is_digit));
    let parsed = Digest::deserialize(IntoDeserializer::<ValueError>::into_deserializer(text));
    match parsed {
        Ok(digest) if is_lower => Ok(digest),
        _ => Err("a digest is `sha256:` and 64 hexadecimal digits in lower case".to_owned()),
    }
}

fn is_repository(text: &str) -> bool {
    let is_part = |part: &str| {
        let is_inner = |byte: u8| b"._-".contains(&byte);
        let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let ends = [part.bytes().next(), part.bytes().next_back()];
        ends.into_iter().all(|end| end.is_some_and(is_letter))
            && part.bytes().all(|byte| is_letter(byte) || is_inner(byte))
            && !part.contains("..")
    };
    text.len() <= REPOSITORY && text.split('/').all(is_part)
}

fn is_tag(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=TAG).contains(&text.len())
        && text.bytes().next().is_some_and(is_letter)
        && text.bytes().all(|byte| is_letter(byte) || b".-".contains(&byte))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn reference_has_one_form() {
        for (text, shown, url) in [
            ("ghcr.io/me/git:1.2", "ghcr.io/me/git:1.2", "https://ghcr.io/v2/me/git/x"),
            ("GHCR.io/me/git", "ghcr.io/me/git:latest", "https://ghcr.io/v2/me/git/x"),
            ("localhost:5000/git", "localhost:5000/git:latest", "http://localhost:5000/v2/git/x"),
            ("127.0.0.1:5000/a/b", "127.0.0.1:5000/a/b:latest", "http://127.0.0.1:5000/v2/a/b/x"),
            (
                "docker.io/git",
                "docker.io/library/git:latest",
                "https://registry-1.docker.io/v2/library/git/x",
            ),
        ] {
            let reference = OciReference::parse(text).unwrap();
            assert_eq!(reference.to_string(), shown);
            assert_eq!(reference.url("x"), url);
        }
        let digest = Digest::of(b"x");
        let pinned = OciReference::parse(&format!("ghcr.io/me/git@{digest}")).unwrap();
        assert_eq!((pinned.tag(), pinned.digest()), (None, Some(digest)));
        assert_eq!(pinned.to_string(), format!("ghcr.io/me/git@{digest}"));
    }

    #[test]
    fn text_that_is_no_reference_is_refused() {
        let upper = format!("ghcr.io/git@sha256:{}", "A".repeat(64));
        for text in [
            "git",
            "me/git:1",
            "ghcr.io/",
            "ghcr.io/Git",
            "ghcr.io/../git",
            "ghcr.io/a//b",
            "ghcr.io/git:",
            "ghcr.io/git:-x",
            "ghcr.io/git:a/b",
            "ghcr.io/git?x",
            "ghcr.io/git@sha256:12",
            "ghcr.io/git@sha512:12",
            "user@ghcr.io/git",
            "2130706433:80/git",
            &upper,
        ] {
            assert!(OciReference::parse(text).is_err(), "{text}");
        }
    }
}
