//! The names of servers, and the names that a host gives to their tools.

use palisade::tool::{InvalidName, ToolName};
use std::fmt;

/// The longest name of a server, in bytes: half of the name of a tool, which begins with it.
const MAX: usize = 32;

/// The name of a server: `^[a-z][a-z0-9_]{0,31}$`, since the names of its tools begin with it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(String);

/// The error of an invalid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{shown}` is no name for a server: it must match ^[a-z][a-z0-9_]{{0,31}}$, such as `github`"
)]
pub struct InvalidServerName {
    shown: String,
}

impl ServerName {
    /// Checks a name.
    ///
    /// # Errors
    ///
    /// [`InvalidServerName`] if it does not match the pattern.
    pub fn parse(name: &str) -> Result<Self, InvalidServerName> {
        match ToolName::parse(name) {
            Ok(_) if name.len() <= MAX => Ok(Self(name.to_owned())),
            _ => {
                let cut: String = name.chars().take(MAX).collect();
                Err(InvalidServerName { shown: cut.escape_debug().to_string() })
            }
        }
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name that a host gives to a tool of this server: `SERVER_TOOL`, with `_` for
    /// each character that no tool name has.
    ///
    /// # Errors
    ///
    /// If the name would be longer than that of a tool may be.
    pub(crate) fn of_tool(&self, tool: &str) -> Result<ToolName, InvalidName> {
        ToolName::parse(&format!("{}_{}", self.0, fitted(tool)))
    }
}

/// Returns the name that a server gives a tool, with `_` for each character that no tool name has,
/// or `None` if it begins in a way that no tool name does.
pub(crate) fn own(tool: &str) -> Option<ToolName> {
    ToolName::parse(&fitted(tool)).ok()
}

fn fitted(tool: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    tool.chars().map(fit).collect()
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_name_is_the_beginning_of_a_tool_name() {
        for good in ["a", "github", "my_server2", &"a".repeat(32)] {
            assert!(ServerName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "1a", "a-b", "a/b", "é", "../x", &"a".repeat(33)] {
            assert!(ServerName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn tool_is_named_after_its_server() {
        let server = ServerName::parse("git").expect("a name");
        for (own, shown) in [
            ("status", "git_status"),
            ("getStatus", "git_getstatus"),
            ("get-status", "git_get_status"),
            ("repo/list.all", "git_repo_list_all"),
            ("9", "git_9"),
        ] {
            assert_eq!(server.of_tool(own).expect("a name").as_str(), shown);
        }
        assert!(server.of_tool(&"x".repeat(61)).is_err());
    }
}
