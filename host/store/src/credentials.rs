//! Credentials of registries: from the environment, or from docker's file.

use crate::limits;
use crate::transfer_error::TransferError;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use http::HeaderValue;
use palisade::internal::open_regular;
use palisade::workspace::LastLink;
use serde::Deserialize;
use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The key of Docker Hub in docker's file.
const HUB: &str = "https://index.docker.io/v1/";

/// A user and a password. Neither is shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: String,
    password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(…)")
    }
}

impl Credentials {
    /// Returns the header that carries the credentials.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let text = STANDARD.encode(format!("{}:{}", self.user, self.password));
        let mut value = HeaderValue::from_str(&format!("Basic {text}")).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

/// The credentials of this run, for the registries that they are for.
#[derive(Clone, Default)]
pub struct CredentialsOf {
    /// The registry that the environment names, with its credentials.
    environment: Option<(String, Credentials)>,
    /// Docker's file.
    file: Option<PathBuf>,
}

impl fmt::Debug for CredentialsOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CredentialsOf").field("file", &self.file).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct DockerFile {
    #[serde(default)]
    auths: HashMap<String, Auth>,
}

#[derive(Deserialize)]
struct Auth {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
}

impl CredentialsOf {
    /// Takes the credentials of the environment: `PALISADE_REGISTRY`, `PALISADE_REGISTRY_USER` and
    /// `PALISADE_REGISTRY_PASSWORD` for one registry, and for the others `config.json` in
    /// `DOCKER_CONFIG` or `~/.docker`, of which only `auths` is used: no program is started.
    #[must_use]
    pub fn environment(variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let of = |name: &str| variable(name).filter(|value| !value.is_empty());
        let named = of("PALISADE_REGISTRY").and_then(|registry| {
            let user = of("PALISADE_REGISTRY_USER")?;
            let password = of("PALISADE_REGISTRY_PASSWORD")?;
            Some((registry.to_ascii_lowercase(), Credentials { user, password }))
        });
        let folder = of("DOCKER_CONFIG").map(PathBuf::from);
        let folder = folder.or_else(|| of("HOME").map(|home| PathBuf::from(home).join(".docker")));
        Self { environment: named, file: folder.map(|folder| folder.join("config.json")) }
    }

    /// Returns the credentials for a registry, if there are any.
    ///
    /// # Errors
    ///
    /// [`TransferError::Credentials`] if docker's file exists and cannot be used.
    pub fn of(&self, registry: &str) -> Result<Option<Credentials>, TransferError> {
        if let Some((named, credentials)) = &self.environment
            && named == registry
        {
            return Ok(Some(credentials.clone()));
        }
        let Some(path) = &self.file else { return Ok(None) };
        // The texts of this file are secret: its errors quote none of them.
        let wrong = |reason: &str| TransferError::Credentials {
            path: path.clone(),
            reason: reason.to_owned(),
        };
        let text = match read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong(&error.to_string())),
        };
        let file: DockerFile =
            serde_json::from_slice(&text).map_err(|_| wrong("it is no configuration of docker"))?;
        let Some(auth) = file.entry(registry) else { return Ok(None) };
        auth.credentials().map_err(wrong)
    }
}

impl DockerFile {
    fn entry(&self, registry: &str) -> Option<&Auth> {
        let hub = (registry == "docker.io").then(|| HUB.to_owned());
        let keys =
            [registry.to_owned(), format!("https://{registry}"), format!("http://{registry}")];
        hub.iter().chain(&keys).find_map(|key| self.auths.get(key))
    }
}

impl Auth {
    fn credentials(&self) -> Result<Option<Credentials>, &'static str> {
        if let (Some(user), Some(password)) = (&self.username, &self.password) {
            return Ok(Some(Credentials { user: user.clone(), password: password.clone() }));
        }
        // A registry with a helper program has an empty entry.
        let Some(auth) = self.auth.as_deref().filter(|auth| !auth.is_empty()) else {
            return Ok(None);
        };
        let wrong = "`auth` of the registry is no user and password in base64";
        let decoded = STANDARD.decode(auth).or_else(|_| STANDARD_NO_PAD.decode(auth));
        let text = String::from_utf8(decoded.map_err(|_| wrong)?).map_err(|_| wrong)?;
        let (user, password) = text.split_once(':').ok_or(wrong)?;
        Ok(Some(Credentials { user: user.to_owned(), password: password.to_owned() }))
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = open_regular(path, LastLink::Follow)?;
    let mut text = Vec::new();
    file.take(limits::CREDENTIALS + 1).read_to_end(&mut text)?;
    match text.len() as u64 > limits::CREDENTIALS {
        true => Err(io::Error::other("it is larger than 1 MiB")),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    fn of(registry: &str, json: &str) -> Result<Option<Credentials>, TransferError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.json"), json).unwrap();
        let path = folder.path().to_str().unwrap().to_owned();
        let variable = move |name: &str| match name {
            "PALISADE_REGISTRY" => Some("ghcr.io".to_owned()),
            "PALISADE_REGISTRY_USER" => Some("me".to_owned()),
            "PALISADE_REGISTRY_PASSWORD" => Some("planted-word".to_owned()),
            "DOCKER_CONFIG" => Some(path.clone()),
            _ => None,
        };
        CredentialsOf::environment(&variable).of(registry)
    }

    #[test]
    fn credentials_go_to_their_registry_alone() {
        // `bWU6cGxhbnRlZA==` is `me:planted`.
        let file = r#"{"auths": {"localhost:5000": {"auth": "bWU6cGxhbnRlZA=="}, "a.org": {}}}"#;
        let environment = of("ghcr.io", file).unwrap().unwrap();
        assert_eq!(environment.password, "planted-word");
        let docker = of("localhost:5000", file).unwrap().unwrap();
        assert_eq!((docker.user.as_str(), docker.password.as_str()), ("me", "planted"));
        for other in ["evil.ghcr.io", "ghcr.io:444", "localhost", "a.org", "docker.io"] {
            assert_eq!(of(other, file).unwrap(), None, "{other}");
        }
    }

    #[test]
    fn no_error_and_no_debug_text_has_a_secret() {
        for file in ["planted", r#"{"auths": {"a.org": {"auth": "planted!"}}}"#] {
            let error = of("a.org", file).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("planted"), "{error:?}");
        }
        let known = of("ghcr.io", "{}").unwrap().unwrap();
        assert!(!format!("{known:?} {:?}", known.header()).contains("planted"));
    }
}
