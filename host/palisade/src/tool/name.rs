//! Validated tool names.

use std::fmt;
use std::sync::Arc;

/// The longest tool name, in bytes; every provider's format accepts this length.
pub(crate) const MAX_NAME: usize = 64;

/// A tool name: `^[a-z][a-z0-9_]{0,63}$`, so that it is valid in every export format.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName(Arc<str>);

impl ToolName {
    /// Validates a name.
    ///
    /// # Errors
    ///
    /// [`InvalidName`] if the name does not match the pattern; the error proposes the nearest name
    /// that does.
    pub fn parse(name: &str) -> Result<Self, InvalidName> {
        if is_valid(name) { Ok(Self(name.into())) } else { Err(InvalidName::new(name)) }
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name as a shared string.
    pub(crate) fn to_shared(&self) -> Arc<str> {
        self.0.clone()
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl std::borrow::Borrow<str> for ToolName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// An invalid tool name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a tool name: it must match ^[a-z][a-z0-9_]{{0,63}}$, such as `{suggestion}`", self.shown())]
pub struct InvalidName {
    name: String,
    suggestion: String,
}

impl InvalidName {
    fn new(name: &str) -> Self {
        Self { name: name.chars().take(MAX_NAME).collect(), suggestion: repair(name) }
    }

    fn shown(&self) -> String {
        self.name.escape_debug().to_string()
    }
}

fn is_valid(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= MAX_NAME
        && bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Returns the nearest valid name, or `my_tool` if no part of the name can be kept.
fn repair(name: &str) -> String {
    let mapped = name
        .chars()
        .take(MAX_NAME)
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    let repaired: String = mapped.skip_while(|c| !c.is_ascii_lowercase()).collect();
    if repaired.is_empty() { "my_tool".into() } else { repaired }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_has_lower_case_letters_digits_and_underscores() {
        for good in ["a", "read_file", "x1", &"a".repeat(64)] {
            assert!(ToolName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "1a", "_a", "a-b", "a.b", "a b", "é", "a\n", &"a".repeat(65)] {
            assert!(ToolName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn refused_name_has_a_suggestion() {
        for bad in ["Read-File", "9lives", "", "\u{202e}x", &"Z".repeat(200)] {
            let error = ToolName::parse(bad).err().map(|error| error.suggestion);
            assert!(error.is_some_and(|suggestion| is_valid(&suggestion)), "{bad}");
        }
    }
}
