//! Whether a call may run: at once, after asking, or not at all. Pure: no file, no clock, no question is asked here.

use crate::registry::{Naming, Origin};
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
/// use palisade::{Definition, Mode, Origin, Policy, SideEffects, json};
///
/// let shell = Definition::new("shell", "Runs a command.", SideEffects::Execute, json!({"type": "object"}))?;
/// let policy = Policy::default().trusting([(SideEffects::Execute, Mode::Prompt)]);
/// assert_eq!(policy.decide(&shell, &Origin::Native), Mode::Prompt);
/// assert_eq!(policy.with_tool("shell", Mode::Deny).decide(&shell, &Origin::Native), Mode::Deny);
/// # Ok::<(), palisade::DefinitionError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    classes: BTreeMap<SideEffects, Mode>,
    tools: BTreeMap<String, Named>,
    trusted: Option<BTreeMap<SideEffects, Mode>>,
    lifted: BTreeSet<SideEffects>,
}

/// The modes of the tools of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Named {
    /// Under the tool's name alone.
    bare: Option<Mode>,
    /// Under the name of a plugin and the tool's.
    of_plugins: BTreeMap<String, Mode>,
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

    /// Sets the mode of a tool, which wins over its class's unless that is deny. The tool is named `plugin/tool`
    /// (`native/tool` for code of the program itself), or by its name alone.
    ///
    /// The name alone only tightens where the tool is one of a plugin file: whoever can add a file to a directory of
    /// plugins can take a name that was meant for another.
    #[must_use]
    pub fn with_tool(mut self, tool: impl AsRef<str>, mode: Mode) -> Self {
        let (plugin, tool) = parts(tool.as_ref());
        let named = self.tools.entry(tool.to_owned()).or_default();
        match plugin {
            Some(plugin) => {
                named.of_plugins.insert(plugin.to_owned(), mode);
            }
            None => named.bare = Some(mode),
        }
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

    /// What happens before a call of this tool.
    #[must_use]
    pub fn decide(&self, definition: &Definition, origin: &Origin) -> Mode {
        self.explain(definition, origin).mode
    }

    /// What happens before a call of this tool, and by which rule: deny anywhere, then the tool's own mode, then a trusted workspace's override, then its
    /// trust, then the class's mode. `--allow` lifts a prompt, whichever rule asks for it.
    #[must_use]
    pub fn explain(&self, definition: &Definition, origin: &Origin) -> Decision {
        let class = definition.side_effects();
        let (own, tightening) = self.own(definition, origin);
        let default = (self.class(class), Rule::Class);
        let overrides = self.trusted.as_ref().and_then(|rules| rules.get(&class)).map(|mode| (*mode, Rule::Override));
        let trust = self.trusted.as_ref().map(|_| (Mode::Auto, Rule::Trusted));
        let by_rank = [own, overrides, trust, Some(default)];
        let denied = by_rank.into_iter().flatten().find(|(mode, _)| *mode == Mode::Deny);
        let decided = denied.or_else(|| by_rank.into_iter().flatten().next()).unwrap_or(default);
        let (mode, rule) = tightening.map_or(decided, |tighter| stricter(decided, tighter));
        let is_lifted = matches!(mode, Mode::Prompt | Mode::PromptOnce) && self.lifted.contains(&class);
        if is_lifted { Decision { mode: Mode::Auto, rule: Rule::Allowed } } else { Decision { mode, rule } }
    }

    /// As [`Rule::advice_on_prompt`], for a tool of this policy: where its name has a rule for another plugin, this one may have taken
    /// the name, and no rule for it is proposed.
    #[must_use]
    pub fn advice_on_prompt(&self, rule: Rule, definition: &Definition, origin: &Origin) -> Advice {
        let (tool, own) = (definition.name().as_str(), origin.rule_name());
        let rules = self.tools.get(tool).map(|named| &named.of_plugins).filter(|rules| !rules.contains_key(own));
        let is_own = matches!(rule, Rule::Tool | Rule::PluginTool);
        match (origin.file().filter(|_| !is_own), rules.and_then(|rules| rules.keys().next())) {
            (Some(file), Some(other)) => Advice::new(format!(
                "allow it with `--allow {}`; the rule for `{other}/{tool}` is about another plugin, and this tool is of {file}",
                definition.side_effects()
            )),
            _ => rule.advice_on_prompt(definition, origin),
        }
    }

    /// The mode that is the tool's own, and one that counts only where it is stricter than all else: that of a name by
    /// which another tool may have been meant.
    fn own(&self, definition: &Definition, origin: &Origin) -> (Option<Ruled>, Option<Ruled>) {
        let Some(named) = self.tools.get(definition.name().as_str()) else { return (None, None) };
        let full = named.of_plugins.get(origin.rule_name());
        let (full, bare) = (full.map(|mode| (*mode, Rule::PluginTool)), named.bare.map(|mode| (mode, Rule::Tool)));
        let both = match (full, bare) {
            // Both may be a project's, which only tightens.
            (Some(full), Some(bare)) => Some(stricter(full, bare)),
            (full, bare) => full.or(bare),
        };
        match origin.naming() {
            Naming::ByTool => (both, None),
            Naming::ByPlugin => (full, bare),
            Naming::Unclear => (None, both),
        }
    }
}

/// A mode, and the rule that it is of.
type Ruled = (Mode, Rule);

/// The first of two, unless the other is stricter.
fn stricter(one: Ruled, other: Ruled) -> Ruled {
    if one.0.is_at_least_as_strict_as(other.0) { one } else { other }
}

/// The parts of a name in a rule: of a plugin, where one is named, and of its tool.
#[must_use]
pub fn parts(name: &str) -> (Option<&str>, &str) {
    match name.rsplit_once('/') {
        Some((plugin, tool)) => (Some(plugin), tool),
        None => (None, name),
    }
}

/// The name under which a rule for this tool may say anything: its own, or, where it is a file's, with the plugin's name.
fn full_name(definition: &Definition, origin: &Origin) -> Option<String> {
    match origin.naming() {
        Naming::ByTool => Some(definition.name().to_string()),
        Naming::ByPlugin => Some(format!("{}/{}", origin.plugin().unwrap_or_default(), definition.name())),
        Naming::Unclear => None,
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
    /// The tool's own mode, under the name of its plugin.
    PluginTool,
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
            Self::Tool | Self::PluginTool => "tool",
            Self::Override => "trusted_override",
            Self::Trusted => "trusted_workspace",
            Self::Allowed => "allow",
        }
    }

    /// The setting that this rule reads for a tool.
    #[must_use]
    pub fn key(self, definition: &Definition, origin: &Origin) -> String {
        match self {
            Self::Tool => format!("confirm.tools.{}", definition.name()),
            Self::PluginTool => {
                format!("confirm.tools.{}/{}", origin.rule_name(), definition.name())
            }
            Self::Class => format!("confirm.{}", definition.side_effects()),
            Self::Override | Self::Trusted | Self::Allowed => "trusted".to_owned(),
        }
    }

    /// What an operator can do who wants a call that this rule denies.
    #[must_use]
    pub fn advice_on_deny(self, definition: &Definition, origin: &Origin) -> Advice {
        let (key, class) = (self.key(definition, origin), definition.side_effects());
        let text = match self {
            Self::Override => format!("no flag lifts `{class} = \"deny\"`, which stands under `[[trusted]]`"),
            _ => format!("no flag lifts `{key} = \"deny\"`, which stands"),
        };
        Advice::setting(text, key)
    }

    /// What an operator can do who wants a call without the question that this rule asks for.
    #[must_use]
    pub fn advice_on_prompt(self, definition: &Definition, origin: &Origin) -> Advice {
        let flag = format!("allow it with `--allow {}`", definition.side_effects());
        match self {
            Self::Tool | Self::PluginTool => {
                let key = self.key(definition, origin);
                Advice::setting(format!("{flag}, or change `{key}`"), key)
            }
            Self::Class | Self::Override | Self::Trusted | Self::Allowed => {
                let Some(name) = full_name(definition, origin) else { return Advice::new(flag) };
                let key = format!("confirm.tools.{name}");
                // A key with a slash stands in quotes.
                let shown = if name.contains('/') { format!("\"{name}\"") } else { name };
                Advice::setting(format!("{flag}, or set `{shown} = \"auto\"` under `[confirm.tools]`"), key)
            }
        }
    }
}

#[cfg(test)]
mod tests;
