//! A key of the configuration that is about one tool.

use super::resolve::{Origin, Value};
use crate::policy::Mode;

/// A key that is about one tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolRule<'a> {
    table: &'static str,
    /// The name that the key gives the tool.
    pub tool: &'a str,
    /// Where the key stands.
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

    /// The whole key.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}.{}", self.table, self.tool)
    }

    /// Whether the operator relies on the rule to hold a tool back: without its tool it protects nothing.
    #[must_use]
    pub fn holds_back(&self) -> bool {
        match self.mode {
            Some(Mode::Deny | Mode::Prompt) => true,
            Some(Mode::PromptOnce | Mode::Auto) | None => false,
        }
    }
}
