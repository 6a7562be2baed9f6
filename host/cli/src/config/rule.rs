//! A configuration key that concerns a single tool.

use super::resolve::{Origin, Value};
use palisade::policy::Mode;

/// A configuration key that concerns a single tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolRule<'a> {
    table: &'static str,
    /// The name of the tool in the key.
    pub tool: &'a str,
    /// The origin of the key.
    pub origin: &'a Origin,
    mode: Option<Mode>,
}

impl<'a> ToolRule<'a> {
    pub(super) fn mode(tool: &'a str, mode: &'a Value<Mode>) -> Self {
        Self { table: "confirm.tools", tool, origin: &mode.origin, mode: Some(mode.value) }
    }

    pub(super) fn limit<T>(table: &'static str, tool: &'a str, limit: &'a Value<T>) -> Self {
        Self { table, tool, origin: &limit.origin, mode: None }
    }

    /// Returns the full key.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}.{}", self.table, self.tool)
    }

    /// Returns true if the rule sets a mode, and false if it sets a limit.
    #[must_use]
    pub fn is_mode(&self) -> bool {
        self.mode.is_some()
    }

    /// Returns true if the rule restricts a tool, so that a misspelled name would remove a
    /// protection.
    #[must_use]
    pub fn holds_back(&self) -> bool {
        match self.mode {
            Some(Mode::Deny | Mode::Prompt) => true,
            Some(Mode::PromptOnce | Mode::Auto) | None => false,
        }
    }
}
