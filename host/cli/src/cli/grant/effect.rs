//! The conditions under which a grant has an effect: an imported interface, a network rule, a tool.

use crate::cli::args::Common;
use crate::cli::exit::Failure;
use crate::cli::setup;
use palisade::plugins::Plugin;
use palisade::sandbox::Import;
use palisade_net::{Grant, Secret};

/// The interfaces that a plugin imports, without versions.
pub(super) enum Interfaces {
    /// The plugin is not loaded, perhaps since it needs the grant.
    Unknown,
    /// The plugin imports these.
    Known(Vec<String>),
    /// Those of WASI that a sandbox without grants provides.
    Plain,
}

impl Interfaces {
    /// Returns those of a loaded plugin.
    pub(super) fn of(plugin: &Plugin) -> Self {
        let name = |import: &Import| import.name.split('@').next().unwrap_or_default().to_owned();
        Self::Known(plugin.imports().iter().map(name).collect())
    }

    /// Returns the interface without which a grant has no effect, if the plugin does not import it.
    pub(super) fn missing_for(&self, grant: &Grant) -> Option<&'static str> {
        let needed = match grant {
            Grant::Net(_) | Grant::Secret(_) => "wasi:http/outgoing-handler",
            Grant::Env(_) => "wasi:cli/environment",
            Grant::Tools(_) => "palisade:tool/tools",
        };
        match self {
            Self::Unknown => None,
            Self::Plain => (!matches!(grant, Grant::Env(_))).then_some(needed),
            Self::Known(names) => (!names.iter().any(|name| name == needed)).then_some(needed),
        }
    }
}

/// Returns the advice for a secret, if no network rule of its plugin leads to its host.
pub(super) fn missing_rule(grant: &Grant, unreached: &[Secret]) -> Option<String> {
    let Grant::Secret(secret) = grant else { return None };
    let host = &secret.host;
    unreached
        .contains(secret)
        .then(|| format!("no network rule of the plugin leads to {host}; grant one with `net`"))
}

/// Returns the reason why a network rule reaches nothing.
pub(super) fn obstacle(grant: &Grant) -> Option<String> {
    let Grant::Net(rule) = grant else { return None };
    rule.obstacle().map(|obstacle| obstacle.to_string())
}

/// The names of the tools of this run, if a grant names some.
pub(super) struct Tools(Option<Vec<String>>);

impl Tools {
    /// Looks the tools up, if one of these grants names some.
    pub(super) fn of(common: &Common, given: &[Grant]) -> Result<Self, Failure> {
        if !given.iter().any(|grant| matches!(grant, Grant::Tools(_))) {
            return Ok(Self(None));
        }
        let settings = setup::settings(common)?;
        let host = setup::builder(common, &settings)?.build()?;
        let tools = host.registry().tools();
        Ok(Self(Some(tools.iter().map(|tool| tool.definition().name().to_string()).collect())))
    }

    /// Returns the advice for a pattern that matches no tool.
    pub(super) fn missing_for(&self, grant: &Grant) -> Option<String> {
        let (Grant::Tools(pattern), Self(Some(names))) = (grant, self) else { return None };
        let is_matched = names.iter().any(|name| pattern.matches(name));
        (!is_matched).then(|| {
            format!("no tool here matches `{}`; `palisade list` shows the tools", pattern.as_str())
        })
    }
}
