//! The rule behind a decision, and the operator's options about it.

use super::{Mode, full_name};
use crate::registry::Origin;
use crate::tool::{Advice, Definition};

/// The mode of a call and the rule behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// The mode.
    pub mode: Mode,
    /// The rule.
    pub rule: Rule,
}

/// The rule that decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// The mode of the tool's class.
    Class,
    /// The tool's own mode, set for its name.
    Tool,
    /// The tool's own mode, set for the name qualified by its plugin's.
    PluginTool,
    /// The mode set for the name that the settings of its plugin gave the tool.
    SeenTool,
    /// The mode set for that name qualified by its plugin's.
    SeenPluginTool,
    /// The trusted workspace's override for the class.
    Override,
    /// The workspace is trusted.
    Trusted,
    /// The lifted prompt of the class, as with `--allow`.
    Allowed,
    /// The session's own policy, which is stricter than the host's.
    Session,
}

impl Rule {
    /// Returns the name used in `policy explain --json`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Class => "class",
            Self::Tool | Self::PluginTool | Self::SeenTool | Self::SeenPluginTool => "tool",
            Self::Override => "trusted_override",
            Self::Trusted => "trusted_workspace",
            Self::Allowed => "allow",
            Self::Session => "session",
        }
    }

    /// Returns true if the rule is about a single tool.
    #[must_use]
    pub fn is_of_tool(self) -> bool {
        match self {
            Self::Tool | Self::PluginTool | Self::SeenTool | Self::SeenPluginTool => true,
            Self::Class | Self::Override | Self::Trusted | Self::Allowed | Self::Session => false,
        }
    }

    /// Returns the name by which the rule refers to a tool, if it is about a single one.
    #[must_use]
    pub fn tool_name(self, definition: &Definition, origin: &Origin) -> Option<String> {
        let plugin = origin.rule_name();
        match self {
            Self::Tool => Some(definition.own_name().to_string()),
            Self::PluginTool => Some(format!("{plugin}/{}", definition.own_name())),
            Self::SeenTool => Some(definition.name().to_string()),
            Self::SeenPluginTool => Some(format!("{plugin}/{}", definition.name())),
            Self::Class | Self::Override | Self::Trusted | Self::Allowed | Self::Session => None,
        }
    }

    /// Returns the configuration key that this rule reads for a tool.
    #[must_use]
    pub fn key(self, definition: &Definition, origin: &Origin) -> String {
        match self {
            Self::Tool | Self::PluginTool | Self::SeenTool | Self::SeenPluginTool => {
                let name = self.tool_name(definition, origin).unwrap_or_default();
                format!("confirm.tools.{name}")
            }
            Self::Class => format!("confirm.{}", definition.side_effects()),
            Self::Override | Self::Trusted | Self::Allowed => "trusted".to_owned(),
            Self::Session => "session".to_owned(),
        }
    }

    /// Returns the operator's options to permit a call that this rule denies.
    #[must_use]
    pub fn advice_on_deny(self, definition: &Definition, origin: &Origin) -> Advice {
        let key = self.key(definition, origin);
        let class = definition.side_effects();
        if self == Self::Session {
            return session_advice();
        }
        let text = match self {
            Self::Override => {
                format!("no flag lifts `{class} = \"deny\"`, which stands under `[[trusted]]`")
            }
            _ => format!("no flag lifts `{key} = \"deny\"`, which stands"),
        };
        let in_code = match self {
            Self::Tool | Self::PluginTool | Self::SeenTool | Self::SeenPluginTool => {
                "the mode that `Policy::with_tool` gives it".to_owned()
            }
            Self::Override => format!("the mode of class {class} in `Policy::trusting`"),
            _ => format!("the mode that `Policy::with_class` gives class {class}"),
        };
        let in_code = format!("no approval lifts a deny of the host's policy: change {in_code}");
        Advice::setting(text, key).in_code(in_code)
    }

    /// Returns the operator's options to avoid the prompt that this rule requires.
    #[must_use]
    pub fn advice_on_prompt(self, definition: &Definition, origin: &Origin) -> Advice {
        let flag = format!("allow it with `--allow {}`", definition.side_effects());
        let advice = match self {
            Self::Tool | Self::PluginTool | Self::SeenTool | Self::SeenPluginTool => {
                let key = self.key(definition, origin);
                Advice::setting(format!("{flag}, or change `{key}`"), key)
            }
            Self::Session => return session_advice(),
            Self::Class | Self::Override | Self::Trusted | Self::Allowed => {
                let Some(name) = full_name(definition, origin) else {
                    return Advice::new(flag).in_code(in_code(definition));
                };
                let key = format!("confirm.tools.{name}");
                // TOML requires quotes around a key with a slash.
                let shown = if name.contains('/') { format!("\"{name}\"") } else { name };
                Advice::setting(
                    format!("{flag}, or set `{shown} = \"auto\"` under `[confirm.tools]`"),
                    key,
                )
            }
        };
        advice.in_code(in_code(definition))
    }
}

/// Returns the options where the policy of the session decides: its own creator set it.
fn session_advice() -> Advice {
    Advice::new("the policy that this session was opened with decides; open another session")
}

/// Returns the options of a program that embeds the host to avoid a prompt.
pub(super) fn in_code(definition: &Definition) -> String {
    let class = definition.side_effects();
    format!(
        "give the host a confirmer with `HostBuilder::confirmer`, or let its policy run class {class} with `Policy::allowing`"
    )
}
