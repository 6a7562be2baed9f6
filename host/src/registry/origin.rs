//! Where a tool comes from, and by which name it is clearly meant.

use crate::tool::Digest;
use std::sync::Arc;

/// Where a tool comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Code of the program that embeds the host.
    Native,
    /// A WebAssembly plugin.
    Plugin {
        /// The plugin's name: its file's name without `.wasm`.
        name: Arc<str>,
        /// The SHA-256 of its bytes.
        digest: Digest,
        /// Whose it is.
        source: Source,
    },
}

/// Whose a plugin is. Rules trust the name of a tool only as far as its source can be trusted with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// It comes with the host.
    Shipped,
    /// A file, by its path, made fit to print. Whoever can put a file into a directory of plugins chooses its tools' names.
    File(Arc<str>),
    /// The same, beside another file of the same name in another directory: no rule can name one of them and not the other.
    Namesake(Arc<str>),
}

impl Source {
    /// The path of the file.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::Shipped => None,
            Self::File(path) | Self::Namesake(path) => Some(path),
        }
    }
}

/// The name under which a rule finds the tools of the program itself, where others have their plugin's.
pub(crate) const NATIVE: &str = "native";

/// How far a rule that names a tool can be meant for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// The tool's name says which tool is meant.
    ByTool,
    /// The plugin's name and the tool's do.
    ByPlugin,
    /// Neither does.
    Unclear,
}

impl Origin {
    /// The plugin's name, where it is one.
    #[must_use]
    pub fn plugin(&self) -> Option<&str> {
        match self {
            Self::Native => None,
            Self::Plugin { name, .. } => Some(name),
        }
    }

    /// The path of its file, where it is one.
    pub(crate) fn file(&self) -> Option<&str> {
        match self {
            Self::Native => None,
            Self::Plugin { source, .. } => source.file(),
        }
    }

    /// Whether both are one file with the same bytes, whatever other files bear its name.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        self.file().is_some() && (self.file(), self.digest()) == (other.file(), other.digest())
    }

    /// The name before the slash in a rule for a tool of this origin.
    pub(crate) fn rule_name(&self) -> &str {
        self.plugin().unwrap_or(NATIVE)
    }

    /// By which name a rule is clearly about a tool of this origin.
    pub(crate) fn naming(&self) -> Naming {
        match self {
            Self::Native | Self::Plugin { source: Source::Shipped, .. } => Naming::ByTool,
            // A file of this name takes nothing that was meant for the program's own tools.
            Self::Plugin { name, source: Source::File(_), .. } if &**name == NATIVE => Naming::Unclear,
            Self::Plugin { source: Source::File(_), .. } => Naming::ByPlugin,
            Self::Plugin { source: Source::Namesake(_), .. } => Naming::Unclear,
        }
    }

    /// The SHA-256 of the plugin's bytes. Code of the program itself has none.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::Native => None,
            Self::Plugin { digest, .. } => Some(*digest),
        }
    }
}
