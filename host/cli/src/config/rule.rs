//! A configuration key that concerns a single tool.

use super::resolve::{Origin, Value};
use palisade::policy::Mode;

/// A configuration key that concerns a single tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolRule<'a> {
    /// The table of the key, or the list.
    pub table: &'static str,
    /// The name of the tool in the key.
    pub tool: &'a str,
    /// The origin of the key.
    pub origin: &'a Origin,
    effect: Effect,
}

/// The effect of a key on its tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Mode(Mode),
    Limit,
    /// The tool is not shown.
    Hide,
    /// The tool is one of those that may be called.
    Only,
}

impl<'a> ToolRule<'a> {
    pub(super) fn mode(tool: &'a str, mode: &'a Value<Mode>) -> Self {
        Self {
            table: "confirm.tools",
            tool,
            origin: &mode.origin,
            effect: Effect::Mode(mode.value),
        }
    }

    pub(super) fn limit<T>(table: &'static str, tool: &'a str, limit: &'a Value<T>) -> Self {
        Self { table, tool, origin: &limit.origin, effect: Effect::Limit }
    }

    pub(super) fn hide(tool: &'a str, origin: &'a Origin) -> Self {
        Self { table: "tools.hide", tool, origin, effect: Effect::Hide }
    }

    pub(super) fn only(tool: &'a str, origin: &'a Origin) -> Self {
        Self { table: "tools.only", tool, origin, effect: Effect::Only }
    }

    /// Returns the full key, and of a list the part that names the tool.
    #[must_use]
    pub fn key(&self) -> String {
        match self.effect {
            Effect::Mode(_) | Effect::Limit => format!("{}.{}", self.table, self.tool),
            Effect::Hide | Effect::Only => format!("{} = [\"{}\"]", self.table, self.tool),
        }
    }

    /// Returns true if the rule decides whether the tool may be called or seen, and false if it sets
    /// a limit.
    #[must_use]
    pub fn is_permission(&self) -> bool {
        self.effect != Effect::Limit
    }

    /// Returns true if the rule is a name in a list of tools.
    #[must_use]
    pub fn is_of_list(&self) -> bool {
        matches!(self.effect, Effect::Hide | Effect::Only)
    }

    /// Returns true if the rule restricts a tool, so that a misspelled name would remove a
    /// protection.
    #[must_use]
    pub fn holds_back(&self) -> bool {
        match self.effect {
            Effect::Mode(Mode::Deny | Mode::Prompt) | Effect::Hide => true,
            Effect::Mode(Mode::PromptOnce | Mode::Auto) | Effect::Limit | Effect::Only => false,
        }
    }
}
