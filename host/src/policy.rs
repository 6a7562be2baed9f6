//! Whether a call may run: at once, after asking, or not at all. Pure: no file, no clock, no question is asked here.

use crate::tool::{Advice, Definition, SideEffects};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// What happens before a call of some class or tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// It runs.
    Auto,
    /// A person is asked each time.
    Prompt,
    /// A person is asked once; an allow counts from then on.
    PromptOnce,
    /// It does not run.
    Deny,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Prompt, Self::PromptOnce, Self::Deny];

    /// The name used in palisade.toml.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Prompt => "prompt",
            Self::PromptOnce => "prompt_once",
            Self::Deny => "deny",
        }
    }

    /// Whether replacing `other` by this mode only tightens.
    #[must_use]
    pub fn is_at_least_as_strict_as(self, other: Self) -> bool {
        self.strictness() >= other.strictness()
    }

    fn strictness(self) -> u8 {
        match self {
            Self::Auto => 0,
            Self::PromptOnce => 1,
            Self::Prompt => 2,
            Self::Deny => 3,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that names no mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a mode; the modes are auto, prompt, prompt_once and deny")]
pub struct UnknownMode(String);

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| UnknownMode(text.chars().take(64).collect()))
    }
}

/// What the operator allows. The default asks before anything that writes, executes or sends.
///
/// ```
/// use palisade::{Definition, Mode, Policy, SideEffects, json};
///
/// let shell = Definition::new("shell", "Runs a command.", SideEffects::Execute, json!({"type": "object"}))?;
/// let policy = Policy::default().trusting([(SideEffects::Execute, Mode::Prompt)]);
/// assert_eq!(policy.decide(&shell), Mode::Prompt);
/// assert_eq!(policy.with_tool("shell", Mode::Deny).decide(&shell), Mode::Deny);
/// # Ok::<(), palisade::DefinitionError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    classes: BTreeMap<SideEffects, Mode>,
    tools: BTreeMap<String, Mode>,
    trusted: Option<BTreeMap<SideEffects, Mode>>,
    lifted: BTreeSet<SideEffects>,
}

impl Default for Policy {
    fn default() -> Self {
        let mode = |class| if class <= SideEffects::Read { Mode::Auto } else { Mode::Prompt };
        Self {
            classes: SideEffects::ALL.into_iter().map(|class| (class, mode(class))).collect(),
            tools: BTreeMap::new(),
            trusted: None,
            lifted: BTreeSet::new(),
        }
    }
}

impl Policy {
    /// Sets the mode of a class.
    #[must_use]
    pub fn with_class(mut self, class: SideEffects, mode: Mode) -> Self {
        self.classes.insert(class, mode);
        self
    }

    /// Sets the mode of a tool, which wins over its class's unless that is deny.
    #[must_use]
    pub fn with_tool(mut self, tool: impl Into<String>, mode: Mode) -> Self {
        self.tools.insert(tool.into(), mode);
        self
    }

    /// Trusts the workspace: prompts become auto, except for the classes that have an override here.
    #[must_use]
    pub fn trusting(mut self, overrides: impl IntoIterator<Item = (SideEffects, Mode)>) -> Self {
        self.trusted = Some(overrides.into_iter().collect());
        self
    }

    /// Lifts the prompt for a class, as `--allow` does. A deny stays.
    #[must_use]
    pub fn allowing(mut self, class: SideEffects) -> Self {
        self.lifted.insert(class);
        self
    }

    /// The mode of a class where nothing more specific holds.
    #[must_use]
    pub fn class(&self, class: SideEffects) -> Mode {
        self.classes.get(&class).copied().unwrap_or(Mode::Deny)
    }

    /// The tools that have a mode of their own.
    pub fn tools(&self) -> impl Iterator<Item = (&str, Mode)> {
        self.tools.iter().map(|(tool, mode)| (tool.as_str(), *mode))
    }

    /// What happens before a call of this tool.
    #[must_use]
    pub fn decide(&self, definition: &Definition) -> Mode {
        self.explain(definition).mode
    }

    /// What happens before a call of this tool, and by which rule: deny anywhere, then the tool's own mode, then a trusted workspace's override, then its
    /// trust, then the class's mode. `--allow` lifts a prompt, whichever rule asks for it.
    #[must_use]
    pub fn explain(&self, definition: &Definition) -> Decision {
        let class = definition.side_effects();
        let own = self.tools.get(definition.name().as_str()).map(|mode| (*mode, Rule::Tool));
        let default = (self.class(class), Rule::Class);
        let overrides = self.trusted.as_ref().and_then(|rules| rules.get(&class)).map(|mode| (*mode, Rule::Override));
        let trust = self.trusted.as_ref().map(|_| (Mode::Auto, Rule::Trusted));
        let by_rank = [own, overrides, trust, Some(default)];
        let denied = by_rank.into_iter().flatten().find(|(mode, _)| *mode == Mode::Deny);
        let (mode, rule) = denied.or_else(|| by_rank.into_iter().flatten().next()).unwrap_or(default);
        let is_lifted = matches!(mode, Mode::Prompt | Mode::PromptOnce) && self.lifted.contains(&class);
        if is_lifted { Decision { mode: Mode::Auto, rule: Rule::Allowed } } else { Decision { mode, rule } }
    }
}

/// What happens before a call, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// What happens.
    pub mode: Mode,
    /// Why.
    pub rule: Rule,
}

/// The rule that decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// The mode of the tool's class.
    Class,
    /// The tool's own mode.
    Tool,
    /// The workspace is trusted, and its override for the class says so.
    Override,
    /// The workspace is trusted.
    Trusted,
    /// A prompt was lifted for the class, as `--allow` does.
    Allowed,
}

impl Rule {
    /// The name used in `policy explain --json`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Class => "class",
            Self::Tool => "tool",
            Self::Override => "trusted_override",
            Self::Trusted => "trusted_workspace",
            Self::Allowed => "allow",
        }
    }

    /// The setting that this rule reads for a tool.
    #[must_use]
    pub fn key(self, definition: &Definition) -> String {
        match self {
            Self::Tool => format!("confirm.tools.{}", definition.name()),
            Self::Class => format!("confirm.{}", definition.side_effects()),
            Self::Override | Self::Trusted | Self::Allowed => "trusted".to_owned(),
        }
    }

    /// What an operator can do who wants a call that this rule denies.
    #[must_use]
    pub fn advice_on_deny(self, definition: &Definition) -> Advice {
        let (key, class) = (self.key(definition), definition.side_effects());
        let text = match self {
            Self::Override => format!("no flag lifts `{class} = \"deny\"`, which stands under `[[trusted]]`"),
            _ => format!("no flag lifts `{key} = \"deny\"`, which stands"),
        };
        Advice::setting(text, key)
    }

    /// What an operator can do who wants a call without the question that this rule asks for.
    #[must_use]
    pub fn advice_on_prompt(self, definition: &Definition) -> Advice {
        let (name, class) = (definition.name(), definition.side_effects());
        let flag = format!("allow it with `--allow {class}`");
        let key = format!("confirm.tools.{name}");
        let text = match self {
            Self::Tool => format!("{flag}, or change `{key}`"),
            _ => format!("{flag}, or set `{name} = \"auto\"` under `[confirm.tools]`"),
        };
        Advice::setting(text, key)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test whose definition is invalid has failed")]
    use super::*;
    use serde_json::json;

    fn tool(class: SideEffects) -> Definition {
        Definition::new("t", "A tool.", class, json!({"type": "object"})).unwrap()
    }

    #[test]
    fn by_default_reading_runs_and_everything_riskier_asks() {
        let modes = SideEffects::ALL.map(|class| Policy::default().decide(&tool(class)));
        assert_eq!(modes, [Mode::Auto, Mode::Auto, Mode::Prompt, Mode::Prompt, Mode::Prompt]);
    }

    #[test]
    fn allow_lifts_a_prompt_of_that_class_only() {
        let policy = Policy::default().allowing(SideEffects::Write);
        assert_eq!(policy.decide(&tool(SideEffects::Write)), Mode::Auto);
        assert_eq!(policy.decide(&tool(SideEffects::Execute)), Mode::Prompt);
    }

    #[test]
    fn allow_never_lifts_a_deny() {
        let by_class = Policy::default().with_class(SideEffects::Write, Mode::Deny).allowing(SideEffects::Write);
        let by_tool = Policy::default().with_tool("t", Mode::Deny).allowing(SideEffects::Write);
        assert_eq!(by_class.decide(&tool(SideEffects::Write)), Mode::Deny);
        assert_eq!(by_tool.decide(&tool(SideEffects::Write)), Mode::Deny);
    }

    #[test]
    fn a_tools_own_mode_wins_over_its_class_unless_that_denies() {
        let exempt = Policy::default().with_tool("t", Mode::Auto);
        assert_eq!(exempt.decide(&tool(SideEffects::Execute)), Mode::Auto);
        let denied = exempt.with_class(SideEffects::Execute, Mode::Deny);
        assert_eq!(denied.decide(&tool(SideEffects::Execute)), Mode::Deny);
    }

    #[test]
    fn a_trusted_workspace_lifts_every_prompt_but_those_of_its_overrides() {
        let policy = Policy::default().trusting([(SideEffects::Execute, Mode::Prompt)]);
        let of = |class| policy.explain(&tool(class));
        assert_eq!(of(SideEffects::Write), Decision { mode: Mode::Auto, rule: Rule::Trusted });
        assert_eq!(of(SideEffects::Execute), Decision { mode: Mode::Prompt, rule: Rule::Override });
        assert_eq!(
            policy.clone().allowing(SideEffects::Execute).explain(&tool(SideEffects::Execute)).rule,
            Rule::Allowed
        );
    }

    #[test]
    fn a_tools_own_mode_wins_over_a_trusted_workspace() {
        let policy = Policy::default().trusting([]).with_tool("t", Mode::PromptOnce);
        assert_eq!(policy.explain(&tool(SideEffects::Write)), Decision { mode: Mode::PromptOnce, rule: Rule::Tool });
    }

    #[test]
    fn deny_wins_wherever_it_stands() {
        let write = tool(SideEffects::Write);
        let trusted = Policy::default().trusting([(SideEffects::Write, Mode::Deny)]).with_tool("t", Mode::Auto);
        assert_eq!(trusted.explain(&write), Decision { mode: Mode::Deny, rule: Rule::Override });
        let class =
            Policy::default().trusting([(SideEffects::Write, Mode::Auto)]).with_class(SideEffects::Write, Mode::Deny);
        assert_eq!(class.explain(&write), Decision { mode: Mode::Deny, rule: Rule::Class });
        let own = Policy::default().trusting([]).with_tool("t", Mode::Deny).allowing(SideEffects::Write);
        assert_eq!(own.explain(&write), Decision { mode: Mode::Deny, rule: Rule::Tool });
    }
}
