//! The origin of a tool, and the names by which policy rules may refer to it.

use crate::execution::ToolServer;
use crate::tool::{Definition, Digest};
use std::sync::Arc;

/// The origin of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Code of the embedder.
    Native,
    /// A server, to which code of the embedder passes the calls on.
    Server(ToolServer),
    /// A WebAssembly plugin.
    Plugin {
        /// The plugin's name: its file's name without `.wasm`.
        name: Arc<str>,
        /// The SHA-256 of the plugin's bytes.
        digest: Digest,
        /// The plugin's source.
        source: Source,
    },
}

/// The source of a plugin. It determines whether a rule may trust the names of its tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The plugin is shipped with the host.
    Shipped,
    /// A file, as a printable path. Anyone who can write to a plugin directory chooses the names of
    /// its tools.
    File(Arc<str>),
    /// A file whose name another file in another directory also has, so that no rule can refer to
    /// only one of them.
    Namesake(Arc<str>),
    /// A file that is not approved and that a person has named for this run. No rule for a tool
    /// loosens the policy for its tools: it was written for another plugin, or for other bytes.
    ThisRun(Arc<str>),
}

impl Source {
    /// Returns the path of the file.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::Shipped => None,
            Self::File(path) | Self::Namesake(path) | Self::ThisRun(path) => Some(path),
        }
    }
}

/// The qualifier for native tools in rules, where other tools have their plugin's name.
pub const NATIVE: &str = "native";

/// The names by which a rule refers to a tool unambiguously.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// The tool's name is sufficient.
    ByTool,
    /// The plugin's or the server's name and the tool's together are sufficient.
    ByPlugin,
    /// No name is sufficient for a rule that loosens the policy; both are for a list of tools.
    OnlyToTighten,
    /// No name is sufficient.
    Unclear,
}

/// Returns true if a name in a rule or a list, `tool` or `plugin/tool`, refers to this tool: by the
/// name that sessions see or by the tool's own.
pub(crate) fn is_named(name: &str, definition: &Definition, origin: &Origin) -> bool {
    let (plugin, tool) = match name.rsplit_once('/') {
        Some((plugin, tool)) => (Some(plugin), tool),
        None => (None, name),
    };
    let names = [definition.name(), definition.own_name()];
    names.into_iter().any(|own| own.as_str() == tool)
        && plugin.is_none_or(|plugin| origin.rule_name() == plugin)
}

/// Returns true if rules for the host's own tools use this qualifier.
fn is_of_the_host(name: &str) -> bool {
    name == NATIVE || palisade_plugins::all().iter().any(|shipped| shipped.name == name)
}

impl Origin {
    /// Returns the name of the plugin, or of the server as rules name it, such as `mcp/git`. `None`
    /// for a tool of the program.
    #[must_use]
    pub fn plugin(&self) -> Option<&str> {
        match self {
            Self::Native => None,
            Self::Server(server) => Some(server.name()),
            Self::Plugin { name, .. } => Some(name),
        }
    }

    /// Returns the path of the plugin's file, if there is one.
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::Native | Self::Server(_) => None,
            Self::Plugin { source, .. } => source.file(),
        }
    }

    /// Returns the file of a plugin, or the server, that has chosen the names of its tools. `None`
    /// for tools of the program.
    #[must_use]
    pub fn third_party(&self) -> Option<&str> {
        match self {
            Self::Server(server) => Some(server.name()),
            Self::Native | Self::Plugin { .. } => self.file(),
        }
    }

    /// Returns true if both are the same file with the same bytes, regardless of namesakes.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        self.file().is_some() && (self.file(), self.digest()) == (other.file(), other.digest())
    }

    /// Returns the qualifier before the slash in a rule for a tool of this origin.
    pub fn rule_name(&self) -> &str {
        match self {
            Self::Native => NATIVE,
            Self::Server(server) => server.name(),
            Self::Plugin { name, .. } => name,
        }
    }

    /// Returns the names by which a rule refers to a tool of this origin unambiguously.
    pub(crate) fn naming(&self) -> Naming {
        match self {
            Self::Native | Self::Plugin { source: Source::Shipped, .. } => Naming::ByTool,
            // A file with the name of a shipped plugin must not match the rules for that plugin,
            // even in a host without it.
            Self::Plugin { name, source: Source::File(_) | Source::ThisRun(_), .. }
                if is_of_the_host(name) =>
            {
                Naming::Unclear
            }
            Self::Plugin { source: Source::File(_), .. } | Self::Server(_) => Naming::ByPlugin,
            Self::Plugin { source: Source::ThisRun(_), .. } => Naming::OnlyToTighten,
            Self::Plugin { source: Source::Namesake(_), .. } => Naming::Unclear,
        }
    }

    /// Returns the SHA-256 of the plugin's bytes, or `None` for a tool of no plugin.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::Native | Self::Server(_) => None,
            Self::Plugin { digest, .. } => Some(*digest),
        }
    }
}
