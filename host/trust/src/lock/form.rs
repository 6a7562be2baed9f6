//! The text of a lock.

use super::{Entry, Lock, RevokedBytes};
use palisade::tool::text::{short_lines, visible};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The length of a line in an error, in bytes: the error quotes the line with the fault.
const MAX_QUOTED: usize = 300;

/// The version of the form.
const VERSION: u32 = 1;
/// The comment at the top of a lock.
const HEAD: &str = "# The plugins that were approved, by `palisade approve`. `palisade revoke` takes \
                    an approval back.\n";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    version: u32,
    #[serde(default, rename = "plugin")]
    plugins: Vec<Entry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    revoked: Vec<RevokedBytes>,
}

/// The version alone, so that a later form is refused for its version and not for a key.
#[derive(Deserialize)]
struct OfVersion {
    version: u32,
}

impl Lock {
    /// Parses the text of a lock.
    ///
    /// # Errors
    ///
    /// The reason why it is none, with the place. Control characters of the text are escaped in it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |error: toml::de::Error| {
            visible(&short_lines(error.to_string().trim_end(), MAX_QUOTED))
        };
        let OfVersion { version } = toml::from_str(text).map_err(wrong)?;
        if version != VERSION {
            return Err(format!(
                "it has the form {version}, and this program knows form {VERSION}; use the program \
                 that wrote it"
            ));
        }
        let Form { plugins, revoked, .. } = toml::from_str(text).map_err(wrong)?;
        let mut seen = HashSet::new();
        // With two entries, which one decides would depend on their order.
        match plugins.iter().find(|entry| !seen.insert((&entry.name, &entry.source))) {
            Some(twice) => Err(visible(&format!("it has two entries for `{}`", twice.name))),
            None => {
                let mut lock = Self { entries: plugins, revoked };
                lock.sort();
                Ok(lock)
            }
        }
    }

    /// Returns the text of the lock.
    ///
    /// # Errors
    ///
    /// If a value has no form in TOML, such as a size above 2⁶³.
    pub fn to_text(&self) -> Result<String, toml::ser::Error> {
        let (plugins, revoked) = (self.entries.clone(), self.revoked.clone());
        let form = Form { version: VERSION, plugins, revoked };
        Ok(format!("{HEAD}{}", toml::to_string(&form)?))
    }
}
