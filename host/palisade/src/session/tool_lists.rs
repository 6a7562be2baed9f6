//! The tools that a session shows, and those that it may call.

use crate::policy::is_granted;
use crate::registry::Registered;

/// The tools that a session shows. A name is `tool` or `plugin/tool`. A tool that the settings of
/// its plugin rename has both names here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Advertised {
    /// All tools.
    #[default]
    All,
    /// Only the named tools.
    Only(Vec<String>),
    /// All but the named tools.
    Except(Vec<String>),
}

impl Advertised {
    /// Returns the names in the list.
    pub(crate) fn names(&self) -> &[String] {
        match self {
            Self::All => &[],
            Self::Only(names) | Self::Except(names) => names,
        }
    }

    pub(super) fn includes(&self, tool: &Registered) -> bool {
        let is_one_of = |names: &[String]| names.iter().any(|name| tool.is_named(name));
        match self {
            Self::All => true,
            Self::Only(names) => is_one_of(names),
            Self::Except(names) => !is_one_of(names),
        }
    }
}

/// How a session presents its tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Presentation {
    /// Each tool by itself.
    #[default]
    Tools,
    /// The tools that call others, in place of these: a client runs a program, which calls them.
    Programs,
}

/// The tools that a session may call. A name is `tool` or `plugin/tool`, with the name that the
/// plugin gave the tool, whatever sessions see. Unlike [`Advertised`] it
/// binds: any other tool is refused, and not listed either. Documents and prompts of plugins are no
/// tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Allowed {
    /// All tools.
    #[default]
    All,
    /// Only the named tools.
    Only(Vec<String>),
}

impl Allowed {
    /// Returns the names in the list.
    pub(crate) fn names(&self) -> &[String] {
        match self {
            Self::All => &[],
            Self::Only(names) => names,
        }
    }

    pub(super) fn includes(&self, tool: &Registered) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => {
                names.iter().any(|name| is_granted(name, tool.definition(), tool.origin()))
            }
        }
    }
}
