//! The file of grants as it is written.

use super::{Grant, GrantFileError, Holder, PluginEntry};
use crate::secret::Secret;
use palisade::tool::Digest;
use palisade::tool::text::visible;
use serde::{Deserialize, Serialize};

/// The file as it is written.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) grant: Vec<RawEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawEntry {
    plugin: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shipped: Option<bool>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    net: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    env: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    secret: Vec<RawSecret>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tools: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSecret {
    name: String,
    host: String,
    header: String,
}

impl RawEntry {
    pub(super) fn of(entry: &PluginEntry) -> Self {
        let (mut net, mut env, mut secret) = (Vec::new(), Vec::new(), Vec::new());
        let mut tools = Vec::new();
        for grant in &entry.grants {
            match grant {
                Grant::Net(rule) => net.push(rule.to_string()),
                Grant::Env(name) => env.push(name.clone()),
                Grant::Secret(given) => secret.push(RawSecret {
                    name: given.name.clone(),
                    host: given.host.to_string(),
                    header: given.header_text(),
                }),
                Grant::Tools(pattern) => tools.push(pattern.to_string()),
            }
        }
        let (mut digest, mut signer, mut shipped) = (None, None, None);
        match &entry.holder {
            Holder::Digest(held) => digest = Some(*held),
            Holder::Signer(key) => signer = Some(key.clone()),
            Holder::Shipped => shipped = Some(true),
        }
        Self { plugin: entry.plugin.clone(), digest, signer, shipped, net, env, secret, tools }
    }

    pub(super) fn checked(self) -> Result<PluginEntry, GrantFileError> {
        let holder = match (self.digest, self.signer, self.shipped) {
            (Some(digest), None, None) => Holder::Digest(digest),
            (None, Some(key), None) if !key.is_empty() => Holder::Signer(key),
            (None, None, Some(true)) => Holder::Shipped,
            _ => return Err(GrantFileError::Holder { plugin: visible(&self.plugin) }),
        };
        let net = self.net.iter().map(|rule| Grant::net(rule));
        let env = self.env.iter().map(|name| Grant::env(name));
        let secret = self
            .secret
            .iter()
            .map(|raw| Ok(Grant::Secret(Secret::parse(&raw.name, &raw.host, &raw.header)?)));
        let tools = self.tools.iter().map(|pattern| Grant::tools(pattern));
        let grants = net.chain(env).chain(secret).chain(tools).collect::<Result<_, _>>()?;
        Ok(PluginEntry { plugin: self.plugin, holder, grants })
    }
}
