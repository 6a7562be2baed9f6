//! Patterns of tools' names, by which an operator grants calls of tools.

use super::name::MAX_NAME;
use super::text::elided;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A tool's name, or the beginning of names with `*` behind it: `read_file`, `search_*`, `*`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolPattern(Arc<str>);

impl ToolPattern {
    /// Returns true if the pattern is of this name, which is the name that sessions see.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => *self.0 == *name,
        }
    }

    /// Returns the pattern as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ToolPattern {
    type Err = InvalidToolPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text.strip_suffix('*').unwrap_or(text);
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let begins = name.bytes().next().is_none_or(|first| first.is_ascii_lowercase());
        let is_valid =
            !text.is_empty() && name.len() <= MAX_NAME && begins && name.bytes().all(is_plain);
        match is_valid {
            true => Ok(Self(text.into())),
            false => Err(InvalidToolPattern { text: elided(text, MAX_NAME) }),
        }
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is no pattern of tools' names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` names no tools: a tool's name such as `read_file`, the beginning of names such as `search_*`, or `*` for all tools is accepted"
)]
pub struct InvalidToolPattern {
    text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_is_a_name_or_a_beginning() {
        for (pattern, of, not) in [
            ("read_file", "read_file", "read_files"),
            ("search_*", "search_files", "research_files"),
            ("*", "anything", ""),
        ] {
            let Ok(pattern) = pattern.parse::<ToolPattern>() else { panic!("{pattern}") };
            assert!(pattern.matches(of) && (not.is_empty() || !pattern.matches(not)), "{pattern}");
        }
    }

    #[test]
    fn text_that_names_no_tools_is_refused() {
        for text in ["", "A", "*_file", "read*file", "1a", "_a", "a-b", "a,b", " a", "a*\n"] {
            assert!(text.parse::<ToolPattern>().is_err(), "{text}");
        }
        assert!("a".repeat(MAX_NAME + 1).parse::<ToolPattern>().is_err());
    }
}
