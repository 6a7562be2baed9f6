//! The name of an installed plugin, which is the name of its file.

use crate::source_error::SourceError;
use palisade::tool::text::elided;
use std::fmt;

/// The longest name, in bytes.
const LONGEST: usize = 64;

/// The name of an installed plugin: 1 to 64 letters, digits, `-`, `_` and `.`, with a letter or a
/// digit at its beginning.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PluginName(String);

impl PluginName {
    /// Checks a name.
    ///
    /// # Errors
    ///
    /// [`SourceError::Name`] if it is no name of a plugin.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        match begins && text.len() <= LONGEST && text.bytes().all(is_allowed) {
            true => Ok(Self(text.to_owned())),
            false => Err(SourceError::Name { text: elided(text, 80) }),
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PluginName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
