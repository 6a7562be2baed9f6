//! Errors for taken and for unknown tool names.

use super::origin::Origin;
use super::registered::Registered;
use crate::tool::nearest_names;
use std::collections::HashMap;
use std::sync::Arc;

/// The error for a name that is taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the tool `{name}` already exists, {owner}; use another name, such as `{suggestion}`, or give the plugin a prefix in its settings (`[plugins.NAME]`)"
)]
pub struct DuplicateTool {
    name: String,
    owner: Arc<str>,
    suggestion: String,
}

impl DuplicateTool {
    pub(super) fn new(name: String, taken: &HashMap<Arc<str>, Arc<Registered>>) -> Self {
        let stem = crate::tool::text::cut(&name, 56).to_owned();
        let free = (2..)
            .map(|n: u32| format!("{stem}_{n}"))
            .find(|candidate| !taken.contains_key(candidate.as_str()));
        let file = taken.get(name.as_str()).and_then(|tool| match tool.origin() {
            Origin::Native | Origin::Server(_) => None,
            Origin::Plugin { source, .. } => source.file(),
        });
        // A shipped plugin's name is reserved before its tools are loaded.
        let owner =
            file.map_or_else(|| "in this program".into(), |file| format!("in {file}").into());
        Self { suggestion: free.unwrap_or_else(|| stem.clone()), owner, name }
    }

    /// Returns the name that is taken.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a free name.
    #[must_use]
    pub fn suggestion(&self) -> &str {
        &self.suggestion
    }
}

/// The reason why a native tool is not registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The name is taken.
    #[error(transparent)]
    Duplicate(#[from] DuplicateTool),
    /// The factory returns one instance again and again.
    #[error(
        "the factory of the tool `{name}` returned one instance twice, so that concurrent calls would share its state; return a new instance each time"
    )]
    SharedInstance {
        /// The name of the tool.
        name: String,
    },
    /// The factory, or the definition of its tool, panicked.
    #[error("the factory of a native tool panicked: {message}; return a tool each time")]
    Panicked {
        /// The message of the panic, at most 512 bytes.
        message: String,
    },
}

impl RegisterError {
    /// Returns the error for a taken name, which suggests another one.
    #[must_use]
    pub fn duplicate(&self) -> Option<&DuplicateTool> {
        match self {
            Self::Duplicate(duplicate) => Some(duplicate),
            Self::SharedInstance { .. } | Self::Panicked { .. } => None,
        }
    }
}

/// The error for an unknown tool name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no tool `{name}`")]
pub struct ToolNotFound {
    name: String,
    nearest: Vec<String>,
}

impl ToolNotFound {
    pub(crate) fn among<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Self {
        let nearest = nearest_names(name, names);
        Self { name: crate::tool::text::cut(name, 256).to_owned(), nearest }
    }

    /// Creates the error with up to three names that are offered in place of the requested one.
    pub(crate) fn with(name: &str, mut nearest: Vec<String>) -> Self {
        nearest.truncate(3);
        Self { name: crate::tool::text::cut(name, 256).to_owned(), nearest }
    }

    /// Returns the requested name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns up to three similar names.
    #[must_use]
    pub fn nearest(&self) -> &[String] {
        &self.nearest
    }
}
