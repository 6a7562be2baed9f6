//! The grants of one plugin: rules, environment variables and secrets with their values.

use crate::connect::Destinations;
use crate::redact::Redaction;
use crate::refusal::NetRefused;
use crate::rule::{METHODS, NetRule, Reach};
use crate::secret::{Secret, SecretValue};
use crate::send::is_without_body;
use crate::target::{Scheme, Target};
use http::{HeaderMap, HeaderName, Method, header};
use palisade::SideEffects;
use palisade::tool::ToolPattern;
use std::sync::Arc;

/// A secret, and its value or the reason why it has none.
type HeldSecret = (Secret, Result<SecretValue, &'static str>);

/// The grants of one plugin, with the values of this run.
#[derive(Debug, Default)]
pub struct PluginGrants {
    rules: Vec<NetRule>,
    /// The granted variables, and the values of those that are set.
    environment: Vec<(String, Option<String>)>,
    secrets: Vec<HeldSecret>,
    /// The tools that the plugin may call.
    tools: Arc<[ToolPattern]>,
    /// The values of secrets that requests of this run carried, and that are granted no more. A
    /// server may still repeat them.
    former: Vec<SecretValue>,
    redaction: Option<Redaction>,
}

/// A request that its grants allow.
pub(crate) struct Allowed {
    pub(crate) target: Target,
    pub(crate) destinations: Destinations,
    /// Whether the request carries a secret.
    pub(crate) carries: Carries,
}

/// Whether a request carries a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carries {
    Nothing,
    Secret,
}

/// Headers that make some servers take a request for one of another method.
const OVERRIDES: [&str; 4] =
    ["x-http-method", "x-http-method-override", "x-method", "x-method-override"];

/// Headers that ask for a part of a document. Some servers know the second one as well.
const PARTS: [&str; 2] = ["range", "request-range"];

impl PluginGrants {
    /// Resolves the grants of a plugin: `variable` returns the value of an environment variable of
    /// the host. A variable that is not set stays unset for the plugin; a secret without a value
    /// refuses the requests to its host.
    #[must_use]
    pub fn new(
        rules: Vec<NetRule>,
        environment: &[String],
        secrets: Vec<Secret>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        let value_of = |name: &String| (name.clone(), variable(name));
        let environment = environment.iter().map(value_of).collect();
        let secrets: Vec<HeldSecret> = secrets
            .into_iter()
            .map(|secret| {
                let value = SecretValue::new(variable(&secret.name));
                (secret, value)
            })
            .collect();
        let mut grants = Self { rules, environment, secrets, ..Self::default() };
        grants.redact(None);
        grants
    }

    /// Sets the tools that the plugin may call.
    #[must_use]
    pub fn with_tools(self, tools: Vec<ToolPattern>) -> Self {
        Self { tools: tools.into(), ..self }
    }

    /// Returns the tools that the plugin may call.
    #[must_use]
    pub fn tools(&self) -> Arc<[ToolPattern]> {
        self.tools.clone()
    }

    /// Returns these grants in place of others of the same plugin and run.
    pub(crate) fn succeeding(mut self, before: &Self) -> Self {
        self.former =
            before.values().filter(|value| self.values().all(|it| it != *value)).cloned().collect();
        if !self.former.is_empty() {
            self.redact(before.redaction.clone());
        }
        self
    }

    /// Returns the values of the secrets, granted and former ones.
    fn values(&self) -> impl Iterator<Item = &SecretValue> {
        let usable = self.secrets.iter().filter_map(|(_, value)| value.as_ref().ok());
        usable.chain(&self.former)
    }

    /// Prepares the removal of the secrets. If they are too large together, none is sent, and
    /// `otherwise` removes those that were.
    fn redact(&mut self, otherwise: Option<Redaction>) {
        let values: Vec<&str> = self.values().map(SecretValue::as_str).collect();
        self.redaction = match Redaction::new(values.iter().copied()) {
            Ok(redaction) => (!values.is_empty()).then_some(redaction),
            Err(_) => {
                for (_, value) in &mut self.secrets {
                    *value = Err("the secrets of the plugin are too large together");
                }
                otherwise
            }
        };
    }

    /// Returns the granted environment variables that are set, with their values.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String)> {
        let set = |(name, value): &(String, Option<String>)| Some((name.clone(), value.clone()?));
        self.environment.iter().filter_map(set).collect()
    }

    /// Returns true if the plugin has an environment variable.
    #[must_use]
    pub fn has_environment(&self) -> bool {
        !self.environment.is_empty()
    }

    /// Returns true if the plugin has a network rule.
    #[must_use]
    pub fn has_network(&self) -> bool {
        !self.rules.is_empty()
    }

    pub(crate) fn redaction(&self) -> Option<&Redaction> {
        self.redaction.as_ref()
    }

    /// Returns true if only the host sets this header.
    pub(crate) fn reserves(&self, header: &HeaderName) -> bool {
        OVERRIDES.iter().any(|name| is_read_as(header, name))
            || self.secrets.iter().any(|(secret, _)| is_read_as(header, secret.header.as_str()))
    }

    /// Checks a request of a tool, and adds the secrets of its host.
    pub(crate) fn check(
        &self,
        class: SideEffects,
        method: &Method,
        uri: &http::Uri,
        headers: &mut HeaderMap,
    ) -> Result<Allowed, NetRefused> {
        let target = Target::of(uri)?;
        let is_empty = |length: &http::HeaderValue| length.as_bytes().iter().all(|it| *it == b'0');
        let length = headers.get(header::CONTENT_LENGTH);
        if is_without_body(method) && !length.is_none_or(is_empty) {
            return Err(NetRefused::Body { method: method.clone() });
        }
        if !is_sent_by(class, method) {
            return Err(match METHODS.contains(method) {
                true => NetRefused::Class { class, method: method.clone() },
                false => NetRefused::Method,
            });
        }
        let reach = self.rules.iter().filter_map(|rule| rule.allows(method, &target)).max();
        let Some(reach) = reach else {
            return Err(match METHODS.contains(method) {
                true => NetRefused::NoRule { method: method.clone(), target },
                false => NetRefused::Method,
            });
        };
        let carries = self.add_secrets(&target, reach, headers)?;
        let destinations = match (target.scheme, carries) {
            (Scheme::Http, Carries::Secret) => Destinations::Private,
            (Scheme::Http | Scheme::Https, _) => reach.into(),
        };
        Ok(Allowed { target, destinations, carries })
    }

    fn add_secrets(
        &self,
        target: &Target,
        reach: Reach,
        headers: &mut HeaderMap,
    ) -> Result<Carries, NetRefused> {
        let reserved: Vec<HeaderName> =
            headers.keys().filter(|header| self.reserves(header)).cloned().collect();
        for header in reserved {
            headers.remove(header);
        }
        let mut carries = Carries::Nothing;
        for (secret, value) in &self.secrets {
            if secret.host != target.host {
                continue;
            }
            let name = || secret.name.clone();
            if target.scheme == Scheme::Http && reach == Reach::Public {
                return Err(NetRefused::PlainSecret { name: name(), target: target.clone() });
            }
            let value = value
                .as_ref()
                .map_err(|reason| NetRefused::SecretValue { name: name(), reason })?;
            let value = secret.header_value(value).ok_or_else(|| NetRefused::SecretValue {
                name: name(),
                reason: "a header cannot carry it",
            })?;
            headers.insert(&secret.header, value);
            carries = Carries::Secret;
        }
        if carries == Carries::Secret {
            let is_part = |name: &HeaderName| PARTS.iter().any(|part| is_read_as(name, part));
            if headers.keys().any(is_part) {
                return Err(NetRefused::Part);
            }
            let is_encoding =
                |name: &&HeaderName| is_read_as(name, header::ACCEPT_ENCODING.as_str());
            let asked: Vec<HeaderName> = headers.keys().filter(is_encoding).cloned().collect();
            for name in asked {
                headers.remove(name);
            }
            headers.insert(header::ACCEPT_ENCODING, http::HeaderValue::from_static("identity"));
        }
        Ok(carries)
    }

    /// Returns the grants, one on each line.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let rules = self.rules.iter().map(|rule| format!("net {rule}"));
        let environment = self.environment.iter().map(|(name, value)| match value {
            Some(_) => format!("env {name}"),
            None => format!("env {name} (not set)"),
        });
        let secrets = self.secrets.iter().map(|(secret, value)| match value {
            Ok(_) => format!("secret {secret}"),
            Err(reason) => format!("secret {secret} (unusable: {reason})"),
        });
        let tools = self.tools.iter().map(|pattern| format!("tools {pattern}"));
        rules.chain(environment).chain(secrets).chain(tools).collect()
    }
}

/// Returns true if a tool of this class may send such a request with a grant: what a class may not
/// do to files, it may not do to servers.
fn is_sent_by(class: SideEffects, method: &Method) -> bool {
    match class {
        SideEffects::None => false,
        SideEffects::Read | SideEffects::Write | SideEffects::Execute => {
            *method == Method::GET || *method == Method::HEAD
        }
        SideEffects::Network => true,
    }
}

/// Returns true if a server may read the first header as the second one: interfaces such as CGI
/// know no difference between `-` and `_`.
pub(crate) fn is_read_as(header: &HeaderName, other: &str) -> bool {
    folded(header.as_str()).eq(folded(other))
}

/// Folds a name as servers do that turn each other character into `_`.
fn folded(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().map(|byte| if byte.is_ascii_alphanumeric() { byte } else { b'-' })
}
