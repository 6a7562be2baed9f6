//! The servers to which native tools pass their calls on.

use std::sync::Arc;

/// A server that a native tool passes its calls on to, such as an MCP server. Rules name its tools
/// as `SERVER/TOOL`, so that a permission of one server's tool is not another's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolServer {
    name: Arc<str>,
    place: ServerPlace,
    rights: Arc<str>,
}

/// Where a server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerPlace {
    /// On this machine, as a program that may read and write files without the host.
    ThisMachine,
    /// Elsewhere. It gets the inputs of its calls alone.
    Elsewhere,
}

impl ToolServer {
    /// Creates a server. Its name in rules is `KIND/NAME`, which no plugin has, since a plugin's
    /// name is that of a file.
    #[must_use]
    pub fn new(kind: &str, name: &str, place: ServerPlace) -> Self {
        Self { name: format!("{kind}/{name}").into(), place, rights: Arc::default() }
    }

    /// Sets what its process may do, for people who are asked about a call.
    #[must_use]
    pub fn with_rights(self, rights: &str) -> Self {
        Self { rights: rights.into(), ..self }
    }

    /// Returns what its process may do, for people. Empty if it has not been set.
    #[must_use]
    pub fn rights(&self) -> &str {
        &self.rights
    }

    /// Returns the name in rules.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns where it runs.
    #[must_use]
    pub fn place(&self) -> ServerPlace {
        self.place
    }
}
