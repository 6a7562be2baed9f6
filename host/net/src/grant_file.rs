//! The file of grants: its text, without opening it. The program keeps it beside the user's own
//! settings.

mod form;
mod holder;

pub use holder::Holder;

use crate::plugin_grants::PluginGrants;
use crate::rule::{NetRule, NetRuleError};
use crate::secret::{Secret, SecretError, is_variable};
use form::{RawEntry, RawFile};
use palisade::tool::text::visible;
use palisade::tool::{InvalidToolPattern, ToolPattern};
use std::fmt;
use std::str::FromStr;

/// The first line of the file.
const TITLE: &str = "# What plugins may do beyond their class. Written by `palisade grant`.\n";

/// The grants of all plugins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrantFile {
    grants: Vec<PluginEntry>,
}

/// The grants of one plugin, as the file has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginEntry {
    /// The name of the plugin. It decides together with the holder, unless that is a digest.
    pub plugin: String,
    /// The files that have the grants.
    pub holder: Holder,
    /// Everything that is granted.
    pub grants: Vec<Grant>,
}

/// One grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// Requests.
    Net(NetRule),
    /// An environment variable of the host.
    Env(String),
    /// A secret, which the host adds to requests.
    Secret(Secret),
    /// Calls of other tools.
    Tools(ToolPattern),
}

/// The reason why a text is no file of grants.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrantFileError {
    /// The text is no TOML, or has unknown keys.
    #[error("{0}")]
    Toml(String),
    /// A rule is invalid.
    #[error("the rule `{rule}` is refused: {reason}")]
    Rule {
        /// The text of the rule.
        rule: String,
        /// Its fault.
        reason: NetRuleError,
    },
    /// The name of a variable is invalid.
    #[error(
        "`{0}` is no name of an environment variable: letters, digits and `_`, and no digit first"
    )]
    Variable(String),
    /// A secret is invalid.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A pattern of tools' names is invalid.
    #[error(transparent)]
    Tools(#[from] InvalidToolPattern),
    /// An entry does not say which files have its grants, or says it more than once.
    #[error(
        "the entry of `{plugin}` needs one of `digest`, `signer` and `shipped = true`, and no other"
    )]
    Holder {
        /// The name of the plugin.
        plugin: String,
    },
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Net(rule) => write!(f, "net {rule}"),
            Self::Env(name) => write!(f, "env {name}"),
            Self::Secret(secret) => write!(f, "secret {secret}"),
            Self::Tools(pattern) => write!(f, "tools {pattern}"),
        }
    }
}

impl Grant {
    /// Reads a network rule.
    ///
    /// # Errors
    ///
    /// [`GrantFileError::Rule`].
    pub fn net(rule: &str) -> Result<Self, GrantFileError> {
        let refused = |reason| GrantFileError::Rule { rule: visible(rule), reason };
        rule.parse().map(Self::Net).map_err(refused)
    }

    /// Reads the name of an environment variable.
    ///
    /// # Errors
    ///
    /// [`GrantFileError::Variable`].
    pub fn env(name: &str) -> Result<Self, GrantFileError> {
        match is_variable(name) {
            true => Ok(Self::Env(name.to_owned())),
            false => Err(GrantFileError::Variable(visible(name))),
        }
    }

    /// Reads a pattern of tools' names.
    ///
    /// # Errors
    ///
    /// [`GrantFileError::Tools`].
    pub fn tools(pattern: &str) -> Result<Self, GrantFileError> {
        Ok(Self::Tools(pattern.parse()?))
    }
}

impl PluginEntry {
    /// Resolves the grants with the variables of this run.
    #[must_use]
    pub fn resolve(&self, variable: &dyn Fn(&str) -> Option<String>) -> PluginGrants {
        let (mut rules, mut environment, mut secrets) = (Vec::new(), Vec::new(), Vec::new());
        let mut tools = Vec::new();
        for grant in &self.grants {
            match grant {
                Grant::Net(rule) => rules.push(rule.clone()),
                Grant::Env(name) => environment.push(name.clone()),
                Grant::Secret(secret) => secrets.push(secret.clone()),
                Grant::Tools(pattern) => tools.push(pattern.clone()),
            }
        }
        // A secret stays hidden from the plugin, also if another entry grants it as a variable.
        environment.retain(|name| secrets.iter().all(|secret| secret.name != *name));
        PluginGrants::new(rules, &environment, secrets, variable).with_tools(tools)
    }
}

impl GrantFile {
    /// Returns the entries, in the order of the file.
    #[must_use]
    pub fn entries(&self) -> &[PluginEntry] {
        &self.grants
    }

    /// Returns the grant of the plugin, by its bytes, its signer or its name, that a new one
    /// contradicts: the plugin reads a variable, and
    /// a secret is hidden from it; or two secrets are for one header of one host.
    #[must_use]
    pub fn contradicted_by(&self, plugin: &str, holder: &Holder, grant: &Grant) -> Option<&Grant> {
        let is_of_plugin =
            |entry: &&PluginEntry| entry.plugin == plugin || holder.is_of(plugin, entry);
        let held = self.grants.iter().filter(is_of_plugin);
        let is_clash = |one: &Grant, other: &Grant| match (one, other) {
            (Grant::Env(name), Grant::Secret(secret)) => secret.name == *name,
            (Grant::Secret(one), Grant::Secret(other)) => {
                one.name != other.name && one.host == other.host && one.header == other.header
            }
            _ => false,
        };
        let mut held = held.flat_map(|entry| &entry.grants);
        held.find(|other| is_clash(grant, other) || is_clash(other, grant))
    }

    /// Returns the secrets of the holder whose hosts no network rule leads to that the plugin has,
    /// by its bytes, its signer or its name.
    #[must_use]
    pub fn unreached(&self, plugin: &str, holder: &Holder) -> Vec<Secret> {
        let held = self.grants.iter().filter(|entry| holder.is_of(plugin, entry));
        let held = held.flat_map(|entry| &entry.grants);
        let is_of_plugin =
            |entry: &&PluginEntry| entry.plugin == plugin || holder.is_of(plugin, entry);
        let is_reached = |secret: &Secret| {
            let entries = self.grants.iter().filter(is_of_plugin);
            let mut rules = entries.flat_map(|entry| &entry.grants);
            rules.any(|grant| matches!(grant, Grant::Net(rule) if rule.host().covers(&secret.host)))
        };
        let secret = |grant: &Grant| match grant {
            Grant::Secret(secret) => Some(secret.clone()),
            Grant::Net(_) | Grant::Env(_) | Grant::Tools(_) => None,
        };
        held.filter_map(secret).filter(|secret| !is_reached(secret)).collect()
    }

    /// Adds a grant, unless the holder has it.
    pub fn add(&mut self, plugin: &str, holder: &Holder, grant: Grant) {
        let is_held = |entry: &PluginEntry| holder.is_of(plugin, entry);
        let index = self.grants.iter().position(is_held).unwrap_or_else(|| {
            let (plugin, holder) = (plugin.to_owned(), holder.clone());
            self.grants.push(PluginEntry { plugin, holder, grants: Vec::new() });
            self.grants.len() - 1
        });
        let grants = &mut self.grants[index].grants;
        if !grants.contains(&grant) {
            grants.push(grant);
        }
    }

    /// Removes the grants of all entries for which this holds, and returns their number.
    pub fn revoke(&mut self, is_revoked: impl Fn(&PluginEntry, &Grant) -> bool) -> usize {
        let count = |file: &Self| file.grants.iter().map(|entry| entry.grants.len()).sum::<usize>();
        let before = count(self);
        for entry in &mut self.grants {
            let kept = entry.grants.iter().filter(|grant| !is_revoked(entry, grant)).cloned();
            entry.grants = kept.collect();
        }
        self.grants.retain(|entry| !entry.grants.is_empty());
        before - count(self)
    }

    /// Returns the text of the file.
    ///
    /// # Errors
    ///
    /// [`GrantFileError::Toml`], if the content has no form in TOML.
    pub fn to_text(&self) -> Result<String, GrantFileError> {
        let raw = RawFile { grant: self.grants.iter().map(RawEntry::of).collect() };
        let text = toml::to_string_pretty(&raw);
        let text = text.map_err(|error| GrantFileError::Toml(error.to_string()))?;
        Ok(format!("{TITLE}\n{text}"))
    }
}

impl FromStr for GrantFile {
    type Err = GrantFileError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let raw: RawFile =
            toml::from_str(text).map_err(|error| GrantFileError::Toml(visible(error.message())))?;
        let grants = raw.grant.into_iter().map(RawEntry::checked).collect::<Result<_, _>>()?;
        Ok(Self { grants })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;
    use palisade::tool::Digest;

    fn file() -> GrantFile {
        let mut file = GrantFile::default();
        let digest = &Holder::Digest(Digest::of(b"a plugin"));
        file.add("web", digest, Grant::net("GET https://api.example.org").unwrap());
        file.add("web", digest, Grant::net("GET https://api.example.org").unwrap());
        file.add("web", digest, Grant::env("LANG").unwrap());
        let secret = Secret::parse("KEY", "api.example.org", "Authorization: Bearer").unwrap();
        file.add("web", digest, Grant::Secret(secret));
        file.add("other", &Holder::Shipped, Grant::env("LANG").unwrap());
        file.add("other", &Holder::Shipped, Grant::tools("search_*").unwrap());
        file
    }

    #[test]
    fn file_is_read_as_it_was_written() {
        let text = file().to_text().unwrap();
        assert_eq!(text.parse::<GrantFile>().unwrap(), file(), "{text}");
        assert_eq!("".parse::<GrantFile>().unwrap(), GrantFile::default());
    }

    #[test]
    fn secret_of_a_plugin_is_none_of_its_variables() {
        let text = "[[grant]]\nplugin = \"web\"\nshipped = true\nenv = [\"KEY\", \"LANG\"]\n\
                    secret = [{ name = \"KEY\", host = \"a.org\", header = \"x-key\" }]\n";
        let file: GrantFile = text.parse().unwrap();
        let seen = file.entries()[0].resolve(&|_| Some("a value".to_owned())).environment();
        assert_eq!(seen, [("LANG".to_owned(), "a value".to_owned())]);
    }

    #[test]
    fn secret_needs_a_rule_that_leads_to_its_host() {
        let mut file = file();
        let digest = &Holder::Digest(Digest::of(b"a plugin"));
        assert_eq!(file.unreached("web", digest), []);
        let far = Secret::parse("FAR", "a.example.com", "x-key").unwrap();
        file.add("web", digest, Grant::Secret(far.clone()));
        assert_eq!(file.unreached("web", digest), [far]);
        file.add("web", digest, Grant::net("GET https://*.example.com").unwrap());
        assert_eq!(file.unreached("web", digest), []);
    }

    #[test]
    fn revoked_grants_are_gone() {
        let mut file = file();
        assert_eq!(
            file.revoke(|entry, grant| entry.plugin == "web" && grant.to_string() == "env LANG"),
            1
        );
        assert_eq!(file.revoke(|entry, _| entry.plugin == "web"), 2);
        assert_eq!(file.entries().len(), 1);
    }

    #[test]
    fn faults_name_their_place() {
        let entry = "[[grant]]\nplugin = \"web\"\n";
        let digest = format!("digest = \"{}\"\n", Digest::of(b"a plugin"));
        for (text, part) in [
            ("[[grants]]".to_owned(), "grants"),
            (entry.to_owned(), "needs one of `digest`"),
            (format!("{entry}{digest}shipped = true"), "needs one of `digest`"),
            (format!("{entry}shipped = false"), "needs one of `digest`"),
            (format!("{entry}signer = \"\""), "needs one of `digest`"),
            (format!("{entry}digest = \"sha256:00\""), "64 hexadecimal digits"),
            (format!("{entry}{digest}net = [\"GET https://*\"]"), "GET https://*"),
            (format!("{entry}{digest}env = [\"A B\"]"), "A B"),
            (format!("{entry}{digest}tools = [\"*_file\"]"), "*_file"),
            (
                format!(
                    "{entry}{digest}secret = [{{ name = \"K\", host = \"a.org\", header = \"host\" }}]"
                ),
                "host",
            ),
        ] {
            let error = text.parse::<GrantFile>().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
