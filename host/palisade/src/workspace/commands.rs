//! Commands under path rules, which do not bind them.

use std::fmt;
use std::str::FromStr;

/// The treatment of native tools of class execute, such as `shell`, while there are path rules.
/// Their commands open files by themselves, so that no path rule binds them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Commands {
    /// Every call of such a tool is refused.
    #[default]
    Refuse,
    /// The calls are made, and see the denied paths.
    Allow,
}

impl fmt::Display for Commands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Refuse => "refuse",
            Self::Allow => "allow",
        })
    }
}

impl FromStr for Commands {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "refuse" => Ok(Self::Refuse),
            "allow" => Ok(Self::Allow),
            other => Err(format!("`{other}` is none of refuse and allow")),
        }
    }
}
