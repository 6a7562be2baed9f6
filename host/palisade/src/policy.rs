//! The policy decision for a call: run it, ask first, or deny it. Pure: no files, no clock and no
//! confirmation here.

mod rule;

use crate::plugins::reserved::is_reserved;
use crate::registry::{Naming, Origin, is_named};
use crate::tool::{Advice, Definition, SideEffects};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use rule::in_code;
pub use rule::{Decision, Rule};

/// The treatment of calls of a class or tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The call runs.
    Auto,
    /// The user is asked each time.
    Prompt,
    /// The user is asked once; an approval applies to later calls.
    PromptOnce,
    /// The call is denied.
    Deny,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Prompt, Self::PromptOnce, Self::Deny];

    /// Returns the name used in palisade.toml.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Prompt => "prompt",
            Self::PromptOnce => "prompt_once",
            Self::Deny => "deny",
        }
    }

    /// Returns true if replacing `other` with this mode does not loosen the policy.
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

/// An unknown mode name.
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

/// The operator's policy. The default asks before a tool that writes, executes or uses the network.
///
/// ```
/// use palisade::{Definition, SideEffects, json, policy::{Mode, Policy}, registry::Origin};
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
    /// A policy that this one can only tighten.
    floor: Option<Arc<Self>>,
}

/// The modes of the tools of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Named {
    /// The mode set for the tool's name alone.
    bare: Option<Mode>,
    /// The modes set for the tool's name qualified by a plugin's.
    of_plugins: BTreeMap<String, Mode>,
}

impl Default for Policy {
    fn default() -> Self {
        let mode = |class| match class {
            SideEffects::None | SideEffects::Read => Mode::Auto,
            SideEffects::Write | SideEffects::Execute | SideEffects::Network => Mode::Prompt,
        };
        Self {
            classes: SideEffects::ALL.into_iter().map(|class| (class, mode(class))).collect(),
            tools: BTreeMap::new(),
            trusted: None,
            lifted: BTreeSet::new(),
            floor: None,
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

    /// Sets the mode of a tool. It takes precedence over the class's mode unless that is deny. The
    /// tool is named `plugin/tool` (`native/tool` for native tools) or by its name alone.
    ///
    /// For a tool from a plugin file, the name alone can only tighten the policy: anyone who can
    /// add a file to a plugin directory can claim a name that was meant for another tool. The same
    /// holds for a name that [`PluginSettings`](crate::sandbox::PluginSettings) give a tool: only
    /// the name that the plugin gave it can loosen the policy.
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

    /// Trusts the workspace: prompts become auto, except for classes with an override here.
    #[must_use]
    pub fn trusting(mut self, overrides: impl IntoIterator<Item = (SideEffects, Mode)>) -> Self {
        self.trusted = Some(overrides.into_iter().collect());
        self
    }

    /// Lifts the prompt for a class, as `--allow` does. It does not lift a deny.
    #[must_use]
    pub fn allowing(mut self, class: SideEffects) -> Self {
        self.lifted.insert(class);
        self
    }

    /// Lets this policy only tighten another one: for each tool the stricter of both modes applies.
    /// Another floor that was set before stays in force.
    #[must_use]
    pub fn at_least(mut self, floor: &Self) -> Self {
        let floor = match self.floor.take() {
            Some(before) => floor.clone().at_least(&before),
            None => floor.clone(),
        };
        self.floor = Some(Arc::new(floor));
        self
    }

    /// Returns the names in the rules for tools, as [`with_tool`](Self::with_tool) takes them.
    pub fn tool_rules(&self) -> impl Iterator<Item = String> {
        self.tools.iter().flat_map(|(tool, named)| {
            let bare = named.bare.map(|_| tool.clone());
            bare.into_iter().chain(named.of_plugins.keys().map(move |of| format!("{of}/{tool}")))
        })
    }

    /// Returns the default mode of a class.
    #[must_use]
    pub fn class(&self, class: SideEffects) -> Mode {
        self.classes.get(&class).copied().unwrap_or(Mode::Deny)
    }

    /// Returns the mode that applies to this tool.
    #[must_use]
    pub fn decide(&self, definition: &Definition, origin: &Origin) -> Mode {
        self.explain(definition, origin).mode
    }

    /// Returns the mode that applies to this tool and the rule behind it. The order is: a deny
    /// anywhere, the tool's own mode, a trusted workspace's override, its trust, the class's mode.
    /// `--allow` lifts a prompt of any rule. A stricter decision of the floor precedes all of them.
    #[must_use]
    pub fn explain(&self, definition: &Definition, origin: &Origin) -> Decision {
        let own = self.explain_own(definition, origin);
        let Some(floor) = &self.floor else { return own };
        let floor = floor.explain(definition, origin);
        match floor.mode.is_at_least_as_strict_as(own.mode) {
            true => floor,
            false => Decision { mode: own.mode, rule: Rule::Session },
        }
    }

    fn explain_own(&self, definition: &Definition, origin: &Origin) -> Decision {
        let class = definition.side_effects();
        let (own, tightening) = self.own(definition, origin);
        let default = (self.class(class), Rule::Class);
        let overrides = self
            .trusted
            .as_ref()
            .and_then(|rules| rules.get(&class))
            .map(|mode| (*mode, Rule::Override));
        let trust = self.trusted.as_ref().map(|_| (Mode::Auto, Rule::Trusted));
        let by_rank = [own, overrides, trust, Some(default)];
        let denied = by_rank.into_iter().flatten().find(|(mode, _)| *mode == Mode::Deny);
        let decided = denied.or_else(|| by_rank.into_iter().flatten().next()).unwrap_or(default);
        let (mode, rule) = tightening.map_or(decided, |tighter| stricter(decided, tighter));
        let is_lifted = match mode {
            Mode::Prompt | Mode::PromptOnce => self.lifted.contains(&class),
            Mode::Auto | Mode::Deny => false,
        };
        if is_lifted {
            Decision { mode: Mode::Auto, rule: Rule::Allowed }
        } else {
            Decision { mode, rule }
        }
    }

    /// Like [`Rule::advice_on_prompt`], but proposes no rule for a tool whose name has a rule for
    /// another plugin: this plugin may have taken the name.
    #[must_use]
    pub fn advice_on_prompt(&self, rule: Rule, definition: &Definition, origin: &Origin) -> Advice {
        let tool = definition.own_name().as_str();
        let own = origin.rule_name();
        let rules = self
            .tools
            .get(tool)
            .map(|named| &named.of_plugins)
            // Servers have tools of one name on purpose.
            .filter(|rules| !rules.contains_key(own) && !matches!(origin, Origin::Server(_)));
        let is_own = rule.is_of_tool();
        match (
            origin.third_party().filter(|_| !is_own),
            rules.and_then(|rules| rules.keys().next()),
        ) {
            (Some(file), Some(other)) => {
                let class = definition.side_effects();
                let about = format!(
                    "the rule for `{other}/{tool}` is about another plugin, and this tool is of {file}"
                );
                Advice::new(format!("allow it with `--allow {class}`; {about}"))
                    .in_code(format!("{}; {about}", in_code(definition)))
            }
            _ => rule.advice_on_prompt(definition, origin),
        }
    }

    /// Returns the tool's own mode, and a mode that counts only if it is stricter than the others,
    /// because its name may refer to another tool.
    fn own(&self, definition: &Definition, origin: &Origin) -> (Option<Ruled>, Option<Ruled>) {
        if self.tools.is_empty() {
            return (None, None);
        }
        let (own, seen) = (definition.own_name().as_str(), definition.name().as_str());
        let (full, bare) = self.modes_of(own, origin, [Rule::PluginTool, Rule::Tool]);
        if own != seen {
            // A name that the operator's settings gave the tool may be the own name of another one.
            let (seen_full, seen_bare) =
                self.modes_of(seen, origin, [Rule::SeenPluginTool, Rule::SeenTool]);
            let only_tightens = match origin.naming() {
                Naming::ByTool | Naming::ByPlugin => [bare, seen_full, seen_bare, None],
                Naming::OnlyToTighten | Naming::Unclear => [full, bare, seen_full, seen_bare],
            };
            let permits = match origin.naming() {
                Naming::ByTool | Naming::ByPlugin => full,
                Naming::OnlyToTighten | Naming::Unclear => None,
            };
            return (permits, only_tightens.into_iter().flatten().reduce(stricter));
        }
        let both = match (full, bare) {
            // Either may come from a project file, which can only tighten.
            (Some(full), Some(bare)) => Some(stricter(full, bare)),
            (full, bare) => full.or(bare),
        };
        match origin.naming() {
            Naming::ByTool => (both, None),
            Naming::ByPlugin => (full, bare),
            Naming::OnlyToTighten | Naming::Unclear => (None, both),
        }
    }

    /// Returns the modes set for a name: with the plugin's name, and alone.
    fn modes_of(
        &self,
        tool: &str,
        origin: &Origin,
        [full, bare]: [Rule; 2],
    ) -> (Option<Ruled>, Option<Ruled>) {
        let Some(named) = self.tools.get(tool) else { return (None, None) };
        let of_plugin = named.of_plugins.get(origin.rule_name());
        (of_plugin.map(|mode| (*mode, full)), named.bare.map(|mode| (mode, bare)))
    }
}

/// A mode with its rule.
type Ruled = (Mode, Rule);

/// Returns the stricter of two modes, and the first if they are equal.
fn stricter(one: Ruled, other: Ruled) -> Ruled {
    if one.0.is_at_least_as_strict_as(other.0) { one } else { other }
}

/// Splits a name in a rule into the plugin's name, if given, and the tool's.
#[must_use]
pub fn parts(name: &str) -> (Option<&str>, &str) {
    match name.rsplit_once('/') {
        Some((plugin, tool)) => (Some(plugin), tool),
        None => (None, name),
    }
}

/// Returns true if a name in a list that grants something, `tool` or `plugin/tool`, refers to this
/// tool: only the name that the plugin gave it does. A plugin whose name means another plugin as
/// well is not meant by it, and the name of a shipped tool alone means no tool that the operator's
/// settings rename.
pub(crate) fn is_granted(name: &str, definition: &Definition, origin: &Origin) -> bool {
    let (plugin, tool) = parts(name);
    let own = definition.own_name();
    if let (None, Origin::Server(_)) = (plugin, origin) {
        // Many servers have a tool of one name, which names that server's tool to sessions alone.
        return definition.name().as_str() == tool;
    }
    let is_clear = match plugin {
        Some(_) => origin.naming() != Naming::Unclear,
        None => own == definition.name() || !is_reserved(own.as_str()),
    };
    is_clear && own.as_str() == tool && is_named(name, definition, origin)
}

/// Returns the name under which a rule can loosen this tool: the tool's own name, or for the tool
/// of a plugin file or a server the qualified one.
fn full_name(definition: &Definition, origin: &Origin) -> Option<String> {
    match origin.naming() {
        Naming::ByTool => Some(definition.own_name().to_string()),
        Naming::ByPlugin => Some(format!("{}/{}", origin.rule_name(), definition.own_name())),
        Naming::OnlyToTighten | Naming::Unclear => None,
    }
}

#[cfg(test)]
mod tests;
